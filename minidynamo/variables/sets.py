"""Sets and frozensets whose elements are keys.

The order in which a set iterates follows from the order in which it was filled and from the hashes. So a set that is made in the trace
carries a real one (`real`) to which everything is done that the program does; its order is the program's, and rebuilding repeats
the same steps. The order of a set from outside is guarded when it is looked at, and unknown once the set has changed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS, SET_ORDER, UNSUPPORTED_CALL
from ..sources import Source
from ..static_access import is_users_class
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import COMPARE, ConstantVariable
from .iterators import IteratorVariable
from .keys import Key, can_be_named, check_name, constant_key, is_orderly
from .opaque import wrap_opaque
from .registry import FROM_PYTHON, WITHOUT_SOURCE, wraps

NONE = ConstantVariable(None)
Known = dict[int, tuple[Any, VariableTracker]]  # id of an element -> the element, its tracker

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "|": operator.or_,
    "&": operator.and_,
    "-": operator.sub,
    "^": operator.xor,
}
INPLACE = {
    "|=": "update",
    "&=": "intersection_update",
    "-=": "difference_update",
    "^=": "symmetric_difference_update",
}
NEW = ("union", "intersection", "difference", "symmetric_difference")
ASKS = ("issubset", "issuperset", "isdisjoint")
CHANGES = (*INPLACE.values(), "clear")


@dataclass(frozen=True, slots=True)
class Operand:
    """What a set operation takes: `raw` behaves as the real value would, `tracker` rebuilds it, and in `exact` ones the order is
    the program's."""

    raw: Any
    tracker: VariableTracker
    known: Known
    exact: bool


class SetLike(VariableTracker):
    """What set operations treat in ways of their own: sets, dicts, views of dicts."""

    __slots__ = ()
    takes_operators = True  # `|` and the like accept it

    def set_operand(self, tx: Tracing) -> Operand:
        raise NotImplementedError


class AsItWas(VariableTracker):
    """A container at the time when an operation took it. One that changed afterwards can be rebuilt only if it is a
    set that was made in the trace."""

    __slots__ = ("what", "owner", "version")

    def __init__(self, what: VariableTracker, owner: Any) -> None:
        """`what` reads `owner`, or is it; `owner.version` counts its changes."""
        super().__init__(None, what.guards)
        self.what = what
        self.owner = owner
        self.version = owner.version

    def python_type(self) -> type:
        return self.what.python_type()

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.what,)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.changed():
            if isinstance(self.owner, SetVariable) and self.owner.source is None:
                return self.owner.built(emit, self.version)
            emit.impossible(f"a {self.type_name()} as it was before it changed")
        return emit.value(self.what)

    def changed(self) -> bool:
        return self.owner.version != self.version or self.owner.source is not None and self.version > 0


def operand_of(tx: Tracing, value: VariableTracker) -> Operand:
    """Anything that can be iterated while tracing."""
    value = value.realize(tx)
    if isinstance(value, SetLike):
        return value.set_operand(tx)
    items = value.sequence_items(tx)
    if items is None:
        iterator, items = value.slot_iter(tx), []
        while (item := iterator.slot_next(tx)) is not None:
            tx.trace.step()
            items.append(item)
    keys = [Key(tx, item) for item in items]
    raw = [key.value for key in keys]
    return Operand(raw, FROM_PYTHON[tuple]([key.tracker for key in keys]), known_of(keys), True)


def known_of(keys: list[Key]) -> Known:
    return {id(key.value): (key.value, key.tracker) for key in keys}


def both(left: Operand, right: Operand) -> bool:
    return left.exact and right.exact


