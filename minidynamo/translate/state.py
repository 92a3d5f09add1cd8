"""Global state under which frames are not captured, and a look at arguments that runs no user code."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from ..guards.state_reads import OTHER_MODES, default_device, default_devices, is_one_device
from ..static_access import is_subtype


def _other_modes() -> bool:
    """Modes of torch functions that are no default device, or a default device that is one of several."""
    if not torch._C._len_torch_function_stack():
        return False
    return default_devices() == OTHER_MODES or not is_one_device(default_device())


REFUSED: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("a torch function mode", _other_modes),
    ("a torch dispatch mode", lambda: torch._C._len_torch_dispatch_stack() > 0),
    ("a functorch transform", lambda: torch._C._functorch.peek_interpreter_stack() is not None),
    ("torch.jit tracing", torch.jit.is_tracing),
    # Operators call them, and they may raise to leave the function early: nothing could be run again.
    (
        "hooks on saved tensors",
        lambda: torch._C._autograd._top_saved_tensors_default_hooks(True) is not None,  # type: ignore[attr-defined]
    ),
)


def refuses() -> str | None:
    """What is active that capture does not follow, or None. Entries made without it are guarded against it."""
    return next((name for name, active in REFUSED if active()), None)


def content(cell: types.CellType) -> Any:
    """What is in a cell; None for an empty one."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def holds_tensor(value: Any, depth: int = 2) -> bool:
    """A tensor, or a list, tuple or dict with one near its top."""
    if is_subtype(type(value), torch.Tensor):
        return True
    if depth and type(value) in (list, tuple):
        return any(holds_tensor(item, depth - 1) for item in value[:16])
    if depth and type(value) is dict:
        return any(holds_tensor(item, depth - 1) for item in list(value.values())[:16])
    return False
