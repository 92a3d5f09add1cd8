"""Calls of builtins and torch functions, in one order: pure and constant, rule, graph, unsupported."""

from __future__ import annotations

import types
from typing import Any

import torch

from ..guards.builder import GuardBuilder
from ..reasons import TENSOR_DATA, UNSUPPORTED_CALL
from ..static_access import static_attr
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import fold
from ..variables.enums import is_enumeration
from ..variables.exceptions import follows, make_exception
from ..variables.functions import BuiltinVariable, TorchFunctionVariable, UserFunctionVariable
from ..variables.namedtuples import is_namedtuple, make_namedtuple
from ..variables.numbers import NumberVariable
from ..variables.sequences import RangeVariable, SequenceVariable
from . import (  # noqa: F401 - iteration, nn_modules fill RULES
    autograd_functions,
    checkpoints,
    classes,
    collections_,
    control,
    copying,
    devices,
    facts,
    getters,
    grad_mode,
    iteration,
    methods,
    nn_modules,
    polyfills,
    tensor_ops,
    torch_state,
)
from .builtins import PURE, RULES


def call(
    tx: Tracing, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """Call the builtin or torch function `fn`. Breaks the graph when nothing in the order applies."""
    target = fn.fn
    if not _hashable(target):
        tx.unsupported(UNSUPPORTED_CALL, name=fn.name())
    if target in PURE and not kwargs:
        args = [tensor_ops.realized(tx, a) for a in args]
        if all(a.is_python_constant() for a in args) and not any(_aliases(a) or _is_long(a) for a in args):
            return fold(tx, fn.name(), target, *args)
        read = next((a for a in args if isinstance(a, NumberVariable)), None)
        if read is not None and target not in RULES:
            tx.unsupported(TENSOR_DATA, name=f"{fn.name()}() of a number that was read from a tensor")
    rule = RULES.get(target) or control.rule_of(target)
    if rule is not None:
        return rule(tx, args, kwargs)
    if follows(target):
        return make_exception(tx, fn, args, kwargs)
    if is_namedtuple(target):
        return make_namedtuple(tx, target, fn, args, kwargs)
    if is_enumeration(target):
        return classes.member_by_value(tx, fn, args, kwargs)
    if classes.may_instantiate(target):
        return classes.instantiate(tx, fn, args, kwargs)
    if isinstance(fn, TorchFunctionVariable):
        made = tensor_ops.overridden(tx, target, args, kwargs)
        if made is not None:
            return made
        if (
            isinstance(target, types.FunctionType)
            and fn.source is not None
            and not _are_operands(tx, args, kwargs)
        ):
            return tx.inline(function_of(tx, fn), args, kwargs)
        return tensor_ops.tensor_op(tx, target, args, kwargs)
    if methods.is_method(target):
        return methods.call_method(tx, target, args, kwargs)
    tx.unsupported(UNSUPPORTED_CALL, name=_user_name(target))


def _are_operands(tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> bool:
    """Whether all arguments can be those of a node."""
    try:
        for arg in (*args, *kwargs.values()):
            tensor_ops.realized(tx, arg).as_python_proxy()
    except TypeError:
        return False
    return True


def function_of(tx: Tracing, fn: TorchFunctionVariable) -> UserFunctionVariable:
    """A torch function written in Python that cannot be a node, because it is given objects that a graph has not: its code."""
    assert fn.source is not None
    made = UserFunctionVariable(fn.fn, fn.source)
    made.make_guards(tx, GuardBuilder.FUNCTION_MATCH)
    return made


def _hashable(target: Any) -> bool:
    """Only identity-hashed callables are looked up (and torch's operators): hashing anything else could run user code."""
    if type(target) in OPERATORS:
        return True
    found: Any = type(target).__hash__
    return found in (object.__hash__, type.__hash__) or type(target).__module__ == "builtins"


OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


def _aliases(value: VariableTracker) -> bool:
    """Folding a call over a list of the trace could give a result that shares the list."""
    return isinstance(value, SequenceVariable) and value.mutable and value.source is not None


def _is_long(value: VariableTracker) -> bool:
    """A range that plain Python would walk for long: folding must not do it while tracing."""
    return isinstance(value, RangeVariable) and len(value.value) > LONG


LONG = 10_000


def _user_name(target: Any) -> str:
    """Looked up without running a metaclass's code."""
    names = []
    for attribute in ("__module__", "__qualname__"):
        try:
            names.append(static_attr(target, attribute))
        except AttributeError:
            names.append(None)
    module, name = (value if type(value) is str else None for value in names)
    name = name or f"an object of type {type(target).__name__}"
    return name if module in (None, "builtins") else f"{module}.{name}"
