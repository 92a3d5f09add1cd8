"""Lists, tuples, torch.Size, ranges and slices."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS, UNSUPPORTED_CALL
from ..sources import ItemSource, Source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import COMPARE, ConstantVariable, fold
from .iterators import IteratorVariable, RangeIteratorVariable, SequenceIteratorVariable
from .keys import is_plain
from .lazy import LazyVariable
from .opaque import wrap_opaque
from .registry import FROM_PYTHON, wraps

NONE = ConstantVariable(None)


BUILTINS: dict[str, VariableTracker] = {}  # "sorted": filled by the file of functions
LONGEST = 10_000  # items of a sequence that `*` makes while tracing


def known_values(tx: Tracing, *trackers: VariableTracker) -> list[Any] | None:
    """The values, for comparing them with each other; None when one is not known. nan counts as unknown: whether a container
    equals another then depends on the identity of its items, which is not guarded."""
    values: list[Any] = []
    for tracker in trackers:
        tracker = tracker.realize(tx)
        if isinstance(tracker, SequenceVariable):
            items = known_values(tx, *tracker.items)
            if items is None or not tracker.compares_as_tuple:
                return None
            values.append(tracker.real_type(items))
        elif isinstance(tracker, ConstantVariable) and tracker.value == tracker.value:
            values.append(tracker.value)
        elif (found := tracker.known_object()) and is_plain(found[0]):
            values.append(found[0])
        else:
            return None
    return values


class SequenceVariable(VariableTracker):
    """Common to list and tuple: a known number of items. `items` may be lazy."""

    __slots__ = ("items",)
    real_type: type = tuple
    compares_as_tuple = True  # nothing but its items tells it from another sequence of its `real_type`

    def __init__(
        self, items: list[VariableTracker], source: Source | None = None, guards: Provenance = NO_GUARDS
    ) -> None:
        super().__init__(source, guards)
        self.items = items

    def like(self, items: list[VariableTracker], guards: Provenance) -> SequenceVariable:
        """A new sequence as slicing, `+` and `*` make it."""
        return type(self)(items, guards=guards)

    def python_type(self) -> type:
        return self.real_type

    def is_python_constant(self) -> bool:
        return all(item.is_python_constant() for item in self.items)

    def as_python_constant(self) -> Any:
        return self.real_type([item.as_python_constant() for item in self.items])

    def is_python_proxy(self) -> bool:
        return True

    def as_python_proxy(self) -> Any:
        return (tuple if self.real_type is torch.Size else self.real_type)(
            [i.as_python_proxy() for i in self.items]
        )

    def as_meta(self) -> Any:
        return (tuple if self.real_type is torch.Size else self.real_type)([i.as_meta() for i in self.items])

    def realize_deep(self, tx: Tracing) -> None:
        """Realise every item, nested ones too: needed before the sequence goes into the graph."""
        for i, item in enumerate(self.items):
            real = self.items[i] = item.realize(tx)
            if isinstance(real, SequenceVariable):
                real.realize_deep(tx)

    def children(self) -> tuple[VariableTracker, ...]:
        return tuple(self.items) if self.source is None else ()

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        return self.items

    def is_behind(self) -> bool:
        """Whether the real object gets the trace's changes after values have been rebuilt: a place in it cannot be set before."""
        return False

    def slot_len(self, tx: Tracing) -> int:
        return len(self.items)

    def slot_truth(self, tx: Tracing) -> bool:
        return bool(self.items)

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return SequenceIteratorVariable(self, guards=VariableTracker.propagate(self))

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        if isinstance(key, SliceVariable) and key.is_python_constant():
            try:
                picked = self.items[key.as_python_constant()]
            except (TypeError, ValueError) as error:
                tx.fails("subscript", error)
            return self.like(picked, VariableTracker.propagate(self, key))
        if key.is_python_constant() and type(key.as_python_constant()) in (int, bool):
            index = key.as_python_constant()
            if not -len(self.items) <= index < len(self.items):
                kind = "list" if self.real_type is list else "tuple"
                tx.raises("subscript", IndexError, ConstantVariable(f"{kind} index out of range"))
            return self.items[index]
        return VariableTracker.slot_getitem(self, tx, key)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        known = known_values(tx, item, self)
        if known is None:
            return VariableTracker.slot_contains(self, tx, item)
        return known[0] in known[1]

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        guards = VariableTracker.propagate(left, right)
        if (
            symbol in ("+", "+=")
            and isinstance(left, SequenceVariable)
            and isinstance(right, SequenceVariable)
        ):
            if left.real_type is right.real_type:
                return left.like([*left.items, *right.items], guards)
            if {left.real_type, right.real_type} == {tuple, torch.Size}:  # Size.__add__, Size.__radd__
                items = [item.realize(tx) for item in (*left.items, *right.items)]
                return SizeVariable(items, guards=guards) if all(map(is_int, items)) else None
            return None
        if symbol in ("*", "*="):
            count = right if left is self else left
            if count.is_python_constant() and type(count.as_python_constant()) in (int, bool):
                times = count.as_python_constant()
                if times * len(self.items) <= LONGEST and abs(times) < sys.maxsize:
                    return self.like(self.items * times, guards)
        return VariableTracker.slot_binary(self, tx, symbol, left, right)

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        known = known_values(tx, left, right)
        if known is None:
            return VariableTracker.slot_compare(self, tx, symbol, left, right)
        made = fold(tx, f"operator {symbol}", lambda: COMPARE[symbol](*known))
        made.replace_guards(VariableTracker.propagate(left, right))
        return made

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        known = known_values(tx, self, *args)
        if name in ("index", "count", "numel") and not kwargs and known is not None:
            made = fold(tx, f"{self.type_name()}.{name}", lambda: getattr(known[0], name)(*known[1:]))
            made.replace_guards(VariableTracker.propagate(self, *args))
            return made
        tx.unsupported(UNSUPPORTED_CALL, name=f"{self.type_name()}.{name}")


