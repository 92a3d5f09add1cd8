"""Dictionaries whose keys are constants, or objects that hash and compare by identity."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..literals import as_key
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS, UNSUPPORTED_CALL
from ..sources import DictKeySource, Source, item_source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import ConstantVariable
from .iterators import IteratorVariable
from .keys import Key, can_be_named, check_name, constant_key
from .lazy import LazyVariable
from .opaque import wrap_opaque
from .registry import wraps
from .sequences import SequenceVariable, TupleVariable, known_values
from .sets import AsItWas, Operand, SetLike, advanced, known_of, set_comparison, set_operator

NONE = ConstantVariable(None)


class DictVariable(SetLike):
    """A dict. Items of one that came from outside are lazy; its keys are guarded as far as the trace looked: per key, by
    length, or all with their order. One that came from outside and is changed replays the changes as effects."""

    __slots__ = ("items", "keys_guarded", "length_guarded", "resized", "version")
    mutable = True
    takes_operators = False
    real_type: type = dict
    in_order = False  # whether two of the kind are equal only if their keys come in the same order

    def __init__(
        self,
        items: dict[Key, VariableTracker],
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
    ) -> None:
        super().__init__(source, guards)
        self.items = items
        self.keys_guarded = source is None
        self.length_guarded = source is None
        self.resized = False  # it came from outside, and the trace added or removed keys
        self.version = 0  # how often the trace added or removed keys

    def python_type(self) -> type:
        return self.real_type

    def like(self, items: dict[Key, VariableTracker], guards: Provenance) -> DictVariable:
        """A new dict of the same kind, as `copy` and `|` make it."""
        return DictVariable(items, guards=guards)

    def missing(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        """CPython: `__missing__`."""
        tx.raises("subscript", KeyError, key)

    def is_python_proxy(self) -> bool:
        return True

    def as_python_proxy(self) -> Any:
        return {k.value: v.as_python_proxy() for k, v in self.items.items()}

    def as_meta(self) -> Any:
        return {k.value: v.as_meta() for k, v in self.items.items()}

    def realize_deep(self, tx: Tracing) -> None:
        """Realise every value: needed before the dict goes into the graph."""
        self.all_keys(tx)
        for key, value in self.items.items():
            real = self.items[key] = value.realize(tx)
            if isinstance(real, (SequenceVariable, DictVariable)):
                real.realize_deep(tx)

    # --- what was looked at is guarded -------------------------------------------------------------------------------------
    def all_keys(self, tx: Tracing) -> list[Key]:
        """The keys in order: guards keys and order once."""
        if not self.keys_guarded and self.source is not None:
            tx.install(make_guard(self.source, GuardBuilder.DICT_KEYS))
            self.keys_guarded = self.length_guarded = True
        return list(self.items)

    def look_up(self, tx: Tracing, key: Key) -> VariableTracker | None:
        """The value of one key, or None; guards that key's presence or absence."""
        if not self.keys_guarded and self.source is not None:
            check_name(tx, key)
            tx.install(make_guard(self.source, GuardBuilder.DICT_CONTAINS, key.value))
        return self.items.get(key)

    # --- slots ---------------------------------------------------------------------------------------------------------------
    def slot_len(self, tx: Tracing) -> int:
        if not self.length_guarded and self.source is not None:
            tx.install(make_guard(self.source, GuardBuilder.DICT_LENGTH))
            self.length_guarded = True
        return len(self.items)

    def slot_truth(self, tx: Tracing) -> bool:
        return self.slot_len(tx) > 0

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        return self.look_up(tx, Key(tx, item)) is not None

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        value = self.look_up(tx, Key(tx, key))
        return self.missing(tx, key) if value is None else value

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        self.put(tx, Key(tx, key), value)

    def put(self, tx: Tracing, key: Key, value: VariableTracker) -> None:
        """`d[key] = value`; a key that was there keeps its place and its own key object."""
        found = self.look_up(tx, key)
        self.resized |= self.source is not None and found is None
        self.version += found is None
        if self.source is not None:
            tx.effect("STORE_SUBSCR", None, value, self, key.tracker)
        self.items[key] = value

    def slot_delitem(self, tx: Tracing, key: VariableTracker) -> None:
        found = Key(tx, key)
        if self.look_up(tx, found) is None:
            tx.raises("del", KeyError, key)
        if self.source is not None:
            tx.effect("DELETE_SUBSCR", None, self, found.tracker)
            self.resized = True
        self.version += 1
        del self.items[found]

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return DictIteratorVariable(self, "keys", self.all_keys(tx))

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        return [key.tracker for key in self.all_keys(tx)]

    def set_operand(self, tx: Tracing) -> Operand:
        keys = self.all_keys(tx)
        return Operand(dict.fromkeys(key.value for key in keys), AsItWas(self, self), known_of(keys), True)

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """CPython: dict_or; kinds of dicts go by the left operand."""
        if symbol.rstrip("=") != "|" or not all(isinstance(side, DictVariable) for side in (left, right)):
            return None
        assert isinstance(left, DictVariable) and isinstance(right, DictVariable)
        if self is right and left.real_type is dict and right.real_type is not dict:
            kind = self  # CPython: `__ror__` of the subclass, which is asked first
        else:
            kind = left
        left.all_keys(tx)
        made = kind.like(dict(left.items), VariableTracker.propagate(left))
        made.call_method(tx, "update", [right], {})
        return made

    def slot_inplace(self, tx: Tracing, symbol: str, right: VariableTracker) -> VariableTracker | None:
        """CPython: dict_ior, which is update."""
        if symbol != "|=":
            return None
        self.call_method(tx, "update", [right], {})
        return self

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        if (
            symbol not in ("==", "!=")
            or not isinstance(left, DictVariable)
            or not isinstance(right, DictVariable)
        ):
            return None
        same = equal(tx, left, right)
        if same is None:
            return VariableTracker.slot_compare(self, tx, symbol, left, right)
        return ConstantVariable(same == (symbol == "=="), guards=VariableTracker.propagate(left, right))

    def forget(self) -> None:
        self.items.clear()

    # --- methods ---------------------------------------------------------------------------------------------------------------
    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        method = DICT_METHODS.get((name, len(args)))
        if method is None or kwargs and name != "update":
            tx.unsupported(UNSUPPORTED_CALL, name=f"dict.{name}")
        return method(self, tx, *args, **({"kwargs": kwargs} if name == "update" else {}))

    def children(self) -> tuple[VariableTracker, ...]:
        if self.source is not None:
            return ()
        return tuple(t for key, value in self.items.items() for t in (key.tracker, value))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return E.Map(
            tuple(emit.value(key.tracker) for key in self.items),
            tuple(emit.value(value) for value in self.items.values()),
        )


