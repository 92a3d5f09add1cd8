"""copy.copy and copy.deepcopy of what the trace knows."""

from __future__ import annotations

import copy
import types

from ..reasons import UNSUPPORTED_CALL
from ..static_access import type_lookup
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.deques import DequeVariable
from ..variables.dicts import DictVariable
from ..variables.functions import BuiltinVariable, FunctionVariable
from ..variables.sequences import ListVariable, TupleVariable
from ..variables.user_objects import NewObjectVariable, UserObject, is_usual
from .builtins import positional, rule
from .classes import allocate, makes_plain_objects, may_allocate

Memo = dict[
    int, tuple[VariableTracker, VariableTracker]
]  # id -> (the original, its copy): the id stays its own
ATOMS = (ConstantVariable, BuiltinVariable, FunctionVariable)
HOOKS = (
    "__copy__",
    "__deepcopy__",
    "__reduce__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__setstate__",
    "__getstate__",
)


@rule(copy.copy)
@positional("copy.copy", 1, 1)
def _copy(tx: Tracing, value: VariableTracker) -> VariableTracker:
    """CPython: copy.copy."""
    if isinstance(value, ATOMS) or type(value) is TupleVariable:
        return value
    if type(value) in (ListVariable, DequeVariable) or isinstance(value, DictVariable):
        return value.call_method(tx, "copy", [], {})
    made = empty_like(tx, value, "copy.copy")
    for name in names_of(tx, value, "copy.copy"):
        made.store(tx, name, value.getattr(tx, name))
    return made


@rule(copy.deepcopy)
@positional("copy.deepcopy", 1, 1)
def _deepcopy(tx: Tracing, value: VariableTracker) -> VariableTracker:
    return deep(tx, value, {})


def deep(tx: Tracing, value: VariableTracker, memo: Memo) -> VariableTracker:
    """CPython: copy.deepcopy: one object in two places stays one; a tuple of atoms is itself."""
    value = value.realize(tx)
    known = memo.get(id(value))
    if known is not None:
        return known[1]
    if isinstance(value, ATOMS):
        return value
    tx.trace.step()
    if type(value) is TupleVariable:
        items = [item.realize(tx) for item in value.items]
        copies = [deep(tx, item, memo) for item in items]
        same = all(a is b for a, b in zip(items, copies))
        made = value if same else TupleVariable(copies, guards=value.guards)
        memo[id(value)] = value, made
        return made
    if type(value) is ListVariable:
        fresh = ListVariable([], guards=value.guards)
        memo[id(value)] = value, fresh
        tx.trace.holds(fresh)
        fresh.items.extend(deep(tx, item, memo) for item in list(value.items))
        return fresh
    if type(value) is DictVariable:
        filled = DictVariable({}, guards=value.guards)
        memo[id(value)] = value, filled
        tx.trace.holds(filled)
        for key in value.all_keys(tx):
            if not isinstance(key.tracker.realize(tx), ATOMS):
                tx.unsupported(UNSUPPORTED_CALL, name="copy.deepcopy of a dict with such keys")
            filled.put(tx, key, deep(tx, value.items[key], memo))
        return filled
    made_object = empty_like(tx, value, "copy.deepcopy")
    memo[id(value)] = value, made_object
    for name in names_of(tx, value, "copy.deepcopy"):
        made_object.store(tx, name, deep(tx, value.getattr(tx, name), memo))
    return made_object


def empty_like(tx: Tracing, value: VariableTracker, name: str) -> NewObjectVariable:
    """CPython: copyreg.__newobj__, for classes that say nothing about copying."""
    if not isinstance(value, UserObject) or not may_allocate(value.cls) or not makes_plain_objects(value.cls):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{name} of a {value.type_name()}")
    usual = (
        is_usual(value.cls, "__setattr__") and type_lookup(value.cls, "__reduce_ex__") is object.__reduce_ex__
    )
    if not usual or any(type(type_lookup(value.cls, hook)) is types.FunctionType for hook in HOOKS):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{name} of a {value.type_name()}")
    cls = value.class_variable(tx).realize(tx)
    assert isinstance(cls, BuiltinVariable)
    for hook in (*HOOKS, "__reduce_ex__"):
        value.special(tx, hook)
    return allocate(tx, cls)


def names_of(tx: Tracing, value: VariableTracker, name: str) -> list[str]:
    """The attributes of an instance made in the trace, in their order; those of others can be more than were looked at."""
    if not isinstance(value, NewObjectVariable):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{name} of a {value.type_name()} from outside")
    return list(value.attributes)
