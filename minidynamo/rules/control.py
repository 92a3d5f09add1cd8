"""minidynamo's own functions inside captured code: `graph_break`, `is_compiling`, `disable` and friends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..markers import graph_break, is_compiling
from ..reasons import EXPLICIT_BREAK
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from .builtins import positional


def _break(tx: Tracing) -> VariableTracker:
    tx.unsupported(EXPLICIT_BREAK)


def _true(tx: Tracing) -> VariableTracker:
    """Captured code differs from plain Python here on purpose."""
    tx.trace.comparable = False
    return ConstantVariable(True)


def _false(tx: Tracing) -> VariableTracker:
    """Other ways of capture, none of which is active where this one is."""
    return ConstantVariable(False)


RULES: dict[Any, Callable[..., VariableTracker]] = {
    graph_break: positional("graph_break", 0, 0)(_break),
    is_compiling: positional("is_compiling", 0, 0)(_true),
    torch.compiler.is_compiling: positional("is_compiling", 0, 0)(_true),
    torch.compiler.is_dynamo_compiling: positional("is_dynamo_compiling", 0, 0)(_true),
    torch.compiler.is_exporting: positional("is_exporting", 0, 0)(_false),
    torch.jit.is_tracing: positional("is_tracing", 0, 0)(_false),
}