def _get(
    self: DictVariable, tx: Tracing, key: VariableTracker, default: VariableTracker = NONE
) -> VariableTracker:
    found = self.look_up(tx, Key(tx, key))
    return default if found is None else found


def _keys(self: DictVariable, tx: Tracing) -> VariableTracker:
    return DictViewVariable(self, "keys")


def _values(self: DictVariable, tx: Tracing) -> VariableTracker:
    return DictViewVariable(self, "values")


def _items(self: DictVariable, tx: Tracing) -> VariableTracker:
    return DictViewVariable(self, "items")


def equal(tx: Tracing, left: VariableTracker, right: VariableTracker) -> bool | None:
    """CPython: dict_equal; None where it does not follow from what is known."""
    left, right = left.realize(tx), right.realize(tx)
    if not (isinstance(left, DictVariable) and isinstance(right, DictVariable)):
        known = known_values(tx, left, right)
        return None if known is None else bool(known[0] == known[1])
    assert isinstance(left, DictVariable) and isinstance(right, DictVariable)
    if left.slot_len(tx) != right.slot_len(tx):
        return False
    if left.in_order and right.in_order and left.all_keys(tx) != right.all_keys(tx):
        return False
    for key in left.all_keys(tx):
        other = right.look_up(tx, key)
        same = False if other is None else equal(tx, left.items[key], other)
        if not same:
            return same
    return True


def _copy(self: DictVariable, tx: Tracing) -> DictVariable:
    self.all_keys(tx)
    return self.like(dict(self.items), VariableTracker.propagate(self))


