"""Calls that a graph makes to enter and leave context managers of torch."""

from __future__ import annotations

from typing import Any

import torch


def enter_inference_mode(mode: bool) -> Any:
    """`torch.inference_mode(mode)`, entered."""
    manager = torch.inference_mode(mode)
    manager.__enter__()
    return manager


def enter_record_function(name: str, args: str | None) -> Any:
    """`torch.profiler.record_function(name, args)`, entered."""
    return torch.profiler.record_function(name, args).__enter__()


def enter_device(device: str) -> Any:
    """`torch.device(device)`, entered."""
    manager = torch.device(device)
    manager.__enter__()
    return manager


def leave(manager: Any) -> None:
    """Leave a manager that was entered by a call of this module."""
    manager.__exit__(None, None, None)


for call in (enter_inference_mode, enter_record_function, enter_device, leave):
    torch.fx.node.has_side_effect(call)
