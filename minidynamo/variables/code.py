"""Constants of a code object that are handed through and not looked into: code objects, frozensets, exception types."""

from __future__ import annotations

from typing import Any

from ..pycode import expr as E
from .base import Emitting, VariableTracker


class CodeVariable(VariableTracker):
    """Rebuilt as a constant of the new code."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Const(self.value)
