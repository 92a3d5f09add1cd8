"""Values that are not followed: they can be passed around, compared with None, and handed to plain Python at a break."""

from __future__ import annotations

from typing import Any

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..sources import Source
from .base import Emitting, Tracing, VariableTracker


class OpaqueVariable(VariableTracker):
    """A value of a type nothing follows, guarded by its exact type. Always rebuilt from its source."""

    __slots__ = ("tp",)
    source: Source

    def __init__(self, value: Any, source: Source) -> None:
        super().__init__(source)
        self.tp = type(value)

    def python_type(self) -> type:
        return self.tp

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


def wrap_opaque(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = OpaqueVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made


class TemporaryVariable(VariableTracker):
    """The result of an instruction that plain Python ran at a graph break: known only as a local of the emitted code."""

    __slots__ = ("local",)

    def __init__(self, local: str) -> None:
        super().__init__()
        self.local = local

    def python_type(self) -> type:
        return object

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Local(self.local)


class NullVariable(VariableTracker):
    """CPython's NULL on the stack, beside a callable."""

    __slots__ = ()

    def python_type(self) -> type:
        return type(None)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Null()


NULL = NullVariable()
