"""Instances of classes whose `__getattribute__` is Python: every read of an attribute executes it."""

from __future__ import annotations

import types
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..sources import AttrSource, Source, TypeSource
from ..static_access import instance_dict, type_lookup
from .base import Tracing, VariableTracker
from .constant import ConstantVariable
from .methods import UserMethodVariable
from .new_objects import NewObjectVariable
from .raising import ObservedException
from .registry import wraps_if
from .user_objects import SLOT, UserObject, UserObjectVariable, is_attribute_error, is_users_object


class OwnAccess(UserObject):
    """What existing and new ones share. Guards and emitted code read attributes as they lie in the instance and the class, so that
    neither runs the method again."""

    __slots__ = ()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: slot_tp_getattr_hook."""
        try:
            return self.call_special(tx, "__getattribute__", [ConstantVariable(name)])
        except ObservedException as stop:
            if type_lookup(self.cls, "__getattr__") is None or not is_attribute_error(stop):
                raise
        return self.call_special(tx, "__getattr__", [ConstantVariable(name)])

    def generic_getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """What `object.__getattribute__` gives; that it gives something is known."""
        return UserObject.getattr(self, tx, name)

    def lacks(self, tx: Tracing, name: str, generic: bool = False) -> bool:
        if generic:
            return super().lacks(tx, name, generic=True)
        return self.raises_attribute_error(tx, name)

    def read_descriptor(self, tx: Tracing, name: str, raw: Any) -> VariableTracker:
        found = super().read_descriptor(tx, name, raw)
        if isinstance(found, UserMethodVariable):
            found.made_anew = True
        return found


class OwnAccessVariable(OwnAccess, UserObjectVariable):
    """One that exists outside of the trace."""

    __slots__ = ()

    def own_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        if name in self.stored:
            return self.stored[name]
        where = AttrSource(self.source, name, raw=True)
        raw = type_lookup(self.cls, name)
        members = instance_dict(self.value)
        if isinstance(raw, SLOT):
            try:
                return tx.lazily(raw.__get__(self.value, self.cls), where)
            except AttributeError:
                return None
        if members is not None and name in members:
            return tx.lazily(members[name], where)
        if members is not None:
            tx.install(make_guard(self.source, GuardBuilder.OWN_ATTRIBUTE, name))
        return None

    def dict_source(self) -> Source:
        return AttrSource(self.source, "__dict__", raw=True)

    def class_source(self, tx: Tracing, name: str) -> Source:
        base = TypeSource(self.source) if name in self.stored else self.source
        return AttrSource(base, name, raw=True)


class NewOwnAccessVariable(OwnAccess, NewObjectVariable):
    """One that was made in the trace."""

    __slots__ = ()


def has_own_access(cls: type) -> bool:
    return type(type_lookup(cls, "__getattribute__")) is types.FunctionType


def _followed(value: Any) -> bool:
    cls = type(value)
    return is_users_object(cls) and has_own_access(cls)


@wraps_if("object with __getattribute__", _followed)
def wrap_own_access(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = OwnAccessVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    tx.guard_class(type(value), TypeSource(source))
    return made