class SetVariable(SetLike):
    """A set. `steps` made it: the first gives the set, each further one is a method called on it."""

    __slots__ = ("real", "known", "order", "exact", "first", "steps", "version", "guarded", "length_guarded")
    mutable = True
    real_type: type = set

    def __init__(
        self,
        real: Any,
        known: Known,
        first: tuple[Any, tuple[VariableTracker, ...]] | None,
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
        exact: bool = True,
    ) -> None:
        super().__init__(source, guards)
        self.real = real
        self.known = known
        self.first = first
        self.order: list[Any] | None = None  # of a set from outside
        self.steps: list[tuple[str, tuple[VariableTracker, ...]]] = []
        self.version = 0
        self.exact = exact
        self.guarded = self.length_guarded = source is None

    def python_type(self) -> type:
        return self.real_type

    def is_python_constant(self) -> bool:
        return self.source is None and self.exact and all(t.is_python_constant() for t in self.trackers())

    def as_python_constant(self) -> Any:
        return self.real

    def trackers(self) -> list[VariableTracker]:
        """Of the elements, in the order of `real`."""
        return [self.tracker_of(element) for element in self.real]

    def tracker_of(self, element: Any) -> VariableTracker:
        """An element that an operation made anew (a pair of a dict's items) is known by its equal."""
        found = self.known.get(id(element))
        return found[1] if found else next(t for value, t in self.known.values() if value == element)

    def forget(self) -> None:
        self.known = {}

    # --- what was looked at is guarded -----------------------------------------------------------------------------------
    def elements(self, tx: Tracing) -> Any:
        """The elements, in an order that says nothing."""
        if not self.guarded and self.source is not None:
            tx.install(make_guard(self.source, GuardBuilder.SET_ITEMS))
            self.guarded = self.length_guarded = True
        return self.real

    def ordered(self, tx: Tracing) -> list[VariableTracker]:
        """The elements in the order in which the program meets them. Breaks the graph where that is not known."""
        if self.exact:
            return self.trackers()
        if self.source is None or self.version or self.order is None:
            tx.unsupported(SET_ORDER, type=self.type_name())
        tx.install(make_guard(self.source, GuardBuilder.SET_ORDER))
        self.guarded = self.length_guarded = True
        return [self.tracker_of(element) for element in self.order]

    def has(self, tx: Tracing, key: Key) -> bool:
        """Whether it has one element; that is guarded."""
        if not self.guarded and self.source is not None:
            check_name(tx, key)
            tx.install(make_guard(self.source, GuardBuilder.SET_CONTAINS, key.value))
        return key.value in self.real

    def set_operand(self, tx: Tracing) -> Operand:
        return Operand(self.elements(tx), AsItWas(self, self), self.known, self.exact)

    # --- slots -----------------------------------------------------------------------------------------------------------
    def slot_len(self, tx: Tracing) -> int:
        if not self.length_guarded and self.source is not None:
            tx.install(make_guard(self.source, GuardBuilder.LENGTH))
            self.length_guarded = True
        return len(self.real)

    def slot_truth(self, tx: Tracing) -> bool:
        return self.slot_len(tx) > 0

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        return self.has(tx, Key(tx, item))

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        return self.ordered(tx)

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return SetIteratorVariable(self, self.ordered(tx))

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        return set_operator(tx, symbol, left, right)

    def slot_inplace(self, tx: Tracing, symbol: str, right: VariableTracker) -> VariableTracker | None:
        """CPython: set_ior and its like; only for another set or frozenset."""
        if symbol not in INPLACE or not self.mutable or not isinstance(right, SetVariable):
            return None
        self.change(tx, INPLACE[symbol], operand_of(tx, right))
        return self

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        return set_comparison(tx, symbol, left, right)

    # --- methods -----------------------------------------------------------------------------------------------------------
    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        fn = getattr(self.real_type, name, None)
        if fn is not None and not kwargs:
            if name in ("add", "discard", "remove") and len(args) == 1:
                return self.change_element(tx, name, Key(tx, args[0]))
            if name == "pop" and not args:
                return self.pop(tx)
            if name == "copy" and not args:
                return made_by(tx, set.copy, (self.set_operand(tx),), self) if self.mutable else self
            if name in NEW:
                return made_by(tx, fn, (self.set_operand(tx), *(operand_of(tx, a) for a in args)), self)
            if name in ASKS and len(args) == 1:
                other = operand_of(tx, args[0])
                verdict = fn(self.elements(tx), other.raw)
                return ConstantVariable(verdict, guards=VariableTracker.propagate(self, *args))
            if name in CHANGES:
                self.change(tx, name, *(operand_of(tx, a) for a in args))
                return NONE
        tx.unsupported(UNSUPPORTED_CALL, name=f"{self.type_name()}.{name} with these arguments")

    def note(self, tx: Tracing, name: str, *operands: VariableTracker) -> None:
        """A change: part of how the set is rebuilt, or an effect when it came from outside."""
        self.version += 1
        if self.source is None:
            self.steps.append((name, operands))
        else:
            tx.effect_call(getattr(set, name), self, *operands)

    def change_element(self, tx: Tracing, name: str, key: Key) -> VariableTracker:
        present = self.has(tx, key)
        if name == "remove" and not present:
            tx.raises("set.remove", KeyError, key.tracker)
        if present == (name == "add"):
            return NONE
        self.known.setdefault(id(key.value), (key.value, key.tracker))
        getattr(self.real, name)(key.value)
        self.exact = self.exact and is_orderly((key.value,))
        self.note(tx, name, key.tracker)
        return NONE

    def change(self, tx: Tracing, name: str, *others: Operand) -> None:
        self.elements(tx)
        if any(isinstance(other.tracker, AsItWas) and other.tracker.owner is self for other in others):
            tx.unsupported(UNSUPPORTED_CALL, name=f"set.{name} with the set itself")
        for other in others:
            self.known = {**other.known, **self.known}
        try:
            getattr(self.real, name)(*(other.raw for other in others))
        except Exception as error:
            tx.fails(f"set.{name}", error)
        self.exact = self.exact and all(other.exact and is_orderly(other.raw) for other in others)
        self.note(tx, name, *(other.tracker for other in others))

    def pop(self, tx: Tracing) -> VariableTracker:
        """Which element goes depends on where the last one went: known only of sets that were made in the trace."""
        if not self.slot_len(tx):
            tx.raises("set.pop", KeyError, ConstantVariable("pop from an empty set"))
        if not self.exact:
            tx.unsupported(SET_ORDER, type="set")
        element = self.real.pop()
        self.note(tx, "pop")
        return self.tracker_of(element)

    # --- rebuilding ----------------------------------------------------------------------------------------------------------
    def children(self) -> tuple[VariableTracker, ...]:
        if self.source is not None or self.first is None:
            return ()
        return (*self.first[1], *(operand for _, operands in self.steps for operand in operands))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        if self.first is None:
            return E.Const(self.real)
        return self.built(emit, len(self.steps))

    def built(self, emit: Emitting, count: int) -> E.Expr:
        """A set as it was after its first `count` changes."""
        assert self.first is not None
        steps = self.steps[:count]
        fn, operands = self.first
        values = tuple(emit.value(operand) for operand in operands)
        if fn is None:  # a display
            if all(name == "add" for name, _ in steps):
                return E.Set((*values, *(emit.value(item) for _, (item,) in steps)))
            made = emit.temporary(E.Set(values))
        else:
            made = emit.temporary(E.Call(E.Const(fn), values))
        for name, operands in steps:
            arguments = tuple(emit.value(operand) for operand in operands)
            emit.do(E.Do(E.Call(E.Const(getattr(set, name)), (made, *arguments))))
        return made


