"""minidynamo's own functions inside captured code: `graph_break`, `is_compiling`, `disable` and friends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..reasons import EXPLICIT_BREAK
from ..variables.base import VariableTracker
from ..variables.constant import ConstantVariable
from ..markers import graph_break, is_compiling


def _break(tx: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> VariableTracker:
    tx.unsupported(EXPLICIT_BREAK)


def _true(tx: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """Captured code differs from plain Python here on purpose."""
    tx.trace.comparable = False
    return ConstantVariable(True)


def _grad_enabled(tx: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """Follows from the GLOBAL_STATE guard that every capture with this call carries."""
    tx.guard_global_state()
    return ConstantVariable(tx.grad_mode)


RULES: dict[Any, Callable[..., VariableTracker]] = {
    graph_break: _break,
    is_compiling: _true,
    torch.compiler.is_compiling: _true,
    torch.compiler.is_dynamo_compiling: _true,
    torch.is_grad_enabled: _grad_enabled,
}
