"""Bound methods that are stored somewhere outside of the trace."""

from __future__ import annotations

import types

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..sources import AttrSource, Source
from .base import Emitting, Tracing, VariableTracker
from .registry import wraps
from .user_objects import UserMethodVariable


class StoredMethodVariable(UserMethodVariable):
    """Its function and its owner are read from the method object. Always rebuilt from its source."""

    __slots__ = ()
    mutable = True
    source: Source

    def __init__(self, fn: VariableTracker, owner: VariableTracker, name: str, source: Source) -> None:
        super().__init__(fn, owner, name)
        self.source = source

    def children(self) -> tuple[VariableTracker, ...]:
        return ()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: method_getattro, which asks the function for what methods do not have."""
        if name in ("__func__", "__self__"):
            return self.fn if name == "__func__" else self.owner
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return self.fn.realize(tx).getattr(tx, name)
        return super().getattr(tx, name)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


@wraps(types.MethodType)
def wrap_method(tx: Tracing, value: types.MethodType, source: Source) -> VariableTracker:
    fn = tx.lazily(value.__func__, AttrSource(source, "__func__"))
    owner = tx.lazily(value.__self__, AttrSource(source, "__self__"))
    made = StoredMethodVariable(fn, owner, "", source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made
