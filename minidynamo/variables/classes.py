"""Classes: known by identity; attributes of the user's own are read statically."""

from __future__ import annotations

import types
from typing import Any

from ..guards.builder import GuardBuilder
from ..sources import AttrSource, ItemSource, Source
from ..static_access import is_subtype, type_lookup
from .base import Tracing, VariableTracker
from .enums import is_enumeration, member_map
from .functions import BuiltinVariable
from .registry import wraps_if
from .user_objects import MISSING, UserMethodVariable

HEAP_TYPE = 0x200
# Descriptors that are themselves when they are read from a class.
OF_THE_CLASS = (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


class ClassVariable(BuiltinVariable):
    """A class. Instances are made by `rules.classes`."""

    __slots__ = ()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: type_getattro, for classes whose metaclass reads as `type` does and has nothing of that name."""
        if not self.fn.__flags__ & HEAP_TYPE and type(self.fn) is type:
            raw = type_lookup(self.fn, name, MISSING)
            if type(raw) is types.ClassMethodDescriptorType:  # dict.fromkeys
                return BuiltinVariable(raw.__get__(None, self.fn), None, self.guards)
        if is_enumeration(self.fn) and self.source is not None and name in (members := member_map(self.fn)):
            return tx.wrap(members[name], ItemSource(AttrSource(self.source, "_member_map_"), name))
        if (
            self.source is None
            or type_lookup(type(self.fn), "__getattribute__") is not type.__getattribute__
            or type_lookup(type(self.fn), name, MISSING) is not MISSING
            or type_lookup(type(self.fn), "__getattr__", MISSING) is not MISSING
        ):
            return super().getattr(tx, name)
        raw = type_lookup(self.fn, name, MISSING)
        source = AttrSource(self.source, name)
        kind = type(raw)
        if kind in OF_THE_CLASS:
            return tx.lazily(raw, source)
        if kind is staticmethod:
            return tx.wrap(raw.__func__, AttrSource(source, "__func__"))
        if kind is classmethod:
            return UserMethodVariable(tx.wrap(raw.__func__, AttrSource(source, "__func__")), self, name)
        if raw is MISSING or type_lookup(kind, "__get__", None) is not None:
            return super().getattr(tx, name)
        return tx.lazily(raw, source)


@wraps_if("class", lambda value: is_subtype(type(value), type))
def wrap_class(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = ClassVariable(value, source)
    made.make_guards(tx, GuardBuilder.ID_MATCH)
    return made
