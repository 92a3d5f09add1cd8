"""Python modules: attributes are read statically from their dictionary."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS
from ..sources import AttrSource, ItemSource, Source
from ..static_access import type_lookup
from .base import Emitting, Tracing, VariableTracker
from .functions import TorchFunctionVariable
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

    def known_object(self) -> tuple[Any, ...]:
        return (self.module,)

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

    def lacks(self, tx: Tracing, name: str) -> bool:
        """Whether reading the attribute raises AttributeError, guarded. Breaks the graph where the module's `__getattr__` decides."""
        members, names = self.module.__dict__, AttrSource(self.source, "__dict__")
        if tx.written_global(members, name) is not None:
            return False
        tx.install(make_guard(names, GuardBuilder.DICT_CONTAINS, name))
        if name in members:
            return False
        if "__getattr__" in members:
            self._opaque(tx, f"test for attribute {name}")
        tx.install(make_guard(names, GuardBuilder.DICT_CONTAINS, "__getattr__"))
        return True

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


@wraps(types.ModuleType)
def wrap_module(tx: Tracing, value: types.ModuleType, source: Source) -> VariableTracker:
    made = PythonModuleVariable(value, source)
    made.make_guards(tx, GuardBuilder.MODULE_MATCH)
    return made


class ModuleOfOwnClassVariable(PythonModuleVariable):
    """A module of a subclass of the type: what its dictionary has and its class has not is read as usual."""

    __slots__ = ()

    def python_type(self) -> type:
        return type(self.module)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name not in self.module.__dict__ or type_lookup(type(self.module), name, self) is not self:
            return VariableTracker.getattr(self, tx, name)
        return super().getattr(tx, name)


@wraps(type(torch.backends))
def wrap_backends(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    """torch.backends: its submodules are followed, its properties are not."""
    made = ModuleOfOwnClassVariable(value, source)
    made.make_guards(tx, GuardBuilder.MODULE_MATCH)
    return made


class OperatorModuleVariable(ModuleOfOwnClassVariable):
    """torch._VF: what its dictionary lacks are the builtin operators of torch, which nobody can change."""

    __slots__ = ()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        operator = getattr(torch._C._VariableFunctions, name, None)
        if name in self.module.__dict__ or tx.torch_kind(operator) is None:
            return super().getattr(tx, name)
        names = AttrSource(self.source, "__dict__")
        tx.install(make_guard(names, GuardBuilder.DICT_CONTAINS, name))
        tx.install(make_guard(ItemSource(names, "vf"), GuardBuilder.TYPE_MATCH))
        return TorchFunctionVariable(operator, None)


class OperatorSpaceVariable(ModuleOfOwnClassVariable):
    """torch.ops and its namespaces: an operator is put into the dictionary when it is first asked for."""

    __slots__ = ()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name not in self.module.__dict__ and not name.startswith("_"):
            getattr(self.module, name, None)  # torch's own, and it asks a table of operators
        return super().getattr(tx, name)


@wraps(type(torch.ops), type(torch.ops.aten))
def wrap_operator_space(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = OperatorSpaceVariable(value, source)
    made.make_guards(tx, GuardBuilder.MODULE_MATCH)
    return made


class OverloadedVariable(TorchFunctionVariable):
    """`torch.ops.aten.relu`: an operator, with its overloads as attributes."""

    __slots__ = ()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if self.source is None or name not in self.fn.overloads():
            return super().getattr(tx, name)
        return OverloadVariable(getattr(self.fn, name), AttrSource(self.source, name))


class OverloadVariable(TorchFunctionVariable):
    """`torch.ops.aten.relu.default`, one overload: nobody can change which one that is."""

    __slots__ = ()


class CustomOpVariable(TorchFunctionVariable):
    """What `torch.library.custom_op` makes of a function: the operator that it defines."""

    __slots__ = ()

    def python_type(self) -> type:
        return CustomOpDef


@wraps(CustomOpDef)
def wrap_custom_op(tx: Tracing, value: CustomOpDef, source: Source) -> VariableTracker:
    made = CustomOpVariable(value, source)
    made.make_guards(tx, GuardBuilder.ID_MATCH)
    return made


@wraps(torch._ops.OpOverloadPacket, torch._ops.OpOverload)
def wrap_operator(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    kind = OverloadVariable if isinstance(value, torch._ops.OpOverload) else OverloadedVariable
    made = kind(value, source)
    made.make_guards(tx, GuardBuilder.ID_MATCH)
    return made


@wraps(type(torch._VF))
def wrap_operator_module(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = OperatorModuleVariable(value, source)
    made.make_guards(tx, GuardBuilder.MODULE_MATCH)
    return made
