"""Constants of a code object that are handed through and not looked into: code objects, frozensets, exception types."""

from __future__ import annotations

import types
from typing import Any

from ..pycode import expr as E
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .registry import FROM_PYTHON

READABLE = frozenset(
    "co_name co_qualname co_filename co_argcount co_kwonlyargcount co_posonlyargcount co_nlocals co_flags co_firstlineno "
    "co_varnames co_freevars co_cellvars co_names".split()
)


def folded(value: Any) -> VariableTracker:
    """A constant, or a tuple of them."""
    return (
        FROM_PYTHON[tuple]([folded(item) for item in value])
        if type(value) is tuple
        else ConstantVariable(value)
    )


class CodeVariable(VariableTracker):
    """Rebuilt as a constant of the new code."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """Numbers, names and tuples of names of a code object."""
        if isinstance(self.value, types.CodeType) and name in READABLE:
            return folded(getattr(self.value, name))
        return super().getattr(tx, name)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Const(self.value)
