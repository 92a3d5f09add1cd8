"""minidynamo's own functions inside captured code: `graph_break`, `is_compiling`, `disable` and friends."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from ..markers import graph_break, is_compiling
from ..reasons import EXPLICIT_BREAK
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from .builtins import positional


def _broken(tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """`graph_break()`, with or without a message."""
    tx.unsupported(EXPLICIT_BREAK)


def _true(tx: Tracing) -> VariableTracker:
    """Captured code differs from plain Python here on purpose."""
    tx.trace.comparable = False
    return ConstantVariable(True)


def _false(tx: Tracing) -> VariableTracker:
    """Other ways of capture, none of which is active where this one is."""
    return ConstantVariable(False)


def _none(tx: Tracing) -> VariableTracker:
    """The same, where the answer would be the state of that capture."""
    return ConstantVariable(None)


RULES: dict[Any, Callable[..., VariableTracker]] = {
    graph_break: _broken,
    is_compiling: positional("is_compiling", 0, 0)(_true),
    torch.compiler.is_compiling: positional("is_compiling", 0, 0)(_true),
    torch.compiler.is_dynamo_compiling: positional("is_dynamo_compiling", 0, 0)(_true),
    torch.compiler.is_exporting: positional("is_exporting", 0, 0)(_false),
    torch.jit.is_tracing: positional("is_tracing", 0, 0)(_false),
    torch._C._get_tracing_state: positional("_get_tracing_state", 0, 0)(_none),
}


# Functions of torch._dynamo, which need not be loaded, by module and name.
OF_DYNAMO: dict[tuple[str, str], Callable[..., VariableTracker]] = {
    ("torch._dynamo.decorators", "graph_break"): _broken,
    ("torch._dynamo.external_utils", "is_compiling"): RULES[is_compiling],
}


def rule_of(target: Any) -> Callable[..., VariableTracker] | None:
    """The rule for one of these functions, by itself or by its name."""
    rule = RULES.get(target)
    if rule is None and type(target) is types.FunctionType:
        rule = OF_DYNAMO.get((target.__module__, target.__qualname__))
    return rule
