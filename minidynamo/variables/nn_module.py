"""Instances of nn.Module: attributes as `Module.__getattr__` finds them, stores as `Module.__setattr__` does them (decision 24).

A module is known by its class and by what was read from it, never by identity: another instance that agrees is served by the same
code. Parameters and buffers are graph inputs, reached through `_parameters` and `_buffers`. What concerns a class alone is guarded
once for all its instances in a trace.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from ..guards import py_leaves
from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..optimized_module import OptimizedModule
from ..pycode import expr as E
from ..sources import AttrSource, Source, TypeSource
from ..static_access import instance_dict, is_subtype, type_lookup
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .dicts import DictVariable, Key
from .lazy import LazyVariable
from .module_objects import HOOKS, TABLES, ModuleObject
from .opaque import wrap_opaque
from .registry import wraps_if
from .sequences import TupleVariable
from .user_objects import (
    MISSING,
    UserObjectVariable,
    has_plain_attributes,
    is_data_descriptor,
    no_attribute,
)

CALL = ("_compiled_call_impl", "_call_impl")  # what nn.Module.__call__ reads of a module


class NNModuleVariable(ModuleObject, UserObjectVariable):
    """A module that exists outside of the trace."""

    __slots__ = ("lacking", "hookless", "tables")
    value: torch.nn.Module

    def __init__(self, value: torch.nn.Module, source: Source) -> None:
        super().__init__(value, source)
        self.lacking: dict[str, None] = {}  # names that its own dictionary lacks: guarded when the trace ends
        self.hookless = False  # guarded to have no hooks
        self.tables: dict[
            str, DictVariable
        ] = {}  # its own `_parameters` and so on, as far as they were looked at

    # --- where things are ---------------------------------------------------------------------------------------------
    def guard_lacks(self, tx: Tracing, name: str) -> None:
        """One guard for all names."""
        if not self.lacking:
            tx.trace.lacking.append(self)
        self.lacking[name] = None

    def type_source(self, tx: Tracing) -> Source:
        """One way to the class for all its instances: the types of all are guarded."""
        known: dict[type, Source] = tx.trace.class_sources
        return known.setdefault(self.cls, TypeSource(self.source))

    def class_source(self, tx: Tracing, name: str) -> Source:
        """Read from the class; that the instance does not shadow it was guarded when it was looked for there."""
        if is_data_descriptor(type_lookup(type(self.cls), name)):
            return super().class_source(tx, name)
        return AttrSource(self.type_source(tx), name)

    def class_variable(self, tx: Tracing) -> VariableTracker:
        return tx.wrap(self.cls, self.type_source(tx))

    def guard_presence(self, tx: Tracing, name: str) -> None:
        if (self.cls, name) in tx.trace.class_names:
            return
        if (
            type_lookup(type(self.cls), name, MISSING) is not MISSING
        ):  # the metaclass has it: ask the instance
            super().guard_presence(tx, name)
        else:
            tx.install(make_guard(self.type_source(tx), GuardBuilder.HASATTR, name))
            tx.trace.class_names.add((self.cls, name))

    def table(self, tx: Tracing, name: str) -> DictVariable | None:
        if name in self.stored:
            return super().table(tx, name)
        found = self.tables.get(name)
        if found is None:
            found = super().table(tx, name)
            if found is not None:
                self.tables[name] = found
        return found

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """What is registered is found at once; the guards are those of the long way."""
        cls = self.cls
        if (
            name in self.stored
            or type_lookup(cls, name, MISSING) is not MISSING
            or type_lookup(cls, "__getattr__") is not torch.nn.Module.__getattr__
        ):
            return super().getattr(tx, name)
        own = self.own_attribute(tx, name)
        if own is not None:
            return own
        self.guard_presence(tx, name)
        if (cls, "__getattr__") not in tx.trace.class_names:
            self.special(tx, "__getattr__")
            tx.trace.class_names.add((cls, "__getattr__"))
        return self.registered(tx, name)

    def registered(self, tx: Tracing, name: str) -> VariableTracker:
        """One guard says that a table is empty, whatever the names."""
        key = Key.of(name, ConstantVariable(name))
        for each in TABLES:
            table = self.table(tx, each)
            if table is None:
                continue
            if not table.items and not table.resized:
                table.slot_len(tx)
                continue
            found = table.look_up(tx, key)
            if found is not None:
                return found
        no_attribute(tx, self, name)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """`Module.__call__` and `_call_impl`, where the trace has seen for the class that both are nn.Module's own: what is left is to
        look at the instance."""
        if self.cls in tx.trace.plain_calls and self.is_called_plainly(tx):
            return tx.call(self.getattr(tx, "forward"), args, kwargs)
        return super().call_function(tx, args, kwargs)

    def is_called_plainly(self, tx: Tracing) -> bool:
        """Whether neither what `Module.__call__` reads nor a hook is the instance's own."""
        members = instance_dict(self.value)
        if members is None or any(name in self.stored or name in members for name in CALL):
            return False
        for name in CALL:
            self.guard_lacks(tx, name)
        return self.has_no_hooks(tx)

    def store(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """What is left of `Module.__setattr__`, all its questions being answered by guards."""
        tx.effect_call(object.__setattr__, self, ConstantVariable(name), value)
        self.keep(name, value)

    # --- hooks --------------------------------------------------------------------------------------------------------
    def has_no_hooks(self, tx: Tracing) -> bool:
        """Whether none of the dictionaries of hooks that a call asks has an element: one guard for the instance's own. False also
        where the trace has looked at one of them closer."""
        own = [AttrSource(self.source, name) for name in HOOKS]
        for name, source in zip(HOOKS, own):
            if name in self.stored or source in tx.trace.by_source:
                return False
        if not self.hookless:
            if py_leaves.first_filled(self.value, HOOKS) is not None:
                return False
            tx.install(make_guard(self.source, GuardBuilder.EMPTY_MEMBERS, HOOKS))
            tx.trace.untouched.extend(own)
            self.hookless = True
        everywhere: list[DictVariable] = tx.trace.global_hooks
        if not everywhere:
            everywhere.extend(self.global_table(tx, f"_global{name}") for name in HOOKS)
            for table in everywhere:
                table.slot_len(tx)
        for table in everywhere:
            if table.items:
                return False
        return True


class ModuleSliceVariable(VariableTracker):
    """`container[begin:end]`: a new container, of which only the items are followed. Rebuilt by the same slice."""

    __slots__ = ("container", "key", "items")
    mutable = True

    def __init__(
        self, container: NNModuleVariable, key: VariableTracker, items: list[VariableTracker]
    ) -> None:
        super().__init__(None, VariableTracker.propagate(container, key))
        self.container = container
        self.key = key
        self.items = items

    def python_type(self) -> type:
        return self.container.cls

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.container, self.key)

    def slot_len(self, tx: Tracing) -> int:
        return len(self.items)

    def slot_truth(self, tx: Tracing) -> bool:
        return bool(self.items)

    def sequence_items(self, tx: Tracing) -> list[VariableTracker] | None:
        return self.items

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return TupleVariable(self.items, guards=self.guards).slot_iter(tx)

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        return TupleVariable(self.items, guards=self.guards).slot_getitem(tx, key)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Item(emit.value(self.container), emit.value(self.key))


