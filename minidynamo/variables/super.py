"""`super()`: attribute look-up that begins behind a class."""

from __future__ import annotations

import types

from ..pycode import expr as E
from ..sources import AttrSource, ItemSource, Source, TypeSource
from ..static_access import type_lookup
from .base import Emitting, Tracing, VariableTracker
from .functions import BuiltinVariable
from .user_objects import NewObjectVariable, UserMethodVariable, UserObject


class SuperVariable(VariableTracker):
    """`super(cls, owner)`. Rebuilt by the same call."""

    __slots__ = ("cls", "owner")

    def __init__(self, cls: BuiltinVariable, owner: UserObject) -> None:
        super().__init__(None, VariableTracker.propagate(cls, owner))
        self.cls = cls
        self.owner = owner

    def python_type(self) -> type:
        return super

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.cls, self.owner)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: super_getattro; functions are bound to the owner."""
        mro = type.__dict__["__mro__"].__get__(self.owner.python_type())
        start = mro.index(self.cls.fn) + 1 if self.cls.fn in mro else len(mro)
        for position in range(start, len(mro)):
            if name in type.__dict__["__dict__"].__get__(mro[position]):
                raw = type_lookup(mro[position], name)
                if type(raw) not in (types.FunctionType, types.WrapperDescriptorType):
                    break
                source = AttrSource(ItemSource(AttrSource(self._type(), "__mro__"), position), name)
                return UserMethodVariable(tx.wrap(raw, source), self.owner, name, self)
        return super().getattr(tx, name)

    def _type(self) -> Source:
        owner = self.owner
        if isinstance(owner, NewObjectVariable):
            assert owner.class_tracker.source is not None
            return owner.class_tracker.source
        assert owner.source is not None
        return TypeSource(owner.source)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(super), (emit.value(self.cls), emit.value(self.owner)))
