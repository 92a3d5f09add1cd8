"""Dictionaries and sets whose keys are constants or objects of identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS, UNSUPPORTED_CALL
from ..sources import ItemSource, Source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import CONSTANT_TYPES, ConstantVariable
from .iterators import IteratorVariable
from .lazy import LazyVariable
from .opaque import wrap_opaque
from .registry import wraps
from .sequences import SequenceVariable, TupleVariable

NONE = ConstantVariable(None)


class Key:
    """A dict key: hashes and compares as the real key does. Constants by value (1 == 1.0 == True), tuples of them by items,
    classes and builtins by identity."""

    __slots__ = ("tracker", "value")

    def __init__(self, tx: Tracing, tracker: VariableTracker) -> None:
        self.tracker = tracker = tracker.realize(tx)
        if isinstance(tracker, SequenceVariable):
            tracker.realize_deep(tx)
        self.value = tracker.as_key(tx)

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and bool(self.value == other.value)


def plain_key(value: Any) -> bool:
    """A real key that can be named in a guard and compared without running user code."""
    return type(value) in CONSTANT_TYPES or type(value) is tuple and all(map(plain_key, value))


class DictVariable(VariableTracker):
    """A dict. Items of one that came from outside are lazy; its keys are guarded as far as the trace looked: per key, by
    length, or all with their order. One that came from outside and is changed replays the changes as effects."""

    __slots__ = ("items", "keys_guarded", "length_guarded", "resized")
    mutable = True

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

    def python_type(self) -> type:
        return dict

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
        if value is None:
            tx.raises("subscript", KeyError, key)
        return value

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        self.put(tx, Key(tx, key), value)

    def put(self, tx: Tracing, key: Key, value: VariableTracker) -> None:
        """`d[key] = value`; a key that was there keeps its place and its own key object."""
        found = self.look_up(tx, key)
        self.resized |= self.source is not None and found is None
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
        del self.items[found]

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return DictIteratorVariable(self, "keys", self.all_keys(tx))

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        return [key.tracker for key in self.all_keys(tx)]

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


def _copy(self: DictVariable, tx: Tracing) -> VariableTracker:
    self.all_keys(tx)
    return DictVariable(dict(self.items), guards=VariableTracker.propagate(self))


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


def _update(
    self: DictVariable, tx: Tracing, *other: VariableTracker, kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    for source in other:
        source = source.realize(tx)
        if not isinstance(source, DictVariable):
            tx.unsupported(UNSUPPORTED_CALL, name=f"dict.update with a {source.type_name()}")
        for key in source.all_keys(tx):
            self.put(tx, key, source.items[key])
    for name, value in kwargs.items():
        self.put(tx, Key(tx, ConstantVariable(name)), value)
    return NONE


def _clear(self: DictVariable, tx: Tracing) -> VariableTracker:
    if self.source is not None:
        tx.effect_call(dict.clear, self)
        self.resized = True
        self.all_keys(tx)
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
}


VIEWS: dict[str, Callable[[DictVariable, Key], VariableTracker]] = {
    "keys": lambda owner, key: key.tracker,
    "values": lambda owner, key: owner.items[key],
    "items": lambda owner, key: TupleVariable([key.tracker, owner.items[key]]),
}


class DictIteratorVariable(IteratorVariable):
    """An iterator over a dict's keys, values or items: sees values that change meanwhile; other changes are errors of the program.
    Rebuilt by iterating anew up to its place."""

    __slots__ = ("owner", "name", "keys", "place")

    def __init__(self, owner: DictVariable, name: str, keys: list[Key]) -> None:
        super().__init__(None, VariableTracker.propagate(owner))
        self.owner = owner
        self.name = name
        self.keys = keys
        self.place = 0

    def python_type(self) -> type:
        return type(iter(getattr({}, self.name)()))

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def unchanged(self) -> bool:
        """Whether the dict has the keys that it had when the iteration began."""
        now = self.owner.items
        return len(now) == len(self.keys) and all(a is b for a, b in zip(now, self.keys))

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: dictiter_iternextkey and its like."""
        if not self.unchanged():
            tx.unsupported(OPERATOR_FAILS, name="iteration over a dict that changed", error="RuntimeError")
        if self.place >= len(self.keys):
            return None
        self.place += 1
        return VIEWS[self.name](self.owner, self.keys[self.place - 1])

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if not self.unchanged() or self.owner.resized:
            emit.impossible("an iterator over a dict that changed")
        made = emit.temporary(E.Op("GET_ITER", None, (E.Call(E.Attr(emit.value(self.owner), self.name)),)))
        for _ in range(self.place):
            emit.do(E.Do(E.Call(E.Const(next), (made,))))
        return made


class DictViewVariable(VariableTracker):
    """`d.keys()`, `d.values()`, `d.items()`: reads the dict as it is when it is looked at. Rebuilt by the same call."""

    __slots__ = ("owner", "name")

    def __init__(self, owner: DictVariable, name: str) -> None:
        super().__init__(None, VariableTracker.propagate(owner))
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return type(getattr({}, self.name)())

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def slot_len(self, tx: Tracing) -> int:
        return self.owner.slot_len(tx)

    def slot_truth(self, tx: Tracing) -> bool:
        return self.owner.slot_truth(tx)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        if self.name == "keys":
            return self.owner.slot_contains(tx, item)
        return VariableTracker.slot_contains(self, tx, item)

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        return [VIEWS[self.name](self.owner, key) for key in self.owner.all_keys(tx)]

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return DictIteratorVariable(self.owner, self.name, self.owner.all_keys(tx))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Attr(emit.value(self.owner), self.name))


@wraps(dict)
def wrap_dict(tx: Tracing, value: dict[Any, Any], source: Source) -> VariableTracker:
    """Only dicts whose keys can be named in a guard are followed."""
    if not all(plain_key(key) for key in value):
        return wrap_opaque(tx, value, source)
    items: dict[Key, VariableTracker] = {
        Key(tx, _key_tracker(key)): LazyVariable(item, ItemSource(source, key)) for key, item in value.items()
    }
    made = DictVariable(items, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made


def from_names(tx: Tracing, items: dict[str, VariableTracker]) -> DictVariable:
    """A new dict with string keys, as `**keywords` makes it."""
    return DictVariable({Key(tx, ConstantVariable(name)): value for name, value in items.items()})


def _key_tracker(key: Any) -> VariableTracker:
    if type(key) is tuple:
        return TupleVariable([_key_tracker(item) for item in key])
    return ConstantVariable(key)