def _followed(value: Any) -> bool:
    cls = type(value)
    return (
        is_subtype(cls, torch.nn.Module)
        and has_plain_attributes(cls)
        and not is_subtype(cls, torch.jit.ScriptModule)
        and not is_subtype(cls, OptimizedModule)
        and not is_subtype(cls, types.ModuleType)
    )


@wraps_if("nn.Module", _followed)
def wrap_nn_module(tx: Tracing, value: torch.nn.Module, source: Source) -> VariableTracker:
    made = NNModuleVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    tx.guard_class(type(value), made.type_source(tx))
    return made


class OptimizedModuleVariable(VariableTracker):
    """An optimized module met while tracing: its calls are those of the original, under the outer key (decision 30)."""

    __slots__ = ("original",)
    mutable = True
    source: Source

    def __init__(self, original: VariableTracker, source: Source) -> None:
        super().__init__(source)
        self.original = original

    def python_type(self) -> type:
        return OptimizedModule

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.original, args, kwargs)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name == "_orig_mod":
            return self.original
        if type_lookup(OptimizedModule, name, MISSING) is not MISSING:
            return super().getattr(tx, name)
        return self.original.getattr(tx, name)

    def setattr(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        self.original.setattr(tx, name, value)

    def reconstruct(self, emit: Emitting) -> Any:
        return emit.load(self.source)


@wraps_if("optimized module", lambda value: type(value) is OptimizedModule)
def wrap_optimized_module(tx: Tracing, value: OptimizedModule, source: Source) -> VariableTracker:
    opaque = wrap_opaque(tx, value, source)
    original = LazyVariable(value._orig_mod, AttrSource(source, "_orig_mod")).realize(tx)
    made = OptimizedModuleVariable(original, source)
    made.guards = VariableTracker.propagate(opaque, original)
    return made
