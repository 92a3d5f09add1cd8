"""Iterators that take their items from other iterators, one at a time: enumerate, zip, map, filter; and reversed."""

from __future__ import annotations

from ..pycode import expr as E
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .iterators import IteratorVariable
from .sequences import SequenceVariable, TupleVariable


class EnumerateVariable(IteratorVariable):
    """`enumerate(iterator, index)`."""

    __slots__ = ("iterator", "index")

    def __init__(self, iterator: VariableTracker, index: int) -> None:
        super().__init__(None, iterator.guards)
        self.iterator = iterator
        self.index = index

    def python_type(self) -> type:
        return enumerate

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.iterator,)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        item = self.iterator.slot_next(tx)
        if item is None:
            return None
        self.index += 1
        return TupleVariable([ConstantVariable(self.index - 1), item])

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(enumerate), (emit.value(self.iterator), E.Const(self.index)))


class ZipVariable(IteratorVariable):
    """`zip(*iterators)`. CPython: zip_next; what earlier iterators gave is lost when a later one is exhausted."""

    __slots__ = ("iterators",)

    def __init__(self, iterators: tuple[VariableTracker, ...]) -> None:
        super().__init__(None, VariableTracker.propagate(*iterators))
        self.iterators = iterators

    def python_type(self) -> type:
        return zip

    def children(self) -> tuple[VariableTracker, ...]:
        return self.iterators

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        row: list[VariableTracker] = []
        for iterator in self.iterators:
            item = iterator.slot_next(tx)
            if item is None:
                return None
            row.append(item)
        return TupleVariable(row) if row else None

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(zip), tuple(emit.value(iterator) for iterator in self.iterators))


class MapVariable(IteratorVariable):
    """`map(fn, *iterators)`: `fn` is called when an item is asked for."""

    __slots__ = ("fn", "iterators")

    def __init__(self, fn: VariableTracker, iterators: tuple[VariableTracker, ...]) -> None:
        super().__init__(None, VariableTracker.propagate(fn, *iterators))
        self.fn = fn
        self.iterators = iterators

    def python_type(self) -> type:
        return map

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.fn, *self.iterators)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        args: list[VariableTracker] = []
        for iterator in self.iterators:
            item = iterator.slot_next(tx)
            if item is None:
                return None
            args.append(item)
        return tx.call(self.fn, args, {})

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(map), tuple(emit.value(part) for part in self.children()))


class FilterVariable(IteratorVariable):
    """`filter(fn, iterator)`; without `fn` the items' own truth decides."""

    __slots__ = ("fn", "iterator")

    def __init__(self, fn: VariableTracker, iterator: VariableTracker) -> None:
        super().__init__(None, VariableTracker.propagate(fn, iterator))
        self.fn = fn
        self.iterator = iterator

    def python_type(self) -> type:
        return filter

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.fn, self.iterator)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        by_itself = self.fn.python_type() is type(None)
        while (item := self.iterator.slot_next(tx)) is not None:
            verdict = item if by_itself else tx.call(self.fn, [item], {})
            if verdict.realize(tx).slot_truth(tx):
                return item
        return None

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(filter), (emit.value(self.fn), emit.value(self.iterator)))


class ReversedVariable(IteratorVariable):
    """`reversed(list or tuple)`. CPython: listreviter_next: the place counts down from the length at the beginning; one that
    the sequence no longer has ends the iteration for good."""

    __slots__ = ("sequence", "place")

    def __init__(self, sequence: SequenceVariable) -> None:
        super().__init__(None, sequence.guards)
        self.sequence = sequence
        self.place = len(sequence.items) - 1

    def python_type(self) -> type:
        return type(reversed(self.sequence.real_type(())))

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.sequence,)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        if not 0 <= self.place < len(self.sequence.items):
            self.place = -1
            return None
        self.place -= 1
        return self.sequence.items[self.place + 1]

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.place >= len(self.sequence.items) or self.sequence.is_behind():
            emit.impossible("an iterator over a list that has changed")
        made = emit.temporary(E.Call(E.Const(reversed), (emit.value(self.sequence),)))
        emit.do(E.Do(E.Call(E.Attr(made, "__setstate__"), (E.Const(self.place),))))
        return made
