"""Instances of nn.Module: attributes as `Module.__getattr__` finds them, stores as `Module.__setattr__` does them (decision 24).

A module is known by its class and by what was read from it, never by identity: another instance that agrees is served by the same
code. Parameters and buffers are graph inputs, reached through `_parameters` and `_buffers`. What concerns a class alone is guarded
once for all its instances in a trace.
"""

from __future__ import annotations

import types
from typing import Any

import torch
from torch.nn.modules import module as module_globals

from ..guards import py_leaves
from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..optimized_module import OptimizedModule
from ..pycode import expr as E
from ..reasons import STORE
from ..sources import AttrSource, ItemSource, Source, TypeSource
from ..static_access import has_static_attr, is_subtype, type_lookup
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .dicts import DictVariable, Key
from .functions import UserFunctionVariable
from .lazy import LazyVariable
from .opaque import wrap_opaque
from .registry import wraps_if
from .sequences import TupleVariable
from .tensor import TensorVariable
from .user_objects import (
    MISSING,
    UserMethodVariable,
    UserObjectVariable,
    has_plain_attributes,
    is_data_descriptor,
    no_attribute,
)

TABLES = ("_parameters", "_buffers", "_modules")  # in the order in which they are asked
HOOKS = (  # dictionaries of hooks that a call asks
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_hooks",
)
MARKS = ("_is_param", "_is_buffer")  # attributes that make a tensor a Parameter or Buffer
Hooks = list[tuple[int, VariableTracker]]


