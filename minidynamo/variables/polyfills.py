"""Functions of `minidynamo.polyfills`: they stand for builtins written in C, and nobody can change them."""

from __future__ import annotations

import types
from typing import Any

from ..pycode import expr as E
from .base import Emitting, Tracing, VariableTracker
from .classes import ClassVariable
from .constant import CONSTANT_TYPES, ConstantVariable
from .functions import BuiltinVariable, FunctionVariable


class PolyfillVariable(FunctionVariable):
    """One of them: inlined without any guard. It never leaves the trace."""

    __slots__ = ("fn",)

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def code(self) -> types.CodeType:
        return self.fn.__code__

    def default(self, tx: Tracing, index: int, count: int) -> VariableTracker | None:
        defaults = self.fn.__defaults__ or ()
        at = index - (count - len(defaults))
        return known(defaults[at]) if at >= 0 else None

    def keyword_default(self, tx: Tracing, name: str) -> VariableTracker | None:
        defaults = self.fn.__kwdefaults__ or {}
        return known(defaults[name]) if name in defaults else None

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.impossible(f"the polyfill {self.name()}")


def known(value: Any) -> VariableTracker:
    """The tracker of what a polyfill names: a constant, a class, a builtin, another polyfill."""
    if type(value) in CONSTANT_TYPES:
        return ConstantVariable(value)
    if isinstance(value, type):
        return ClassVariable(value, None)
    if type(value) is types.FunctionType:
        return PolyfillVariable(value)
    return BuiltinVariable(value, None)
