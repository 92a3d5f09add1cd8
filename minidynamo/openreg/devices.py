"""Devices: how many, which one is current, what they can do. The current device belongs to a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from . import _C
from .lazy import init
from .load import NAME

DeviceLike: TypeAlias = torch.device | str | int | None


def is_available() -> bool:
    """True if there is a device. Never raises."""
    return _C._get_device_count() > 0


def device_count() -> int:
    """How many devices there are: 2, or OPENREG_DEVICE_COUNT."""
    return _C._get_device_count()


def current_device() -> int:
    """The index of the device that this thread makes tensors on when no index is given."""
    return _C._get_device()


def device_index(device: DeviceLike = None) -> int:
    """The index that `device` means: a torch.device, its text or an index; None and a device without index: the current one.

    Raises ValueError for a device of another type, TypeError for other objects.
    """
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != NAME:
            raise ValueError(f"expected an {NAME} device, got {device}")
        device = device.index
    if device is None:
        return current_device()
    if not isinstance(device, int):
        raise TypeError(f"expected a torch.device, a string or an index, got {type(device).__name__}")
    return device


def set_device(device: DeviceLike) -> None:
    """Make `device` the current one of this thread. RuntimeError when there is no such device."""
    _C._set_device(device_index(device))


class device:
    """Context manager: `device` is the current one inside. None changes nothing."""

    def __init__(self, device: DeviceLike) -> None:
        self.idx = -1 if device is None else device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> device:
        self.prev_idx = _exchange_device(self.idx)
        return self

    def __exit__(self, *exception: object) -> None:
        _maybe_exchange_device(self.prev_idx)


class device_of(device):
    """Context manager: the device of `tensor` is the current one inside; nothing changes for a tensor of another type."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device if tensor.device.type == NAME else None)


def _exchange_device(index: int) -> int:
    """Make `index` current and return the index from before; -1 changes nothing."""
    return _C._exchangeDevice(index)


def _maybe_exchange_device(index: int) -> int:
    """Like _exchange_device; an index that is no device changes nothing."""
    return _C._call_hook("maybeExchangeDevice", index)


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    name: str
    total_memory: int  # bytes
    multi_processor_count: int = 1


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    init()
    index = device_index(device)
    return DeviceProperties(f"simulated device {index}", torch.accelerator.get_memory_info(index)[1])


def get_device_name(device: DeviceLike = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: DeviceLike = None) -> dict[str, Any]:
    """What the device can compute with, as torch.accelerator tells it."""
    init()
    return torch.accelerator.get_device_capability(device_index(device))


def synchronize(device: DeviceLike = None) -> None:
    """Wait until the device has done all it was asked. It always has, but the index is checked."""
    init()
    torch.accelerator.synchronize(device_index(device))
