"""Parts of torch's state that programs can ask for and that GLOBAL_STATE does not record: guarded when they are read."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext


def default_devices() -> str:
    """The devices of the open blocks of `torch.device` and of `torch.set_default_device`, the innermost first; "other modes" where
    the functions of torch are overridden by anything else."""
    stack = _get_current_function_mode_stack()
    if any(type(mode) is not DeviceContext for mode in stack):
        return OTHER_MODES
    return ", ".join(str(mode.device) for mode in reversed(stack))


OTHER_MODES = "other modes"
UNNUMBERED = ("cpu", "meta")  # types of which there is one device


def default_device() -> torch.device:
    """Where a tensor is made when nobody says where, as it was named; only while `default_devices` are not `OTHER_MODES`."""
    stack = _get_current_function_mode_stack()
    return stack[-1].device if stack else torch.device("cpu")


def is_one_device(device: torch.device) -> bool:
    """Whether it names a device, whichever is the current one of its type."""
    return device.index is not None or device.type in UNNUMBERED


def nesting() -> int:
    """How many autocast blocks are open in this thread."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def current_device(kind: str) -> int:
    """The index of the device of a type that this thread works on when no index is given; -1 where the type has no such thing, or
    there is no device."""
    try:
        return int(torch.get_device_module(kind).current_device())
    except (AssertionError, AttributeError, RuntimeError):
        return -1


def put_device(kind: str, index: int) -> None:
    """Make the device `index` the current one of its type in this thread; nothing for an index of `current_device` that is none."""
    if index >= 0 and current_device(kind) != index:
        torch.get_device_module(kind).set_device(index)


torch.fx.node.has_side_effect(put_device)


def accelerator() -> str | None:
    """The type of the process's accelerator."""
    found = torch.accelerator.current_accelerator()
    return None if found is None else found.type


def device_count(kind: str) -> int:
    """How many devices of a type there are."""
    return int(torch.get_device_module(kind).device_count())


def is_available(kind: str) -> bool:
    """Whether there is a device of a type."""
    return bool(torch.get_device_module(kind).is_available())


#: name in the guard's text -> the question; arguments and answers are constants
STATE_READS: dict[str, Callable[..., Any]] = {
    "autocast": torch.is_autocast_enabled,
    "autocast dtype": torch.get_autocast_dtype,
    "autocast cache": torch.is_autocast_cache_enabled,
    "autocast nesting": nesting,
    "current device": current_device,
    "accelerator": accelerator,
    "device count": device_count,
    "device available": is_available,
    "anomaly mode": torch.is_anomaly_enabled,
    "anomaly check of nan": torch.is_anomaly_check_nan_enabled,
    "default device": default_devices,
    "number of threads": torch.get_num_threads,
    "number of interop threads": torch.get_num_interop_threads,
    "float32 matmul precision": torch.get_float32_matmul_precision,
    "warn always": torch.is_warn_always_enabled,
    "jit tracing": torch.jit.is_tracing,
    "flash attention": torch._C._get_flash_sdp_enabled,
    "memory efficient attention": torch._C._get_mem_efficient_sdp_enabled,
    "math attention": torch._C._get_math_sdp_enabled,
    "cudnn attention": torch._C._get_cudnn_sdp_enabled,
    "overrideable attention": torch._C._get_overrideable_sdp_enabled,
    "cudnn": torch._C._get_cudnn_enabled,
    "cudnn benchmark": torch._C._get_cudnn_benchmark,
    "cudnn deterministic": torch._C._get_cudnn_deterministic,
    "mkldnn": torch._C._get_mkldnn_enabled,
    "registrations with abstract classes": abc.get_cache_token,
}


def read(name: str, args: tuple[Any, ...]) -> Any:
    """The answer now."""
    return STATE_READS[name](*args)


def check_state_read(name: str, args: tuple[Any, ...], expected: Any) -> bool:
    """The answer is as recorded."""
    answer = read(name, args)
    return type(answer) is type(expected) and bool(answer == expected)
