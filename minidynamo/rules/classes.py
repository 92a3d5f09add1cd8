"""Making instances: classes of the user whose `__new__` is object's, `dict(...)`, `super()`."""

from __future__ import annotations

import functools
import types
from typing import Any

from ..reasons import UNSUPPORTED_CALL
from ..sources import AttrSource, ItemSource
from ..static_access import type_lookup
from ..variables import sets
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.dicts import DictVariable, from_names
from ..variables.exceptions import ExceptionVariable
from ..variables.functions import BuiltinVariable
from ..variables.keys import Key
from ..variables.partials import PLACEHOLDER, PartialVariable
from ..variables.sequences import NONE, TupleVariable
from ..variables.sets import FrozenSetVariable
from ..variables.super import SuperVariable
from ..variables.user_objects import NewObjectVariable, UserObject, has_plain_attributes
from .builtins import Args, Rule, items_of, positional, rule

HEAP_TYPE = 0x200


def may_instantiate(cls: Any) -> bool:
    """Calling `cls` does what `type.__call__` does with object's own `__new__`: nothing but `__init__` is the user's."""
    return (
        type(cls) is type
        and bool(cls.__flags__ & HEAP_TYPE)
        and type_lookup(cls, "__new__") is type_lookup(object, "__new__")
        and type_lookup(cls, "__del__") is None
        and has_plain_attributes(cls)
    )


def instantiate(
    tx: Tracing, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """CPython: type_call."""
    made = NewObjectVariable(fn.fn, fn)
    tx.trace.holds(made)
    init = type_lookup(fn.fn, "__init__")
    if isinstance(init, types.FunctionType):
        made.call_special(tx, "__init__", args, kwargs)
    elif args or kwargs or init is not object.__init__:
        tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()} with these arguments")
    return made


def make_exception(
    tx: Tracing, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """An exception object of a class that `variables.exceptions.follows`."""
    if kwargs:
        tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()} with keywords")
    return ExceptionVariable(fn.fn, list(args))


@rule(str)
def _str(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """Of an exception made in the trace; constants are folded before."""
    value = args[0].realize(tx) if len(args) == 1 and not kwargs else None
    text = value.text() if isinstance(value, ExceptionVariable) else None
    if text is None:
        tx.unsupported(UNSUPPORTED_CALL, name="str of something that is not known")
    return ConstantVariable(text)


def member_by_value(
    tx: Tracing, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """`Enumeration(value)`. CPython: EnumType.__call__, Enum.__new__; only values that are there."""
    value = args[0].realize(tx) if len(args) == 1 and not kwargs else None
    if value is not None and value.python_type() is fn.fn:
        return value
    if isinstance(value, ConstantVariable) and fn.source is not None:
        known = type_lookup(fn.fn, "_value2member_map_")
        key = Key(tx, value).value
        if type(known) is dict and key in known:
            places = AttrSource(fn.source, "_value2member_map_")
            return tx.wrap(known[key], ItemSource(places, key))
    tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()} with these arguments")


@rule(functools.partial)
def _partial(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: partial_new. A partial of a partial binds to the inner function."""
    if not args or any(getattr(a.realize(tx), "fn", None) is PLACEHOLDER for a in args):
        tx.unsupported(UNSUPPORTED_CALL, name="functools.partial with these arguments")
    fn, *bound = args
    fn = fn.realize(tx)
    if (
        type_lookup(fn.python_type(), "__call__") is None
        or fn.source is not None
        and isinstance(fn, PartialVariable)
    ):
        tx.unsupported(UNSUPPORTED_CALL, name=f"functools.partial of a {fn.type_name()}")
    if isinstance(fn, PartialVariable):
        before, named = fn.parts(tx)
        fn, bound, kwargs = fn.func, [*before, *bound], {**named, **kwargs}
    return PartialVariable(fn, TupleVariable(bound), from_names(tx, kwargs))


@rule(object.__init__)
def _object_init(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    if len(args) != 1 or kwargs:
        tx.unsupported(UNSUPPORTED_CALL, name="object.__init__ with arguments")
    return NONE


@rule(dict)
def _dict(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    made = from_names(tx, {}) if args else from_names(tx, kwargs)
    if len(args) > 1:
        tx.unsupported(UNSUPPORTED_CALL, name="dict with these arguments")
    if args:
        made.call_method(tx, "update", args, kwargs)
    return made


@rule(dict.fromkeys)
@positional("dict.fromkeys", 1, 2)
def _fromkeys(tx: Tracing, keys: VariableTracker, value: VariableTracker = NONE) -> VariableTracker:
    made = DictVariable({}, guards=VariableTracker.propagate(keys))
    for item in items_of(tx, "dict.fromkeys", keys):
        made.put(tx, Key(tx, item), value)
    return made


def _make_set(kind: type) -> Rule:
    @positional(kind.__name__, 0, 1)
    def build(tx: Tracing, *values: VariableTracker) -> VariableTracker:
        if kind is frozenset and values and isinstance(values[0], FrozenSetVariable):
            return values[0]
        return sets.made_by(tx, kind, tuple(sets.operand_of(tx, v) for v in values), *values)

    return build


rule(set)(_make_set(set))
rule(frozenset)(_make_set(frozenset))


@rule(super)
def _super(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: super_init. Without arguments: the cell `__class__` and the first argument of the frame."""
    if kwargs or len(args) not in (0, 2):
        tx.unsupported(UNSUPPORTED_CALL, name="super with these arguments")
    if not args:
        names = tx.code.co_varnames
        cell = tx.cells.get("__class__")
        first = tx.symbolic_locals.get(names[0]) if tx.code.co_argcount else None
        if cell is None or first is None:
            tx.unsupported(UNSUPPORTED_CALL, name="super without a class or first argument")
        args = [tx.read_cell(cell), first]
    cls, owner = (a.realize(tx) for a in args)
    if (
        not isinstance(cls, BuiltinVariable)
        or not isinstance(cls.fn, type)
        or not isinstance(owner, UserObject)
    ):
        tx.unsupported(UNSUPPORTED_CALL, name="super of something that is not followed")
    return SuperVariable(cls, owner)
