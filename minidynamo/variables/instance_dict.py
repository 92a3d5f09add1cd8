"""`x.__dict__`: the attributes that lie in an instance, as a dict."""

from __future__ import annotations

from ..pycode import expr as E
from ..reasons import OPAQUE_VALUE
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .dicts import DictVariable
from .keys import Key

WHAT = "__dict__ of an instance"


class WithMembers(VariableTracker):
    """A value that has an instance dictionary, read and changed by name."""

    __slots__ = ()

    def instance_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        """The value in the instance dictionary; whether it is there is guarded."""
        raise NotImplementedError

    def member_names(self, tx: Tracing) -> list[str]:
        """The keys of the instance dictionary, in their order; guarded."""
        raise NotImplementedError

    def store_member(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """`__dict__[name] = value`: neither `__setattr__` nor a descriptor is asked."""
        raise NotImplementedError

    def remove_member(self, tx: Tracing, name: str) -> None:
        """`del __dict__[name]`."""
        raise NotImplementedError


class InstanceDictVariable(DictVariable):
    """Reads, tests and writes of single attributes go to the instance's tracker, which tells of its own changes. All keys are known from
    when somebody asks for them. Rebuilt by reading `__dict__` again."""

    __slots__ = ("owner", "whole")

    def __init__(self, owner: WithMembers) -> None:
        super().__init__({}, None, VariableTracker.propagate(owner))
        self.owner = owner
        self.whole = False  # `items` has every attribute

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def name_of(self, tx: Tracing, key: Key) -> str:
        """The name of an attribute: a key that is a known string."""
        if type(key.value) is not str:
            tx.unsupported(OPAQUE_VALUE, operation="key that is no known name", type=WHAT)
        return key.value

    def all_keys(self, tx: Tracing) -> list[Key]:
        if not self.whole:
            for name in self.owner.member_names(tx):
                value = self.owner.instance_attribute(tx, name)
                assert value is not None
                self.items[Key.of(name, ConstantVariable(name))] = value
            self.whole = True
        return list(self.items)

    def slot_len(self, tx: Tracing) -> int:
        return len(self.all_keys(tx))

    def look_up(self, tx: Tracing, key: Key) -> VariableTracker | None:
        return self.items.get(key) if self.whole else self.owner.instance_attribute(tx, self.name_of(tx, key))

    def put(self, tx: Tracing, key: Key, value: VariableTracker) -> None:
        self.owner.store_member(tx, self.name_of(tx, key), value)

    def slot_delitem(self, tx: Tracing, key: VariableTracker) -> None:
        found = Key(tx, key)
        if self.look_up(tx, found) is None:
            tx.raises("del", KeyError, key)
        self.owner.remove_member(tx, self.name_of(tx, found))

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name in ("clear", "popitem"):
            tx.unsupported(OPAQUE_VALUE, operation=f"method {name}", type=WHAT)
        return super().call_method(tx, name, args, kwargs)

    # --- what the instance's tracker tells ------------------------------------------------------------------------------
    def stored(self, name: str, value: VariableTracker) -> None:
        """The attribute has a new value."""
        key = Key.of(name, ConstantVariable(name))
        self.version += key not in self.items
        if self.whole:
            self.items[key] = value

    def removed(self, name: str) -> None:
        """The attribute is gone."""
        self.version += 1
        self.items.pop(Key.of(name, ConstantVariable(name)), None)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(object.__getattribute__), (emit.value(self.owner), E.Const("__dict__")))