class NNModuleVariable(UserObjectVariable):
    """A module that exists outside of the trace."""

    __slots__ = ("lacking", "hookless")
    value: torch.nn.Module

    def __init__(self, value: torch.nn.Module, source: Source) -> None:
        super().__init__(value, source)
        self.lacking: dict[str, None] = {}  # names that its own dictionary lacks: guarded when the trace ends
        self.hookless = False  # guarded to have no hooks

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
        if (
            type_lookup(type(self.cls), name, MISSING) is not MISSING
        ):  # the metaclass has it: ask the instance
            super().guard_presence(tx, name)
        else:
            tx.install(make_guard(self.type_source(tx), GuardBuilder.HASATTR, name))

    def table(self, tx: Tracing, name: str) -> DictVariable | None:
        """`_parameters`, `_buffers` or `_modules`; None before `Module.__init__`."""
        found = self.own_attribute(tx, name)
        found = None if found is None else found.realize(tx)
        if found is not None and not isinstance(found, DictVariable):
            self.refuse(tx, f"attribute {name}")
        return found

    # --- nn.Module's own attribute access -----------------------------------------------------------------------------
    def registered(self, tx: Tracing, name: str) -> VariableTracker:
        """nn.Module.__getattr__."""
        key = Key(tx, ConstantVariable(name))
        for table in (self.table(tx, each) for each in TABLES):
            found = None if table is None else table.look_up(tx, key)
            if found is not None:
                return found
        no_attribute(tx, self, name)

    def lacks(self, tx: Tracing, name: str, generic: bool = False) -> bool:
        if generic or type_lookup(self.cls, "__getattr__") is not torch.nn.Module.__getattr__:
            return super().lacks(tx, name, generic)
        raw = type_lookup(self.cls, name, MISSING)
        if name == "__class__" or self.own_attribute(tx, name) is not None or raw is not MISSING:
            return False
        self.guard_presence(tx, name)
        self.special(tx, "__getattr__")
        key = Key(tx, ConstantVariable(name))
        tables = [self.table(tx, each) for each in TABLES]
        return all(table is None or table.look_up(tx, key) is None for table in tables)

    def setattr(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        self.call_special(tx, "__setattr__", [ConstantVariable(name), value])

    def assign(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """nn.Module.__setattr__, for values and names that register nothing; the rest is left to plain Python."""
        value = value.realize(tx)
        key = Key(tx, ConstantVariable(name))
        registered = [
            t for t in (self.table(tx, each) for each in ("_parameters", "_modules")) if t is not None
        ]
        if _registers(tx, value) or any(table.look_up(tx, key) is not None for table in registered):
            self.refuse_store(tx, name)
        buffers = self.table(tx, "_buffers")
        if buffers is None or buffers.look_up(tx, key) is None:
            self.guard_rest_of_mro(tx)
            self.generic_setattr(tx, name, value)
            return
        register = self.getattr(tx, "register_buffer").realize(tx)
        fn = register.fn.realize(tx) if isinstance(register, UserMethodVariable) else None
        if not isinstance(fn, UserFunctionVariable) or fn.fn is not torch.nn.Module.register_buffer:
            self.refuse_store(tx, name)
        if self.global_hooks(tx, "_global_buffer_registration_hooks"):
            self.refuse_store(tx, name)
        if not isinstance(value, TensorVariable) and value.python_type() is not type(None):
            self.refuse_store(tx, name)
        buffers.put(tx, key, value)

    def refuse_store(self, tx: Tracing, name: str) -> None:
        tx.unsupported(
            STORE, operation=f"assignment of attribute {name}", what=f"the module {self.type_name()}"
        )

    def guard_rest_of_mro(self, tx: Tracing) -> None:
        """`super().__setattr__` in nn.Module is object's."""
        mro = type.__dict__["__mro__"].__get__(self.cls)
        for position in range(mro.index(torch.nn.Module) + 1, len(mro)):
            if type_lookup(mro[position], "__setattr__") is not object.__setattr__:
                self.refuse(tx, "__setattr__")
            if mro[position] is not object:
                above = ItemSource(AttrSource(self.type_source(tx), "__mro__"), position)
                tx.install(make_guard(AttrSource(above, "__setattr__"), GuardBuilder.ID_MATCH))

    def store(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """What is left of `Module.__setattr__`, all its questions being answered by guards."""
        tx.effect_call(object.__setattr__, self, ConstantVariable(name), value)
        self.stored[name] = value

    # --- hooks --------------------------------------------------------------------------------------------------------
    def has_no_hooks(self, tx: Tracing) -> bool:
        """Whether none of the dictionaries of hooks that a call asks has an element: one guard for the instance's own. False also
        where the trace has looked at one of them closer."""
        if any(name in self.stored or tx.trace.knows(AttrSource(self.source, name)) for name in HOOKS):
            return False
        if not self.hookless:
            if py_leaves.first_filled(self.value, HOOKS) is not None:
                return False
            tx.install(make_guard(self.source, GuardBuilder.EMPTY_MEMBERS, HOOKS))
            tx.trace.untouched.extend(AttrSource(self.source, name) for name in HOOKS)
            self.hookless = True
        return not any(self.global_hooks(tx, f"_global{name}") for name in HOOKS)

    def hooks(self, tx: Tracing, name: str) -> Hooks:
        """(id, hook) of one of the instance's dictionaries of hooks, as the trace left it."""
        found = self.own_attribute(tx, name)
        if found is None or type_lookup(self.cls, name) is not None:
            self.refuse(tx, f"attribute {name}")
        return self.read_hooks(tx, found)

    def global_hooks(self, tx: Tracing, name: str) -> Hooks:
        """The same for a dictionary that holds for every module."""
        position = type.__dict__["__mro__"].__get__(self.cls).index(torch.nn.Module)
        module = ItemSource(AttrSource(self.type_source(tx), "__mro__"), position)
        module = tx.trace.class_sources.setdefault(torch.nn.Module, module)
        names = AttrSource(AttrSource(module, "_call_impl"), "__globals__")
        return self.read_hooks(tx, LazyVariable(vars(module_globals)[name], ItemSource(names, name)))

    def read_hooks(self, tx: Tracing, found: VariableTracker) -> Hooks:
        hooks = found.realize(tx)
        if not isinstance(hooks, DictVariable):
            self.refuse(tx, "hooks")
        if not hooks.slot_len(tx):
            return []
        return [(key.value, hooks.items[key]) for key in hooks.all_keys(tx)]


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


def _registers(tx: Tracing, value: VariableTracker) -> bool:
    """Would nn.Module register the value, whatever its name? Also true where that is not known."""
    kind = value.python_type()
    if kind is object or is_subtype(kind, torch.nn.Module) or is_subtype(kind, torch.nn.Parameter):
        return True
    if isinstance(value, TensorVariable) and value.source is not None:
        example = tx.graph.inputs[value.as_proxy().node].example
        for mark in MARKS:
            if has_static_attr(example, mark):
                return True
            tx.install(make_guard(value.source, GuardBuilder.HASATTR, mark))
    return False


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
