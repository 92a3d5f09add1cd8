"""Instances of the user's subclasses of dict and OrderedDict: attributes as those of any object, and contents that methods written in
C see."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import STORE
from ..sources import Source, TypeSource
from ..static_access import is_subtype, type_lookup
from .base import Emitting, Tracing, VariableTracker
from .dict_kinds import OrderedDictVariable
from .dicts import DictVariable, items_from
from .functions import BuiltinVariable
from .keys import Key
from .methods import UserMethodVariable
from .new_objects import NewObjectVariable
from .registry import wraps_if
from .user_objects import C_METHODS, UserObject, UserObjectVariable, has_plain_attributes, is_users_object


def is_dict_class(cls: type) -> bool:
    """A class of the user's whose builtin bases are dict or OrderedDict, and object."""
    mro = type.__dict__["__mro__"].__get__(cls)
    builtin = [base for base in mro if not base.__flags__ & 0x200]
    return builtin in ([dict, object], [OrderedDict, dict, object])


class DictObject(UserObject):
    """What existing and new ones share."""

    __slots__ = ()
    contents: DictVariable

    def c_method(self, tx: Tracing, name: str) -> VariableTracker | None:
        """The method of that name, if it is dict's or OrderedDict's own; that it stays so is guarded."""
        raw = type_lookup(self.cls, name)
        if type(raw) not in C_METHODS or raw.__objclass__ is object:
            return None
        tx.install(make_guard(self.class_source(tx, name), GuardBuilder.ID_MATCH))
        return BuiltinVariable(raw, None)

    def read_descriptor(self, tx: Tracing, name: str, raw: Any) -> VariableTracker:
        method = self.c_method(tx, name)
        return UserMethodVariable(method, self, name) if method else super().read_descriptor(tx, name, raw)

    def call_special(
        self,
        tx: Tracing,
        name: str,
        args: list[VariableTracker],
        kwargs: dict[str, VariableTracker] | None = None,
    ) -> VariableTracker:
        method = self.c_method(tx, name)
        if method is None:
            return super().call_special(tx, name, args, kwargs)
        return tx.call(method, [self, *args], kwargs or {})

    def slot_truth(self, tx: Tracing) -> bool:
        if type_lookup(self.cls, "__bool__") is not None or self.c_method(tx, "__len__") is None:
            return super().slot_truth(tx)
        return self.contents.slot_truth(tx)

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        self.refuse(tx, f"operator {symbol}")

    def slot_inplace(self, tx: Tracing, symbol: str, right: VariableTracker) -> VariableTracker | None:
        self.refuse(tx, f"operator {symbol}")

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        self.refuse(tx, f"comparison {symbol}")


class OutsideContents(DictVariable):
    """The contents of an object from outside. Changes are replayed by the methods of dict or OrderedDict: those of the class that led to
    them were traced."""

    __slots__ = ("kind", "owner")

    def __init__(
        self, items: dict[Key, VariableTracker], source: Source, kind: type, owner: VariableTracker
    ) -> None:
        super().__init__(items, source)
        self.kind: Any = kind
        self.owner: VariableTracker | None = owner

    def python_type(self) -> type:
        return self.kind  # type: ignore[no-any-return]

    def put(self, tx: Tracing, key: Key, value: VariableTracker) -> None:
        new = self.look_up(tx, key) is None
        self.replay(tx, self.kind.__setitem__, key.tracker, value)
        self.resized |= new
        self.version += new
        self.items[key] = value

    def slot_delitem(self, tx: Tracing, key: VariableTracker) -> None:
        found = Key(tx, key)
        if self.look_up(tx, found) is None:
            tx.raises("del", KeyError, key)
        self.replay(tx, self.kind.__delitem__, found.tracker)
        self.resized = True
        self.version += 1
        del self.items[found]

    def replay(self, tx: Tracing, fn: Any, *operands: VariableTracker) -> None:
        assert self.owner is not None
        tx.effect_call(fn, self.owner, *operands)

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name not in FOLLOWED:
            tx.unsupported(STORE, operation=name, what="a dict of a class of its own")
        return super().call_method(tx, name, args, kwargs)

    def forget(self) -> None:
        super().forget()
        self.owner = None


FOLLOWED = (
    *("get", "keys", "values", "items", "__contains__", "__getitem__", "__len__", "__iter__"),
    *("pop", "setdefault", "update"),  # by way of the above
)


class DictObjectVariable(DictObject, UserObjectVariable):
    """One that exists outside of the trace."""

    __slots__ = ("contents",)

    def __init__(self, value: Any, source: Source, items: dict[Key, VariableTracker]) -> None:
        super().__init__(value, source)
        self.contents = OutsideContents(items, source, builtin_base(type(value)), self)

    def forget(self) -> None:
        super().forget()
        self.contents.forget()


class NewDictObjectVariable(DictObject, NewObjectVariable):
    """One that was made in the trace."""

    __slots__ = ("contents",)

    def __init__(self, cls: type, class_tracker: VariableTracker) -> None:
        super().__init__(cls, class_tracker)
        self.contents = (OrderedDictVariable if is_subtype(cls, OrderedDict) else DictVariable)({})

    def children(self) -> tuple[VariableTracker, ...]:
        return (*super().children(), *self.contents.children())

    def forget(self) -> None:
        super().forget()
        self.contents.forget()

    def allocated(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(builtin_base(self.cls).__new__), (emit.value(self.class_tracker),))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        made = super().reconstruct(emit)
        put = E.Const(builtin_base(self.cls).__setitem__)
        for key, value in self.contents.items.items():
            emit.do(E.Do(E.Call(put, (made, emit.value(key.tracker), emit.value(value)))))
        return made


def builtin_base(cls: type) -> Any:
    return OrderedDict if is_subtype(cls, OrderedDict) else dict


def _followed(value: Any) -> bool:
    cls = type(value)
    return is_users_object(cls) and has_plain_attributes(cls) and is_dict_class(cls)


@wraps_if("dict of a class of the user's", _followed)
def wrap_dict_object(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    items = items_from(value, source)
    made: UserObjectVariable = UserObjectVariable(value, source)
    if items is not None:
        made = DictObjectVariable(value, source, items)
        tx.trace.holds(made)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    tx.guard_class(type(value), TypeSource(source))
    return made
