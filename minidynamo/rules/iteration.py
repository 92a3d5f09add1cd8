"""Builtins that iterate: enumerate, zip, map, filter, reversed, iter, next, sum, sorted."""

from __future__ import annotations

from typing import Any

from ..reasons import UNSUPPORTED_CALL
from ..variables import protocol
from ..variables.adaptors import EnumerateVariable, FilterVariable, MapVariable, ReversedVariable, ZipVariable
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable, fold
from ..variables.deques import DequeIteratorVariable, DequeVariable
from ..variables.dicts import DictIteratorVariable, DictVariable, DictViewVariable
from ..variables.iterators import RangeIteratorVariable
from ..variables.sequences import ListVariable, RangeVariable, SequenceVariable, TupleVariable
from ..variables.sets import SetVariable
from .builtins import RULES, Args, Rule, items_of, positional, rule
from .polyfills import extreme, until


@rule(enumerate)
@positional("enumerate", 1, 2)
def _enumerate(tx: Tracing, value: VariableTracker, *start: VariableTracker) -> VariableTracker:
    first = (
        start[0].as_python_constant() if start and start[0].is_python_constant() else 0 if not start else None
    )
    if type(first) is not int:
        tx.unsupported(UNSUPPORTED_CALL, name="enumerate with a start that is not a plain int")
    return EnumerateVariable(protocol.iterate(tx, value), first)


@rule(zip)
def _zip(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    if kwargs:
        tx.unsupported(UNSUPPORTED_CALL, name="zip with keywords")
    return ZipVariable(tuple(protocol.iterate(tx, a) for a in args))


@rule(map)
def _map(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    if kwargs or len(args) < 2:
        tx.unsupported(UNSUPPORTED_CALL, name="map with these arguments")
    return MapVariable(args[0].realize(tx), tuple(protocol.iterate(tx, a) for a in args[1:]))


@rule(filter)
@positional("filter", 2, 2)
def _filter(tx: Tracing, fn: VariableTracker, value: VariableTracker) -> VariableTracker:
    return FilterVariable(fn, protocol.iterate(tx, value))


@rule(reversed)
@positional("reversed", 1, 1)
def _reversed(tx: Tracing, value: VariableTracker) -> VariableTracker:
    if isinstance(value, RangeVariable):
        return RangeIteratorVariable(value.value[::-1], value.guards)
    if isinstance(value, DequeVariable):
        return DequeIteratorVariable(value, backwards=True)
    if isinstance(value, (DictVariable, DictViewVariable)):
        owner, name = (value, "keys") if isinstance(value, DictVariable) else (value.owner, value.name)
        return DictIteratorVariable(owner, name, owner.all_keys(tx), backwards=True)
    if not isinstance(value, SequenceVariable):
        tx.unsupported(UNSUPPORTED_CALL, name=f"reversed of {value.type_name()}")
    return ReversedVariable(value)


@rule(any)
@positional("any", 1, 1)
def _any(tx: Tracing, values: VariableTracker) -> VariableTracker:
    return ConstantVariable(_first(tx, values, True))


@rule(all)
@positional("all", 1, 1)
def _all(tx: Tracing, values: VariableTracker) -> VariableTracker:
    return ConstantVariable(not _first(tx, values, False))


def _first(tx: Tracing, values: VariableTracker, wanted: bool) -> bool:
    """Whether an item of that truth is met; iteration stops at it."""
    iterator = protocol.iterate(tx, values)
    while (item := iterator.slot_next(tx)) is not None:
        tx.trace.step()
        if protocol.truth(tx, item) is wanted:
            return True
    return False


@rule(iter)
@positional("iter", 1, 2)
def _iter(tx: Tracing, value: VariableTracker, *sentinel: VariableTracker) -> VariableTracker:
    return until(tx, value, sentinel[0]) if sentinel else protocol.iterate(tx, value)


@rule(next)
@positional("next", 1, 2)
def _next(tx: Tracing, iterator: VariableTracker, *default: VariableTracker) -> VariableTracker:
    item = iterator.slot_next(tx)
    if item is not None:
        return item
    if not default:
        tx.raises("next", StopIteration)
    return default[0]


@rule(sum)
@positional("sum", 1, 2)
def _sum(tx: Tracing, values: VariableTracker, *start: VariableTracker) -> VariableTracker:
    """CPython: builtin_sum_impl, which adds from the left with `+`; runs of numbers at the beginning are added in a way of their own
    (from 3.12 on floats with compensation), so they are left to the real one."""
    items = items_of(tx, "sum", values)
    numbers = 0
    total: VariableTracker = start[0] if start else ConstantVariable(0)
    if total.is_python_constant():
        items = [item.realize(tx) for item in items]
        while numbers < len(items) and items[numbers].is_python_constant():
            numbers += 1
        total = fold(tx, "sum", lambda first, *rest: sum(rest, first), total, *items[:numbers])
    for item in items[numbers:]:
        total = protocol.binary_op(tx, "+", total, item)
    return total


def orderable(tx: Tracing, name: str, values: VariableTracker) -> list[VariableTracker]:
    """The items of an iterable that is to be sorted. A set of numbers or of strings has only one sorted order: its own is not asked
    for."""
    values = values.realize(tx)
    if isinstance(values, SetVariable) and {*map(type, values.real)} in ONE_ORDER:
        values.elements(tx)
        return values.trackers()
    return items_of(tx, name, values)


ONE_ORDER: tuple[set[type], ...] = (set(), {int}, {float}, {str}, {bytes})


def _extreme(fn: Any) -> Rule:
    general = extreme(fn)

    def among(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        """Of an iterable of constants; several arguments that are constants are folded before."""
        if len(args) != 1 or kwargs:
            return general(tx, args, kwargs)
        items = [item.realize(tx) for item in orderable(tx, fn.__name__, args[0])]
        if not all(item.is_python_constant() for item in items):
            return general(tx, [TupleVariable(items)], {})
        return fold(tx, fn.__name__, lambda *known: fn(known), *items)

    return among


for _fn in (min, max):
    if _fn not in RULES:
        rule(_fn)(_extreme(_fn))


@rule(sorted)
def _sorted(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: list.sort, when the keys are constants. Keys are worked out first, from the left."""
    key, reverse = kwargs.get("key"), kwargs.get("reverse", ConstantVariable(False)).realize(tx)
    if len(args) != 1 or not kwargs.keys() <= {"key", "reverse"} or not reverse.is_python_constant():
        tx.unsupported(UNSUPPORTED_CALL, name="sorted with these arguments")
    by = None if key is None or key.realize(tx).python_type() is type(None) else key
    items = items_of(tx, "sorted", args[0]) if by is not None else orderable(tx, "sorted", args[0])
    keys = [(item if by is None else tx.call(by, [item], {})).realize(tx) for item in items]
    if not all(k.is_python_constant() for k in keys):
        tx.unsupported(UNSUPPORTED_CALL, name="sorted by values that are not known")
    values = [k.as_python_constant() for k in keys]
    try:
        order = sorted(range(len(items)), key=values.__getitem__, reverse=reverse.as_python_constant())
    except Exception as error:
        tx.fails("sorted", error)
    return ListVariable([items[i] for i in order], guards=VariableTracker.propagate(*keys))
