"""Instances of user-defined classes that are made in the trace."""

from __future__ import annotations

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..sources import AttrSource, Source
from ..static_access import type_lookup
from .base import Emitting, Tracing, VariableTracker
from .user_objects import SHARED, SLOT, UserObject


class NewObjectVariable(UserObject):
    """An instance made in the trace. Rebuilt as `object.__new__(cls)` with the attributes that the trace left in it."""

    __slots__ = (*SHARED, "class_tracker", "attributes")
    filled_later = True

    def __init__(self, cls: type, class_tracker: VariableTracker) -> None:
        super().__init__(cls, None, VariableTracker.propagate(class_tracker))
        self.class_tracker = class_tracker
        self.attributes: dict[str, VariableTracker] = {}

    def own_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        return self.attributes.get(name)

    def class_source(self, tx: Tracing, name: str) -> Source:
        if self.class_tracker.source is None:
            self.refuse(tx, f"attribute {name} of a class without a name")
        return AttrSource(self.class_tracker.source, name)

    def type_source(self, tx: Tracing) -> Source:
        if self.class_tracker.source is None:
            self.refuse(tx, "attribute of a class without a name")
        return self.class_tracker.source

    def guard_presence(self, tx: Tracing, name: str) -> None:
        if type_lookup(type, name) is not None:  # every class has it from `type`: the guard could not tell
            self.refuse(tx, name)
        tx.install(make_guard(self.type_source(tx), GuardBuilder.HASATTR, name))

    def class_variable(self, tx: Tracing) -> VariableTracker:
        return self.class_tracker

    def store(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        self.attributes[name] = value
        if self.members is not None:
            self.members.stored(name, value)

    def remove(self, tx: Tracing, name: str) -> None:
        del self.attributes[name]
        if self.members is not None:
            self.members.removed(name)

    def member_names(self, tx: Tracing) -> list[str]:
        return [name for name in self.attributes if not isinstance(type_lookup(self.cls, name), SLOT)]

    def forget(self) -> None:
        self.attributes.clear()
        self.members = None

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.class_tracker, *self.attributes.values())

    def allocated(self, emit: Emitting) -> E.Expr:
        """The instance without attributes."""
        return E.Call(E.Const(object.__new__), (emit.value(self.class_tracker),))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        made = emit.temporary(self.allocated(emit))
        emit.remember(self, made)
        for name, value in self.attributes.items():
            emit.do(E.Do(E.Call(E.Const(object.__setattr__), (made, E.Const(name), emit.value(value)))))
        return made