class TupleVariable(SequenceVariable):
    """A tuple. Rebuilt from its source when it has one, else item by item."""

    __slots__ = ()
    real_type = tuple

    def as_key(self, tx: Tracing) -> Any:
        return tuple(item.realize(tx).as_key(tx) for item in self.items)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return E.Tuple(tuple(emit.value(item) for item in self.items))


def is_int(value: VariableTracker) -> bool:
    return value.is_python_constant() and type(value.as_python_constant()) is int


class SizeVariable(SequenceVariable):
    """torch.Size; always made in the trace (it comes from metadata)."""

    __slots__ = ()
    real_type = torch.Size

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return E.Call(E.Const(torch.Size), (E.Tuple(tuple(emit.value(item) for item in self.items)),))


class ListVariable(SequenceVariable):
    """A list. One made in the trace may be changed there; changing one that came from outside is a side effect."""

    __slots__ = ("changes_later",)
    real_type: type = list
    mutable = True

    def __init__(
        self, items: list[VariableTracker], source: Source | None = None, guards: Provenance = NO_GUARDS
    ) -> None:
        super().__init__(items, source, guards)
        self.changes_later = False

    def is_behind(self) -> bool:
        return self.changes_later

    def is_python_constant(self) -> bool:
        return self.source is None and super().is_python_constant()

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return E.List(tuple(emit.value(item) for item in self.items))

    def change(self, tx: Tracing, fn: Any, *operands: VariableTracker) -> None:
        """A list from outside changes: the call `fn(self, *operands)` is replayed after the graph has run."""
        if self.source is not None:
            self.changes_later = True
            tx.effect_call(fn, self, *operands)

    def position(self, key: VariableTracker) -> int | None:
        """The index that `key` is, when it is one of an item."""
        index: Any = key.as_python_constant() if key.is_python_constant() else None
        known = type(index) in (int, bool) and -len(self.items) <= index < len(self.items)
        return int(index) if known else None

    def forget(self) -> None:
        self.items.clear()

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        place = self.place(tx, key)
        if place is None:
            VariableTracker.slot_setitem(self, tx, key, value)
        elif type(place) is slice:
            items = items_to_add(tx, "assignment to a slice", value)
            try:
                changed = list(self.items)
                changed[place] = items
            except ValueError as error:
                tx.fails("assignment to a slice", error)
            self.change(tx, list.__setitem__, key, TupleVariable(items))
            self.items[:] = changed
        else:
            self.change(tx, list.__setitem__, key, value)
            self.items[place] = value

    def slot_delitem(self, tx: Tracing, key: VariableTracker) -> None:
        place = self.place(tx, key)
        if place is None:
            VariableTracker.slot_delitem(self, tx, key)
        else:
            self.change(tx, list.__delitem__, key)
            del self.items[place]

    def place(self, tx: Tracing, key: VariableTracker) -> Any:
        """The int or slice that `key` is; None when it is not known. A wrong index is the program's own error."""
        if isinstance(key, SliceVariable):
            return key.as_python_constant() if key.is_python_constant() else None
        if key.is_python_constant() and type(key.as_python_constant()) in (int, bool):
            if self.position(key) is None:
                tx.raises("subscript", IndexError, ConstantVariable("list assignment index out of range"))
            return self.position(key)
        return None

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """CPython: list_inplace_concat takes any iterable, list_inplace_repeat works in place."""
        if left is self and symbol == "+=":
            _extend(self, tx, right)
            return self
        made = super().slot_binary(tx, symbol, left, right)
        if left is self and symbol == "*=" and isinstance(made, ListVariable):
            self.change(tx, list.__imul__, right)
            self.items[:] = made.items
            return self
        return made

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "sort" and not args:
            return _sort(self, tx, kwargs)
        method = LIST_METHODS.get((name, len(args))) if not kwargs else None
        if method is None:
            return super().call_method(tx, name, args, kwargs)
        return method(self, tx, *args)


