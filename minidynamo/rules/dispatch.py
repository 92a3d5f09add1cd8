"""Calls of builtins and torch functions, in one order: pure and constant, rule, graph, unsupported."""

from __future__ import annotations

from typing import Any

from ..reasons import UNSUPPORTED_CALL
from ..variables.base import VariableTracker
from ..variables.constant import fold
from ..variables.functions import BuiltinVariable, TorchFunctionVariable
from ..variables.sequences import SequenceVariable
from . import control, tensor_ops
from .builtins import PURE, RULES


def call(
    tx: Any, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """Call the builtin or torch function `fn`. Breaks the graph when nothing in the order applies."""
    target = fn.fn
    if not _hashable(target):
        tx.unsupported(UNSUPPORTED_CALL, name=fn.name())
    if target in PURE and not kwargs:
        args = [tensor_ops.realized(tx, a) for a in args]
        if all(a.is_python_constant() for a in args) and not any(_aliases(a) for a in args):
            return fold(tx, fn.name(), target, *args)
    rule = RULES.get(target) or control.RULES.get(target)
    if rule is not None:
        return rule(tx, args, kwargs)
    if isinstance(fn, TorchFunctionVariable):
        return tensor_ops.tensor_op(tx, target, args, kwargs)
    tx.unsupported(UNSUPPORTED_CALL, name=_user_name(target))


def _hashable(target: Any) -> bool:
    """Only identity-hashed callables are looked up: hashing anything else could run user code."""
    return type(target).__hash__ in (object.__hash__, type.__hash__) or type(target).__module__ == "builtins"


def _aliases(value: VariableTracker) -> bool:
    """Folding a call over a list of the trace could give a result that shares the list."""
    return isinstance(value, SequenceVariable) and value.mutable and value.source is not None


def _user_name(target: Any) -> str:
    module = getattr(target, "__module__", None)
    name = getattr(target, "__qualname__", repr(type(target)))
    return name if module in (None, "builtins") else f"{module}.{name}"
