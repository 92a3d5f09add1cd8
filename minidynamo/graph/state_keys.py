"""Parts of torch's state that belong to a thread and that captured code may change: how each is read and written.

While a frame is traced the real state follows the program, so that operators are run on metadata as they would be run; what
was before is put back when the trace ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from minidynamo.guards.state_reads import OTHER_MODES, current_device, default_devices, nesting, put_device


@dataclass(frozen=True, slots=True)
class Key:
    """One part of the state: `name` is a row of PARTS, `device` a device type where there is one for each."""

    name: str
    device: str | None = None

    def get(self) -> Any:
        """The value now."""
        read = PARTS[self.name][0]
        return read() if self.device is None else read(self.device)

    def put(self, value: Any) -> None:
        """Make it that value."""
        write = PARTS[self.name][1]
        write(value) if self.device is None else write(self.device, value)


def _set_nesting(depth: int) -> None:
    now = nesting()
    while now < depth:
        now = torch.autocast_increment_nesting()
    while now > depth:
        now = torch.autocast_decrement_nesting()


def _leave_devices(devices: str) -> None:
    """Leave the blocks of `torch.device` that were entered since."""
    while (now := default_devices()) != devices and now not in ("", OTHER_MODES):
        torch._C._pop_torch_function_stack()  # as leaving a torch.device does


def _set_device() -> str | None:
    """What `torch.set_default_device` was last called with in this thread."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else str(context.device)


def _anomaly() -> tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _deterministic() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


#: name -> (how it is read, how it is written)
PARTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "grad mode": (torch.is_grad_enabled, torch._C._set_grad_enabled),
    "autocast": (torch.is_autocast_enabled, torch.set_autocast_enabled),
    "autocast dtype": (torch.get_autocast_dtype, torch.set_autocast_dtype),
    "autocast cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    "autocast nesting": (nesting, _set_nesting),
    "default device": (default_devices, _leave_devices),
    "current device": (current_device, put_device),
    "set device": (_set_device, torch.set_default_device),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "flash attention": (torch._C._get_flash_sdp_enabled, torch._C._set_sdp_use_flash),
    "memory efficient attention": (
        torch._C._get_mem_efficient_sdp_enabled,
        torch._C._set_sdp_use_mem_efficient,
    ),
    "math attention": (torch._C._get_math_sdp_enabled, torch._C._set_sdp_use_math),
    "cudnn attention": (torch._C._get_cudnn_sdp_enabled, torch._C._set_sdp_use_cudnn),
    "overrideable attention": (torch._C._get_overrideable_sdp_enabled, torch._C._set_sdp_use_overrideable),
    "float32 matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "deterministic algorithms": (
        _deterministic,
        lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    "anomaly mode": (_anomaly, lambda value: torch.set_anomaly_enabled(*value)),
}

GRAD_MODE = Key("grad mode")
AUTOCAST_CACHE, AUTOCAST_NESTING = Key("autocast cache"), Key("autocast nesting")
ANOMALY = Key("anomaly mode")
PRECISION, DETERMINISTIC = Key("float32 matmul precision"), Key("deterministic algorithms")
ATTENTION = {
    kind: Key(f"{kind} attention") for kind in ("flash", "memory efficient", "math", "cudnn", "overrideable")
}
DEFAULT_DEVICE, DEFAULT_DTYPE = Key("default device"), Key("default dtype")
SET_DEVICE = Key("set device")