def _pop(self: DictVariable, tx: Tracing, key: VariableTracker, *default: VariableTracker) -> VariableTracker:
    value = self.look_up(tx, Key(tx, key))
    if value is None:
        if default:
            return default[0]
        tx.raises("dict.pop", KeyError, key)
    self.slot_delitem(tx, key)
    return value


def _setdefault(
    self: DictVariable, tx: Tracing, key: VariableTracker, *default: VariableTracker
) -> VariableTracker:
    found = Key(tx, key)
    value = self.look_up(tx, found)
    if value is None:
        value = default[0] if default else NONE
        self.put(tx, found, value)
    return value


def pairs_of(tx: Tracing, source: VariableTracker) -> list[tuple[Key, VariableTracker]]:
    """What `dict(source)` is filled with: another dict, or an iterable of pairs."""
    if isinstance(source, DictVariable):
        return [(key, source.items[key]) for key in source.all_keys(tx)]
    pairs: list[tuple[Key, VariableTracker]] = []
    if isinstance(source, (SequenceVariable, IteratorVariable, DictViewVariable)):
        iterator = source.slot_iter(tx)
        while (pair := iterator.slot_next(tx)) is not None:
            tx.trace.step()
            pair = pair.realize(tx)
            if not isinstance(pair, SequenceVariable) or len(pair.items) != 2:
                tx.unsupported(UNSUPPORTED_CALL, name="dict with something that is no pair")
            pairs.append((Key(tx, pair.items[0]), pair.items[1]))
        return pairs
    tx.unsupported(UNSUPPORTED_CALL, name=f"dict with a {source.type_name()}")


def _popitem(self: DictVariable, tx: Tracing) -> VariableTracker:
    keys = self.all_keys(tx)
    if not keys:
        tx.raises("dict.popitem", KeyError, ConstantVariable("popitem(): dictionary is empty"))
    pair = TupleVariable([keys[-1].tracker, self.items[keys[-1]]])
    if self.source is not None:
        tx.effect_call(self.real_type.popitem, self)  # type: ignore[attr-defined]
        self.resized = True
    self.version += 1
    del self.items[keys[-1]]
    return pair


