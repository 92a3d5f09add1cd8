"""Python modules: attributes are read statically from their dictionary."""

from __future__ import annotations

import types

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS
from ..sources import AttrSource, ItemSource, Source
from .base import Emitting, Tracing, VariableTracker
from .registry import wraps


class PythonModuleVariable(VariableTracker):
    """A module, guarded by identity; an attribute is a source of its own. Always rebuilt from its source."""

    __slots__ = ("module",)
    source: Source

    def __init__(self, module: types.ModuleType, source: Source) -> None:
        super().__init__(source)
        self.module = module

    def python_type(self) -> type:
        return types.ModuleType

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: module_getattro; a module's own `__getattr__` and what the type provides are left to plain Python."""
        members = self.module.__dict__
        written = tx.written_global(members, name)
        if written is not None:
            return written
        if name in members:
            return tx.lazily(members[name], ItemSource(AttrSource(self.source, "__dict__"), name))
        if hasattr(types.ModuleType, name) or "__getattr__" in members:
            return super().getattr(tx, name)
        tx.unsupported(
            OPERATOR_FAILS, name=f"attribute {name} of module {self.module.__name__}", error="AttributeError"
        )

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


@wraps(types.ModuleType)
def wrap_module(tx: Tracing, value: types.ModuleType, source: Source) -> VariableTracker:
    made = PythonModuleVariable(value, source)
    made.make_guards(tx, GuardBuilder.MODULE_MATCH)
    return made
