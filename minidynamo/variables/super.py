"""`super()`: attribute look-up that begins behind a class."""

from __future__ import annotations

import types
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..sources import AttrSource, ItemSource, Source, TypeSource
from ..static_access import is_subtype, type_lookup
from .base import Emitting, Tracing, VariableTracker
from .classes import ClassVariable
from .functions import BuiltinVariable
from .methods import UserMethodVariable
from .user_objects import MISSING, UserObject

_MRO = type.__dict__["__mro__"].__get__


class SuperVariable(VariableTracker):
    """`super(cls, owner)`; the owner is an instance or a class. Rebuilt by the same call."""

    __slots__ = ("cls", "owner")

    def __init__(self, cls: BuiltinVariable, owner: UserObject | ClassVariable) -> None:
        super().__init__(None, VariableTracker.propagate(cls, owner))
        self.cls = cls
        self.owner = owner

    def python_type(self) -> type:
        return super

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.cls, self.owner)

    def start(self) -> type:
        """The class in whose MRO the look-up goes."""
        return self.owner.fn if isinstance(self.owner, ClassVariable) else self.owner.python_type()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: super_getattro."""
        mro = _MRO(self.start())
        begin = mro.index(self.cls.fn) + 1 if self.cls.fn in mro else len(mro)
        for position in range(begin, len(mro)):
            if name in type.__dict__["__dict__"].__get__(mro[position]):
                raw = type_lookup(mro[position], name)
                home = ItemSource(AttrSource(self._type(tx), "__mro__"), position)
                tx.wrap(mro[position], home)  # guarded by identity
                for before in range(begin, position):  # none of these has the name
                    self.guard_absent(tx, mro[before], before, name)
                return self.bound(tx, name, raw, home)
        return super().getattr(tx, name)

    def guard_absent(self, tx: Tracing, cls: type, position: int, name: str) -> None:
        """The class at that place of the MRO is the same one, and has nothing of its own under the name: what it finds there is what
        it finds now."""
        home = ItemSource(AttrSource(self._type(tx), "__mro__"), position)
        tx.wrap(cls, home)
        raw = type_lookup(cls, name, MISSING)
        if raw is MISSING:
            tx.install(make_guard(home, GuardBuilder.HASATTR, name))
        else:
            tx.wrap(raw, AttrSource(home, name, raw=True))

    def bound(self, tx: Tracing, name: str, raw: Any, home: Source) -> VariableTracker:
        """The attribute of a class in the MRO, bound to the owner."""
        source = AttrSource(home, name)
        on_class = isinstance(self.owner, ClassVariable)
        kind = type(raw)
        if kind in (types.FunctionType, types.WrapperDescriptorType, types.MethodDescriptorType):
            if on_class:
                return tx.wrap(raw, AttrSource(home, name, raw=True))
            return UserMethodVariable(tx.wrap(raw, source), self.owner, name, self)
        if kind is staticmethod:
            return tx.wrap(raw.__func__, AttrSource(source, "__func__"))
        if kind is types.BuiltinFunctionType:  # __new__ of a builtin class
            return tx.wrap(raw, source)
        if kind is classmethod:
            owner = self.owner if isinstance(self.owner, ClassVariable) else self.owner.class_variable(tx)
            return UserMethodVariable(
                tx.wrap(raw.__func__, AttrSource(source, "__func__")), owner, name, self
            )
        if kind is property and not on_class and type(raw.fget) is types.FunctionType:
            return tx.call(tx.wrap(raw.fget, AttrSource(source, "fget")), [self.owner], {})
        if type_lookup(kind, "__get__", None) is None:
            return tx.lazily(raw, source)
        return super().getattr(tx, name)

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.getattr(tx, name), args, kwargs)

    def _type(self, tx: Tracing) -> Source:
        owner = self.owner
        if isinstance(owner, ClassVariable):
            if owner.source is None:
                self._opaque(tx, "attribute")
            return owner.source
        if owner.source is None:
            return owner.type_source(tx)
        return TypeSource(owner.source)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(super), (emit.value(self.cls), emit.value(self.owner)))


def may_be_super(cls: VariableTracker, owner: VariableTracker) -> bool:
    """Whether `super(cls, owner)` is followed: an instance of the class, or a subclass. CPython: supercheck."""
    if not isinstance(cls, BuiltinVariable) or not isinstance(cls.fn, type):
        return False
    if isinstance(owner, ClassVariable):
        return is_subtype(owner.fn, cls.fn)
    return isinstance(owner, UserObject)
