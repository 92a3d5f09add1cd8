"""Memory of the devices. Nothing is cached: a tensor's bytes are free as soon as it dies. Sizes are in bytes."""

from __future__ import annotations

from typing import Any

import torch

from .devices import DeviceLike, device_index
from .lazy import init


def memory_allocated(device: DeviceLike = None) -> int:
    """What the tensors of a device take now."""
    init()
    return torch.accelerator.memory_allocated(device_index(device))


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most that the tensors of a device took since the start or reset_peak_memory_stats."""
    init()
    return torch.accelerator.max_memory_allocated(device_index(device))


def memory_reserved(device: DeviceLike = None) -> int:
    """What is taken from the device: here the same as memory_allocated."""
    init()
    return torch.accelerator.memory_reserved(device_index(device))


def max_memory_reserved(device: DeviceLike = None) -> int:
    init()
    return torch.accelerator.max_memory_reserved(device_index(device))


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """All counters of a device under torch.accelerator.memory_stats' names."""
    init()
    return torch.accelerator.memory_stats(device_index(device))


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    init()
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    init()
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """(free, total)"""
    init()
    return torch.accelerator.get_memory_info(device_index(device))


def empty_cache() -> None:
    """Nothing is cached, so nothing happens; kept for programs that call it."""
    torch.accelerator.empty_cache()
