"""collections.deque: a list with two ends and perhaps a greatest length."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS, UNSUPPORTED_CALL
from ..sources import AttrSource, ItemSource, Source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import ConstantVariable
from .iterators import IteratorVariable
from .lazy import LazyVariable
from .registry import wraps
from .sequences import NONE, ListVariable, SequenceVariable, TupleVariable, items_to_add, known_values

_ITERATOR: Any = type(iter(deque()))
_REVERSED: Any = type(reversed(deque()))


class DequeVariable(ListVariable):
    """A deque. One from outside that is changed replays the calls that change it."""

    __slots__ = ("longest", "state")
    real_type: type = deque
    compares_as_tuple = False

    def __init__(
        self,
        items: list[VariableTracker],
        longest: int | None = None,
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
    ) -> None:
        super().__init__(items, source, guards)
        self.longest = longest
        self.state = 0  # how often it was changed otherwise than by an assignment to an item

    def change(self, tx: Tracing, fn: Any, *operands: VariableTracker) -> None:
        self.state += fn is not deque.__setitem__
        super().change(tx, fn, *operands)

    def like(self, items: list[VariableTracker], guards: Provenance) -> SequenceVariable:
        return DequeVariable(self.cut(items), self.longest, guards=guards)

    def cut(self, items: list[VariableTracker], left: bool = False) -> list[VariableTracker]:
        """What stays of the items when they are added at the right end (or at the left one)."""
        if self.longest is None:
            return items
        return items[: self.longest] if left else items[max(0, len(items) - self.longest) :]

    def is_python_constant(self) -> bool:
        return False

    def is_python_proxy(self) -> bool:
        return False

    def as_python_proxy(self) -> Any:
        raise TypeError("a value of type deque")

    as_meta = as_python_proxy

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name == "maxlen":
            return ConstantVariable(self.longest, guards=self.guards)
        return super().getattr(tx, name)

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return DequeIteratorVariable(self)

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        index = self.position(key)
        if index is None:
            self.check(tx, key, "subscript")
        return self.items[index]  # type: ignore[index]

    def check(self, tx: Tracing, key: VariableTracker, name: str) -> None:
        """`key` is no index of an item."""
        if key.is_python_constant() and type(key.as_python_constant()) in (int, bool):
            tx.raises(name, IndexError, ConstantVariable("deque index out of range"))
        self._opaque(tx, name)

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        index = self.position(key)
        if index is None:
            self.check(tx, key, "item assignment")
        self.change(tx, deque.__setitem__, key, value)
        self.items[index] = value  # type: ignore[index]

    def slot_delitem(self, tx: Tracing, key: VariableTracker) -> None:
        index = self.position(key)
        if index is None:
            self.check(tx, key, "item deletion")
        self.change(tx, deque.__delitem__, key)
        del self.items[index]  # type: ignore[arg-type]

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        return TupleVariable(self.items).slot_contains(tx, item)

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """CPython: deque_concat, deque_repeat, and in place deque_extend, deque_inplace_repeat."""
        if symbol in ("+=", "*=") and left is self:
            if symbol == "+=":
                _extend(self, tx, right)
                return self
            made = self.slot_binary(tx, "*", left, right)
            if isinstance(made, DequeVariable):
                self.change(tx, deque.__imul__, right)
                self.items[:] = made.items
                return self
            return made
        if symbol == "+" and left is self and isinstance(right, DequeVariable):
            return self.like([*self.items, *right.items], VariableTracker.propagate(left, right))
        if symbol == "*":
            return SequenceVariable.slot_binary(self, tx, symbol, left, right)
        return None

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        if not isinstance(left, DequeVariable) or not isinstance(right, DequeVariable):
            return None
        return TupleVariable(left.items).slot_compare(
            tx, symbol, TupleVariable(left.items), TupleVariable(right.items)
        )

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        method = METHODS.get((name, len(args))) if not kwargs else None
        if method is None:
            if name in ("count", "index") and not kwargs and len(args) == 1:
                return self.search(tx, name, args[0])
            tx.unsupported(UNSUPPORTED_CALL, name=f"deque.{name}")
        return method(self, tx, *args)

    def search(self, tx: Tracing, name: str, item: VariableTracker) -> VariableTracker:
        known = known_values(tx, TupleVariable(self.items), item)
        if known is None:
            tx.unsupported(UNSUPPORTED_CALL, name=f"deque.{name} of something that is not known")
        if name == "index" and known[1] not in known[0]:
            tx.raises("deque.index", ValueError, ConstantVariable(f"{known[1]!r} is not in deque"))
        return ConstantVariable(
            getattr(known[0], name)(known[1]), guards=VariableTracker.propagate(self, item)
        )

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        items = E.Tuple(tuple(emit.value(item) for item in self.items))
        return E.Call(E.Const(deque), (items, E.Const(self.longest)))


def _append(self: DequeVariable, tx: Tracing, item: VariableTracker) -> VariableTracker:
    self.change(tx, deque.append, item)
    self.items[:] = self.cut([*self.items, item])
    return NONE


def _appendleft(self: DequeVariable, tx: Tracing, item: VariableTracker) -> VariableTracker:
    self.change(tx, deque.appendleft, item)
    self.items[:] = self.cut([item, *self.items], left=True)
    return NONE


def _extend(self: DequeVariable, tx: Tracing, other: VariableTracker) -> VariableTracker:
    items = items_to_add(tx, "deque.extend", other)
    self.change(tx, deque.extend, TupleVariable(items))
    self.items[:] = self.cut([*self.items, *items])
    return NONE


def _extendleft(self: DequeVariable, tx: Tracing, other: VariableTracker) -> VariableTracker:
    items = items_to_add(tx, "deque.extendleft", other)
    self.change(tx, deque.extendleft, TupleVariable(items))
    self.items[:] = self.cut([*reversed(items), *self.items], left=True)
    return NONE


def _pop(self: DequeVariable, tx: Tracing) -> VariableTracker:
    if not self.items:
        tx.raises("deque.pop", IndexError, ConstantVariable("pop from an empty deque"))
    self.change(tx, deque.pop)
    return self.items.pop()


def _popleft(self: DequeVariable, tx: Tracing) -> VariableTracker:
    if not self.items:
        tx.raises("deque.popleft", IndexError, ConstantVariable("pop from an empty deque"))
    self.change(tx, deque.popleft)
    return self.items.pop(0)


def _rotate(self: DequeVariable, tx: Tracing, *by: VariableTracker) -> VariableTracker:
    steps = by[0].realize(tx) if by else ConstantVariable(1)
    count = steps.as_python_constant() if steps.is_python_constant() else None
    if not isinstance(count, int):
        tx.unsupported(UNSUPPORTED_CALL, name="deque.rotate by a number that is not known")
    self.change(tx, deque.rotate, steps)
    real = deque(self.items)
    real.rotate(count)
    self.items[:] = real
    return NONE


def _insert(
    self: DequeVariable, tx: Tracing, index: VariableTracker, item: VariableTracker
) -> VariableTracker:
    index = index.realize(tx)
    at = index.as_python_constant() if index.is_python_constant() else None
    if not isinstance(at, int):
        tx.unsupported(UNSUPPORTED_CALL, name="deque.insert at a place that is not known")
    if self.longest is not None and len(self.items) >= self.longest:
        tx.raises("deque.insert", IndexError, ConstantVariable("deque already at its maximum size"))
    self.change(tx, deque.insert, index, item)
    self.items.insert(at, item)
    return NONE


def _remove(self: DequeVariable, tx: Tracing, item: VariableTracker) -> VariableTracker:
    known = known_values(tx, TupleVariable(self.items), item)
    if known is None:
        tx.unsupported(UNSUPPORTED_CALL, name="deque.remove of something that is not known")
    if known[1] not in known[0]:
        tx.unsupported(OPERATOR_FAILS, name="deque.remove", error="ValueError")
    place = known[0].index(known[1])
    self.change(tx, deque.__delitem__, ConstantVariable(place))
    del self.items[place]
    return NONE


def _clear(self: DequeVariable, tx: Tracing) -> VariableTracker:
    self.change(tx, deque.clear)
    self.items.clear()
    return NONE


def _reverse(self: DequeVariable, tx: Tracing) -> VariableTracker:
    self.change(tx, deque.reverse)
    self.items.reverse()
    return NONE


def _copy(self: DequeVariable, tx: Tracing) -> VariableTracker:
    return DequeVariable(list(self.items), self.longest, guards=VariableTracker.propagate(self))


METHODS: dict[tuple[str, int], Callable[..., VariableTracker]] = {
    ("append", 1): _append,
    ("appendleft", 1): _appendleft,
    ("extend", 1): _extend,
    ("extendleft", 1): _extendleft,
    ("pop", 0): _pop,
    ("popleft", 0): _popleft,
    ("rotate", 0): _rotate,
    ("rotate", 1): _rotate,
    ("insert", 2): _insert,
    ("remove", 1): _remove,
    ("clear", 0): _clear,
    ("reverse", 0): _reverse,
    ("copy", 0): _copy,
}


class DequeIteratorVariable(IteratorVariable):
    """An iterator over a deque, from either end. A deque that changes meanwhile is the program's error. Rebuilt only where it has not
    begun; else the rest of the items cannot be told from it."""

    __slots__ = ("owner", "state", "place", "backwards")

    def __init__(self, owner: DequeVariable, backwards: bool = False) -> None:
        super().__init__(None, owner.guards)
        self.owner = owner
        self.state = owner.state
        self.place = 0
        self.backwards = backwards

    def python_type(self) -> type:
        return _REVERSED if self.backwards else _ITERATOR

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: dequeiter_next, dequereviter_next."""
        now = self.owner.items
        if self.owner.state != self.state:
            tx.unsupported(UNSUPPORTED_CALL, name="next() of an iterator over a deque that changed")
        if self.place >= len(now):
            return None
        self.place += 1
        return now[-self.place if self.backwards else self.place - 1]

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.owner.is_behind() or self.owner.state != self.state:
            emit.impossible("an iterator over a deque that changed")
        return E.Call(
            E.Const(_REVERSED if self.backwards else _ITERATOR),
            (emit.value(self.owner), E.Const(self.place)),
        )


@wraps(deque)
def wrap_deque(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    items: list[VariableTracker] = [LazyVariable(v, ItemSource(source, i)) for i, v in enumerate(value)]
    made = DequeVariable(items, value.maxlen, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.LENGTH)
    tx.wrap(value.maxlen, AttrSource(source, "maxlen"))
    return made