class FrozenSetVariable(SetVariable):
    """A frozenset. `first` None: a constant of the code."""

    __slots__ = ()
    mutable = False
    real_type = frozenset

    def as_key(self, tx: Tracing) -> Any:
        return frozenset(self.elements(tx))


KINDS: dict[type, type[SetVariable]] = {set: SetVariable, frozenset: FrozenSetVariable}


def made_by(
    tx: Tracing, fn: Callable[..., Any], operands: tuple[Operand, ...], *made_from: VariableTracker
) -> SetVariable:
    """The new set that `fn` gives on sets and iterables."""
    try:
        real = fn(*(operand.raw for operand in operands))
    except Exception as error:
        tx.fails(getattr(fn, "__name__", "set"), error)
    known: Known = {}
    for operand in reversed(operands):
        known.update(operand.known)
    return KINDS[type(real)](
        real,
        known,
        (fn, tuple(operand.tracker for operand in operands)),
        guards=VariableTracker.propagate(*made_from),
        exact=all(operand.exact and is_orderly(operand.raw) for operand in operands),
    )


def display(tx: Tracing, items: list[VariableTracker]) -> SetVariable:
    """`{a, b, c}`. CPython: BUILD_SET adds from the left."""
    keys = [Key(tx, item) for item in items]
    real: set[Any] = set()
    for key in keys:
        real.add(key.value)
    guards = VariableTracker.propagate(*items)
    first = None, tuple(key.tracker for key in keys)
    return SetVariable(real, known_of(keys), first, guards=guards, exact=is_orderly(real))