def _append(self: ListVariable, tx: Tracing, item: VariableTracker) -> VariableTracker:
    self.change(tx, list.append, item)
    self.items.append(item)
    return NONE


def items_to_add(tx: Tracing, name: str, other: VariableTracker) -> list[VariableTracker]:
    """The items of an iterable, read to its end before anything is changed."""
    other = other.realize(tx)
    items = other.sequence_items(tx)
    if items is None and isinstance(other, IteratorVariable):
        items = []
        while (item := other.slot_next(tx)) is not None:
            tx.trace.step()
            items.append(item)
    if items is None:
        tx.unsupported(UNSUPPORTED_CALL, name=f"{name} of {other.type_name()}")
    return list(items)


def _extend(self: ListVariable, tx: Tracing, other: VariableTracker) -> VariableTracker:
    items = items_to_add(tx, "list.extend", other)
    self.change(tx, list.extend, TupleVariable(items))
    self.items.extend(items)
    return NONE


def _sort(self: ListVariable, tx: Tracing, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: list_sort_impl, which empties the list while it works."""
    items = list(self.items)
    self.items.clear()
    made = tx.call(BUILTINS["sorted"], [ListVariable(items)], kwargs).realize(tx)
    if self.items or not isinstance(made, ListVariable):
        tx.unsupported(OPERATOR_FAILS, name="list.sort of a list that changes", error="ValueError")
    everything = SliceVariable((NONE, NONE, NONE))
    self.change(tx, list.__setitem__, everything, TupleVariable(list(made.items)))
    self.items.extend(made.items)
    return NONE


def _remove(self: ListVariable, tx: Tracing, item: VariableTracker) -> VariableTracker:
    known = known_values(tx, self, item)
    if known is None:
        tx.unsupported(UNSUPPORTED_CALL, name="list.remove of something that is not known")
    if known[1] not in known[0]:
        tx.raises("list.remove", ValueError, ConstantVariable("list.remove(x): x not in list"))
    place = known[0].index(known[1])
    self.change(tx, list.__delitem__, ConstantVariable(place))
    del self.items[place]
    return NONE


def _index(tx: Tracing, name: str, index: VariableTracker) -> int:
    index = index.realize(tx)
    if not index.is_python_constant() or type(index.as_python_constant()) not in (int, bool):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{name} with an index that is not known")
    return int(index.as_python_constant())


def _pop(self: ListVariable, tx: Tracing, *index: VariableTracker) -> VariableTracker:
    at = _index(tx, "list.pop", index[0]) if index else -1
    if not -len(self.items) <= at < len(self.items):
        message = "pop index out of range" if self.items else "pop from empty list"
        tx.raises("list.pop", IndexError, ConstantVariable(message))
    self.change(tx, list.pop, ConstantVariable(at))
    return self.items.pop(at)


def _insert(
    self: ListVariable, tx: Tracing, index: VariableTracker, item: VariableTracker
) -> VariableTracker:
    at = _index(tx, "list.insert", index)
    self.change(tx, list.insert, index, item)
    self.items.insert(max(-len(self.items), min(at, len(self.items))), item)
    return NONE


def _clear(self: ListVariable, tx: Tracing) -> VariableTracker:
    self.change(tx, list.clear)
    self.items.clear()
    return NONE


def _reverse(self: ListVariable, tx: Tracing) -> VariableTracker:
    self.change(tx, list.reverse)
    self.items.reverse()
    return NONE


def _copy(self: ListVariable, tx: Tracing) -> VariableTracker:
    return ListVariable(list(self.items), guards=VariableTracker.propagate(self))


LIST_METHODS: dict[tuple[str, int], Callable[..., VariableTracker]] = {
    ("append", 1): _append,
    ("remove", 1): _remove,
    ("extend", 1): _extend,
    ("insert", 2): _insert,
    ("pop", 0): _pop,
    ("pop", 1): _pop,
    ("clear", 0): _clear,
    ("reverse", 0): _reverse,
    ("copy", 0): _copy,
}


class RangeVariable(VariableTracker):
    """A range of known bounds; immutable, compared by value."""

    __slots__ = ("value",)

    def __init__(self, value: range, source: Source | None = None, guards: Provenance = NO_GUARDS) -> None:
        super().__init__(source, guards)
        self.value = value

    def python_type(self) -> type:
        return range

    def is_python_constant(self) -> bool:
        return True

    def as_python_constant(self) -> Any:
        return self.value

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Const(self.value)

    def slot_len(self, tx: Tracing) -> int:
        return len(self.value)

    def slot_truth(self, tx: Tracing) -> bool:
        return bool(self.value)

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return RangeIteratorVariable(self.value, guards=VariableTracker.propagate(self))

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        if key.is_python_constant():
            try:
                picked = self.value[key.as_python_constant()]
            except Exception as error:
                tx.unsupported(OPERATOR_FAILS, name="subscript", error=type(error).__name__)
            guards = VariableTracker.propagate(self, key)
            return (
                RangeVariable(picked, None, guards)
                if isinstance(picked, range)
                else ConstantVariable(picked, None, guards)
            )
        return VariableTracker.slot_getitem(self, tx, key)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        if item.is_python_constant():
            return item.as_python_constant() in self.value
        return VariableTracker.slot_contains(self, tx, item)

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        if len(self.value) > 10_000:
            return None
        return [ConstantVariable(i, guards=self.guards) for i in self.value]


class SliceVariable(VariableTracker):
    """A slice object; its parts may be any trackers."""

    __slots__ = ("parts",)

    def __init__(
        self, parts: tuple[VariableTracker, VariableTracker, VariableTracker], source: Source | None = None
    ) -> None:
        super().__init__(source, VariableTracker.propagate(*parts))
        self.parts = parts

    def python_type(self) -> type:
        return slice

    def is_python_constant(self) -> bool:
        return all(p.is_python_constant() for p in self.parts)

    def as_python_constant(self) -> Any:
        return slice(*[p.as_python_constant() for p in self.parts])

    def as_python_proxy(self) -> Any:
        return slice(*[p.as_python_proxy() for p in self.parts])

    def as_meta(self) -> Any:
        return slice(*[p.as_meta() for p in self.parts])

    def children(self) -> tuple[VariableTracker, ...]:
        return self.parts if self.source is None else ()

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        a, b, c = (emit.value(p) for p in self.parts)
        return E.Slice(a, b, c)


def _sequence(made_by: type[SequenceVariable], length_guard: Any) -> Any:
    def wrap(tx: Tracing, value: Any, source: Source) -> VariableTracker:
        items: list[VariableTracker] = [LazyVariable(v, ItemSource(source, i)) for i, v in enumerate(value)]
        made = made_by(items, source)
        made.make_guards(tx, GuardBuilder.TYPE_MATCH, length_guard)
        return made

    return wrap


FROM_PYTHON.update({tuple: TupleVariable, list: ListVariable, torch.Size: SizeVariable})
wraps(tuple)(_sequence(TupleVariable, GuardBuilder.TUPLE_LENGTH))
wraps(torch.Size)(_sequence(SizeVariable, GuardBuilder.TUPLE_LENGTH))
wraps(list)(_sequence(ListVariable, GuardBuilder.LIST_LENGTH))


@wraps(range)
def wrap_range(tx: Tracing, value: range, source: Source) -> VariableTracker:
    made = RangeVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.EQUALS_MATCH)
    return made


@wraps(slice)
def wrap_slice(tx: Tracing, value: slice, source: Source) -> VariableTracker:
    parts = (value.start, value.stop, value.step)
    if not all(type(part) in (int, type(None)) for part in parts):
        return wrap_opaque(tx, value, source)
    start, stop, step = map(ConstantVariable, parts)
    made = SliceVariable((start, stop, step), source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.EQUALS_MATCH)
    return made