def _update(
    self: DictVariable, tx: Tracing, *other: VariableTracker, kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    for source in other:
        source = source.realize(tx)
        for key, value in pairs_of(tx, source):
            self.put(tx, key, value)
    for name, value in kwargs.items():
        self.put(tx, Key(tx, ConstantVariable(name)), value)
    return NONE


def _clear(self: DictVariable, tx: Tracing) -> VariableTracker:
    if self.source is not None:
        tx.effect_call(self.real_type.clear, self)  # type: ignore[attr-defined]
        self.resized = True
        self.all_keys(tx)
    self.version += 1
    self.items.clear()
    return NONE


DICT_METHODS: dict[tuple[str, int], Callable[..., VariableTracker]] = {
    ("get", 1): _get,
    ("get", 2): _get,
    ("keys", 0): _keys,
    ("values", 0): _values,
    ("items", 0): _items,
    ("copy", 0): _copy,
    ("pop", 1): _pop,
    ("pop", 2): _pop,
    ("setdefault", 1): _setdefault,
    ("setdefault", 2): _setdefault,
    ("update", 0): _update,
    ("update", 1): _update,
    ("clear", 0): _clear,
    ("popitem", 0): _popitem,
}


VIEWS: dict[str, Callable[[DictVariable, Key], VariableTracker]] = {
    "keys": lambda owner, key: key.tracker,
    "values": lambda owner, key: owner.items[key],
    "items": lambda owner, key: TupleVariable([key.tracker, owner.items[key]]),
}


class DictIteratorVariable(IteratorVariable):
    """An iterator over a dict's keys, values or items: sees values that change meanwhile; other changes are errors of the program.
    Rebuilt by iterating anew up to its place."""

    __slots__ = ("owner", "name", "keys", "place", "backwards", "version")

    def __init__(self, owner: DictVariable, name: str, keys: list[Key], backwards: bool = False) -> None:
        super().__init__(None, VariableTracker.propagate(owner))
        self.owner = owner
        self.name = name
        self.keys = keys
        self.place = 0
        self.backwards = backwards
        self.version = owner.version

    def python_type(self) -> type:
        view = getattr(self.owner.python_type()(), self.name)()
        return type(reversed(view) if self.backwards else iter(view))

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def unchanged(self) -> bool:
        """Whether the dict has the keys that it had when the iteration began."""
        if self.owner.version == self.version:
            return True
        now = self.owner.items
        return len(now) == len(self.keys) and all(map(operator.is_, now, self.keys))

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: dictiter_iternextkey and its like."""
        if not self.unchanged():
            tx.unsupported(OPERATOR_FAILS, name="iteration over a dict that changed", error="RuntimeError")
        if self.place >= len(self.keys):
            return None
        self.place += 1
        return VIEWS[self.name](self.owner, self.keys[-self.place if self.backwards else self.place - 1])

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if not self.unchanged() or self.owner.resized:
            emit.impossible("an iterator over a dict that changed")
        view = E.Call(E.Attr(emit.value(self.owner), self.name))
        made = E.Call(E.Const(reversed), (view,)) if self.backwards else E.Op("GET_ITER", None, (view,))
        return advanced(emit, made, self.place)


class DictViewVariable(SetLike):
    """`d.keys()`, `d.values()`, `d.items()`: reads the dict as it is when it is looked at. Rebuilt by the same call."""

    __slots__ = ("owner", "name")

    def __init__(self, owner: DictVariable, name: str) -> None:
        super().__init__(None, VariableTracker.propagate(owner))
        self.owner = owner
        self.name = name

    @property
    def takes_operators(self) -> bool:  # type: ignore[override]
        return self.name != "values"

    def python_type(self) -> type:
        return type(getattr(self.owner.python_type()(), self.name)())

    def set_operand(self, tx: Tracing) -> Operand:
        keys = self.owner.all_keys(tx)
        if self.name == "keys":
            raw: Any = dict.fromkeys(key.value for key in keys).keys()
            return Operand(raw, AsItWas(self, self.owner), known_of(keys), True)
        parts = [Key(tx, VIEWS[self.name](self.owner, key)) for key in keys]
        values = [part.value for part in parts]
        if self.name == "items":
            return Operand(dict(values).items(), AsItWas(self, self.owner), known_of(parts), True)
        return Operand(values, TupleVariable([p.tracker for p in parts]), known_of(parts), True)

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        return set_operator(tx, symbol, left, right)

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        return set_comparison(tx, symbol, left, right)

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def slot_len(self, tx: Tracing) -> int:
        return self.owner.slot_len(tx)

    def slot_truth(self, tx: Tracing) -> bool:
        return self.owner.slot_truth(tx)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        if self.name == "keys":
            return self.owner.slot_contains(tx, item)
        return TupleVariable(self.sequence_items(tx) or []).slot_contains(tx, item)

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        return [VIEWS[self.name](self.owner, key) for key in self.owner.all_keys(tx)]

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return DictIteratorVariable(self.owner, self.name, self.owner.all_keys(tx))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Attr(emit.value(self.owner), self.name))


@wraps(dict)
def wrap_dict(tx: Tracing, value: dict[Any, Any], source: Source) -> VariableTracker:
    """Only dicts whose keys can be named in a guard are followed."""
    items = items_from(value, source)
    if items is None:
        return wrap_opaque(tx, value, source)
    made = DictVariable(items, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made


def items_from(value: dict[Any, Any], source: Source) -> dict[Key, VariableTracker] | None:
    """Lazy items of a real dict; None when one of its keys cannot be named."""
    if not all(can_be_named(key) for key in value):
        return None
    items: dict[Key, VariableTracker] = {}
    for index, (key, item) in enumerate(value.items()):
        tracker = constant_key(key) or LazyVariable(key, DictKeySource(source, index))
        items[Key.of(key, tracker)] = LazyVariable(item, item_source(source, as_key(key), value))
    return items


def from_names(tx: Tracing, items: dict[str, VariableTracker]) -> DictVariable:
    """A new dict with string keys, as `**keywords` makes it."""
    return DictVariable({Key(tx, ConstantVariable(name)): value for name, value in items.items()})
