"""Bound methods: functions bound in the trace to an instance or class, and methods that are stored somewhere outside of it."""

from __future__ import annotations

import types

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..sources import AttrSource, Source
from .base import Emitting, Tracing, VariableTracker
from .registry import wraps


class UserMethodVariable(VariableTracker):
    """A function bound to an instance or class. Rebuilt as `looked_up_on.name`; as a new method where the instance had something of
    that name when the frame began."""

    __slots__ = ("fn", "owner", "name", "looked_up_on", "made_anew")

    def __init__(
        self,
        fn: VariableTracker,
        owner: VariableTracker,
        name: str,
        looked_up_on: VariableTracker | None = None,
        made_anew: bool = False,
    ) -> None:
        super().__init__(None, VariableTracker.propagate(fn, owner))
        self.made_anew = made_anew
        self.fn = fn
        self.owner = owner
        self.name = name
        self.looked_up_on = looked_up_on or owner

    def python_type(self) -> type:
        return types.MethodType

    def is_hidden(self) -> bool:
        """Whether the attribute cannot be loaded again before the trace's effects are replayed."""
        return self.made_anew or self.looked_up_on.has_stored(self.name)

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.fn, self.owner) if self.is_hidden() else (self.looked_up_on,)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.fn, [self.owner, *args], kwargs)

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.is_hidden():
            return E.Call(E.Const(types.MethodType), (emit.value(self.fn), emit.value(self.owner)))
        return E.Attr(emit.value(self.looked_up_on), self.name)


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