def code_constant(value: frozenset[Any], elements: list[VariableTracker]) -> FrozenSetVariable:
    """A frozenset among the constants of a code object."""
    return FrozenSetVariable(value, {id(e): (e, t) for e, t in zip(value, elements)}, None)


def accepts_operators(value: VariableTracker) -> bool:
    return isinstance(value, SetLike) and value.takes_operators


def set_operator(
    tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    """CPython: set_or, dictviews_or and their like; None stands for NotImplemented."""
    fn = BINARY.get(symbol.rstrip("="))
    if fn is None or not accepts_operators(left) or not accepts_operators(right):
        return None
    return made_by(tx, fn, (operand_of(tx, left), operand_of(tx, right)), left, right)


def set_comparison(
    tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    """CPython: set_richcompare, dictview_richcompare."""
    if not accepts_operators(left) or not accepts_operators(right):
        return None
    verdict = COMPARE[symbol](operand_of(tx, left).raw, operand_of(tx, right).raw)
    return ConstantVariable(verdict, guards=VariableTracker.propagate(left, right))


class SetIteratorVariable(IteratorVariable):
    """`iter(set)`. A set that changes meanwhile is left to plain Python, which raises if its size is another."""

    __slots__ = ("owner", "items", "position", "version")

    def __init__(self, owner: SetVariable, items: list[VariableTracker]) -> None:
        super().__init__(None, owner.guards)
        self.owner = owner
        self.items = items
        self.position = 0
        self.version = owner.version

    def python_type(self) -> type:
        return type(iter(set()))

    def children(self) -> tuple[VariableTracker, ...]:
        return () if self.position > len(self.items) else (self.owner,)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        if self.position <= len(self.items) and self.owner.version != self.version:
            tx.unsupported(OPERATOR_FAILS, name="iteration over a set that changes", error="RuntimeError")
        if self.position >= len(self.items):
            self.position = len(self.items) + 1  # exhausted: it has let go of its set
            return None
        self.position += 1
        return self.items[self.position - 1]

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.position > len(self.items):
            return E.Op("GET_ITER", None, (E.Set(()),))
        if self.owner.version != self.version or self.owner.source is not None and self.version:
            emit.impossible("an iterator over a set that has changed")
        return advanced(emit, E.Op("GET_ITER", None, (emit.value(self.owner),)), self.position)


def advanced(emit: Emitting, iterator: E.Expr, count: int) -> E.Local:
    """The iterator after `count` items."""
    made = emit.temporary(iterator)
    for _ in range(count):
        emit.do(E.Do(E.Call(E.Const(next), (made,))))
    return made


def _element(value: Any) -> VariableTracker | None:
    if type(value) is type and not is_users_class(value):
        return WITHOUT_SOURCE[type](value)
    return constant_key(value)


@wraps(set, frozenset)
def wrap_set(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    """Only sets whose elements are constants and builtin classes are followed."""
    trackers = [_element(element) if can_be_named(element) else None for element in value]
    if None in trackers:
        return wrap_opaque(tx, value, source)
    known = {id(e): (e, t) for e, t in zip(value, trackers) if t is not None}
    made = KINDS[type(value)](type(value)(value), known, None, source, exact=False)
    made.order = list(value)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made
