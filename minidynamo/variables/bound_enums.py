"""Enumerations that torch has from C++: `SDPBackend.MATH`. Their members are single objects, compared by what they are."""

from __future__ import annotations

from typing import Any

import torch

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..sources import Source
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .registry import wraps_if

METACLASS = type(torch._C._SDPBackend)


def is_bound_enumeration(cls: Any) -> bool:
    """Whether `cls` is such an enumeration."""
    return type(cls) is METACLASS and "__entries" in cls.__dict__


def members_of(cls: Any) -> dict[str, Any]:
    """Its members by name."""
    return {name: entry[0] for name, entry in cls.__dict__["__entries"].items()}


class BoundMemberVariable(VariableTracker):
    """A member, guarded to be that object. Always rebuilt from its source."""

    __slots__ = ("value",)
    source: Source

    def __init__(self, value: Any, source: Source) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def known_object(self) -> tuple[Any, ...]:
        return (self.value,)

    def as_key(self, tx: Tracing) -> Any:
        return self.value

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name in ("name", "value"):
            return ConstantVariable(getattr(self.value, name), guards=self.guards)
        return super().getattr(tx, name)

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """Between members of one enumeration, by value."""
        if symbol not in ("==", "!=") or left.python_type() is not right.python_type():
            return super().slot_compare(tx, symbol, left, right)
        assert isinstance(left, BoundMemberVariable) and isinstance(right, BoundMemberVariable)
        equal = left.value.value == right.value.value
        return ConstantVariable(equal is (symbol == "=="), guards=VariableTracker.propagate(left, right))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


@wraps_if("member of a C++ enumeration", lambda value: is_bound_enumeration(type(value)))
def wrap_bound_member(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = BoundMemberVariable(value, source)
    made.make_guards(tx, GuardBuilder.ID_MATCH)
    return made
