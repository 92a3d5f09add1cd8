"""Iterators made in the trace. One that came from outside is opaque: it is never advanced while tracing."""

from __future__ import annotations

from typing import Any

from ..pycode import expr as E
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import ConstantVariable


class IteratorVariable(VariableTracker):
    """Has a position that iteration changes, hence identity: rebuilt once, at its position."""

    __slots__ = ()
    mutable = True

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return self


class RangeIteratorVariable(IteratorVariable):
    """`iter(range(...))`. Rebuilt as an iterator over the rest of the range, which nothing can tell apart."""

    __slots__ = ("value", "position")

    def __init__(self, value: range, guards: Provenance = NO_GUARDS) -> None:
        super().__init__(None, guards)
        self.value = value
        self.position = 0

    def python_type(self) -> type:
        return type(iter(self.value))

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        if self.position >= len(self.value):
            return None
        item = self.value[self.position]
        self.position += 1
        return ConstantVariable(item, guards=self.guards)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Op("GET_ITER", None, (E.Const(self.value[self.position :]),))


class SequenceIteratorVariable(IteratorVariable):
    """`iter(list or tuple)`. Rebuilt over the same sequence and set to its position."""

    __slots__ = ("sequence", "position", "exhausted")

    def __init__(self, sequence: Any, guards: Provenance = NO_GUARDS) -> None:
        super().__init__(None, guards)
        self.sequence = sequence
        self.position = 0
        self.exhausted = False

    def python_type(self) -> type:
        return type(iter(self.sequence.real_type(())))

    def children(self) -> tuple[VariableTracker, ...]:
        return () if self.exhausted else (self.sequence,)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: listiter_next; an exhausted iterator stays exhausted although its list grows."""
        if self.exhausted or self.position >= len(self.sequence.items):
            self.exhausted = True
            return None
        item = self.sequence.items[self.position]
        self.position += 1
        return item

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.exhausted:
            return E.Op("GET_ITER", None, (E.Const(()) if self.sequence.real_type is tuple else E.List(()),))
        if self.position > len(self.sequence.items) or self.position and self.sequence.is_behind():
            emit.impossible("an iterator over a list that has changed")
        made = emit.temporary(E.Op("GET_ITER", None, (emit.value(self.sequence),)))
        if self.position:
            emit.do(E.Do(E.Call(E.Attr(made, "__setstate__"), (E.Const(self.position),))))
        return made
