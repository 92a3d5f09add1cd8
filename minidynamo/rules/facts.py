"""`torch.finfo`, `torch.iinfo`, `inspect.signature`, `slice` and `id`, of arguments that are known."""

from __future__ import annotations

import inspect
import types

import torch

from ..guards.builder import GuardBuilder, can_id_match
from ..reasons import UNSUPPORTED_CALL
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.facts import LimitsVariable, SignatureVariable, parameter_names
from ..variables.functions import InnerFunctionVariable, UserFunctionVariable
from ..variables.methods import UserMethodVariable
from ..variables.sequences import SliceVariable
from ..variables.user_objects import UserObjectVariable
from .builtins import positional, rule

NONE = ConstantVariable(None)


def _limits(kind: type) -> None:
    @rule(kind)
    @positional(f"torch.{kind.__name__}", 1, 1)
    def limits(tx: Tracing, dtype: VariableTracker) -> VariableTracker:
        known = dtype.as_python_constant() if dtype.is_python_constant() else None
        if type(known) is not torch.dtype:
            tx.unsupported(
                UNSUPPORTED_CALL, name=f"torch.{kind.__name__} of something that is no known dtype"
            )
        try:
            return LimitsVariable(kind(known))
        except TypeError as error:
            tx.fails(f"torch.{kind.__name__}", error)


_limits(torch.finfo)
_limits(torch.iinfo)


@rule(inspect.signature)
@positional("inspect.signature", 1, 1)
def _signature(tx: Tracing, fn: VariableTracker) -> VariableTracker:
    """Of plain functions and methods; what a decorator says about another function is left to plain Python."""
    bound = isinstance(fn, UserMethodVariable)
    inner = fn.fn.realize(tx) if isinstance(fn, UserMethodVariable) else fn
    if isinstance(inner, UserFunctionVariable):
        for name in ("__wrapped__", "__signature__", "__text_signature__"):
            if name in inner.fn.__dict__:
                tx.unsupported(UNSUPPORTED_CALL, name=f"inspect.signature of a function with {name}")
            inner.guard_own(tx, name)
    elif not isinstance(inner, InnerFunctionVariable):
        tx.unsupported(UNSUPPORTED_CALL, name=f"inspect.signature of a {fn.type_name()}")
    code: types.CodeType = inner.code()
    if bound and not code.co_argcount:
        tx.unsupported(UNSUPPORTED_CALL, name="inspect.signature of a method without self")
    return SignatureVariable(fn, parameter_names(code)[bound:])


@rule(slice)
@positional("slice", 1, 3)
def _slice(tx: Tracing, *parts: VariableTracker) -> VariableTracker:
    """CPython: slice_new."""
    first, last, step = (NONE, parts[0], NONE) if len(parts) == 1 else (*parts, NONE)[:3]
    return SliceVariable((first, last, step))


@rule(id)
@positional("id", 1, 1)
def _id(tx: Tracing, value: VariableTracker) -> VariableTracker:
    """A constant for objects from outside, which are then guarded by identity: the entry dies with the object."""
    known = value.known_object()
    if isinstance(value, UserObjectVariable) and can_id_match(value.value):
        known = (value.value,)
        value.make_guards(tx, GuardBuilder.ID_MATCH)
    if not known:
        tx.unsupported(UNSUPPORTED_CALL, name=f"id of a {value.type_name()}")
    return ConstantVariable(id(known[0]), guards=VariableTracker.propagate(value))
