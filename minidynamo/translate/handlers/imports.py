"""Imports inside functions. A module that is in `sys.modules` is used as it is there, and guarded; anything else would run code while
tracing, so it is left to plain Python (decision 9)."""

from __future__ import annotations

import builtins
import sys
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from ...guards.builder import GuardBuilder
from ...guards.guard import make_guard
from ...pycode.instruction import Instruction
from ...reasons import IMPORT
from ...sources import AttrSource, BuiltinSource, ItemSource, ModulesSource
from ...variables.base import Tracing
from ...variables.modules import PythonModuleVariable
from .stack import constant_operand
from .table import handles


def refuse(tx: Tracing, name: str) -> NoReturn:
    tx.unsupported(IMPORT, name=name)


def module_named(tx: Any, name: str) -> PythonModuleVariable:
    """`sys.modules[name]`, a module that has been imported to its end."""
    module = sys.modules.get(name)
    made = tx.wrap(module, ItemSource(ModulesSource(), name)) if module is not None else None
    if not isinstance(made, PythonModuleVariable):
        refuse(tx, name)
    spec = made.module.__dict__.get("__spec__")
    if type(spec) is ModuleSpec and spec.__dict__.get("_initializing"):
        refuse(tx, name)
    return made


def _agrees(spec: Any, package: str) -> bool:
    """CPython warns when `__spec__` names another package."""
    return type(spec) is ModuleSpec and spec.parent == package


def absolute_name(tx: Any, name: str, level: int) -> str:
    """CPython: resolve_name, for modules that have the usual `__package__`. It is guarded."""
    if not level:
        return name
    package = tx.scope.load(tx, "__package__").realize(tx) if "__package__" in tx.scope.names else None
    if package is None or not package.is_python_constant() or type(package.as_python_constant()) is not str:
        refuse(tx, "." * level + name)
    parts = package.as_python_constant().split(".")
    spec = tx.scope.names.get("__spec__")
    if level > len(parts) or not parts[0] or spec is not None and not _agrees(spec, ".".join(parts)):
        refuse(tx, "." * level + name)
    base = ".".join(parts[: len(parts) - level + 1])
    return f"{base}.{name}" if name else base


@handles("IMPORT_NAME")
def import_name(tx: Any, inst: Instruction) -> None:
    """CPython: PyImport_ImportModuleLevelObject."""
    level, names = (constant_operand(tx, value) for value in tx.popn(2))
    own = "__import__" in tx.trace.frame.globals  # no import uses it, but then no guard can name the builtin
    if own or tx.scope.builtins.get("__import__") is not builtins.__import__:
        refuse(tx, inst.arg)
    tx.install(make_guard(BuiltinSource("__import__"), GuardBuilder.BUILTIN_MATCH))
    name = absolute_name(tx, inst.arg, level)
    module = module_named(tx, name)
    if not names:
        tx.push(module if level else module_named(tx, name.partition(".")[0]))
        return
    members = module.module.__dict__
    if "__path__" in members and not all(wanted in members for wanted in names):
        refuse(tx, name)
    tx.push(module)


@handles("IMPORT_FROM")
def import_from(tx: Any, inst: Instruction) -> None:
    """CPython: import_from: an attribute of the module, else a submodule. The module stays on the stack."""
    module = tx.stack[-1].realize(tx)
    if not isinstance(module, PythonModuleVariable):
        refuse(tx, inst.arg)
    members = module.module.__dict__
    if inst.arg in members or tx.written_global(members, inst.arg) is not None:
        tx.push(module.getattr(tx, inst.arg))
        return
    own_name = members.get("__name__")
    if "__getattr__" in members or type(own_name) is not str:
        refuse(tx, inst.arg)
    whole = AttrSource(module.source, "__dict__")
    tx.install(make_guard(whole, GuardBuilder.DICT_CONTAINS, inst.arg))
    tx.install(make_guard(ItemSource(whole, "__name__"), GuardBuilder.EQUALS_MATCH))
    tx.push(module_named(tx, f"{own_name}.{inst.arg}"))
