"""What modules from outside and modules made in the trace share, and the latter: attributes as `Module.__getattr__` finds them, stores as
`Module.__setattr__` does them, hooks."""

from __future__ import annotations

import torch
from torch.nn.modules import module as module_globals

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..reasons import STORE
from ..sources import AttrSource, ItemSource, Source
from ..static_access import is_subtype, static_attr, type_lookup
from .base import Tracing, VariableTracker
from .constant import ConstantVariable
from .dicts import DictVariable, Key
from .functions import UserFunctionVariable
from .lazy import LazyVariable
from .methods import UserMethodVariable
from .new_objects import NewObjectVariable
from .tensor import TensorVariable
from .user_objects import MISSING, UserObject, no_attribute

TABLES = ("_parameters", "_buffers", "_modules")  # in the order in which they are asked
HOOKS = (  # dictionaries of hooks that a call asks
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_hooks",
)
MARKS: dict[type, str] = {  # attributes that make a tensor an instance
    torch.nn.Parameter: "_is_param",
    torch.nn.Buffer: "_is_buffer",
}
Hooks = list[tuple[int, VariableTracker]]


class ModuleObject(UserObject):
    """An instance of nn.Module."""

    __slots__ = ()

    def table(self, tx: Tracing, name: str) -> DictVariable | None:
        """`_parameters`, `_buffers` or `_modules`; None before `Module.__init__`."""
        found = self.own_attribute(tx, name)
        found = None if found is None else found.realize(tx)
        if found is not None and not isinstance(found, DictVariable):
            self.refuse(tx, f"attribute {name}")
        return found

    def registered(self, tx: Tracing, name: str) -> VariableTracker:
        """nn.Module.__getattr__."""
        key = Key(tx, ConstantVariable(name))
        for each in TABLES:
            table = self.table(tx, each)
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
        """nn.Module.__setattr__: in short for values and names that register nothing, and for buffers; else its own code."""
        value = value.realize(tx)
        key = Key(tx, ConstantVariable(name))
        registered = [
            t for t in (self.table(tx, each) for each in ("_parameters", "_modules")) if t is not None
        ]
        if _registers(tx, value) or any(table.look_up(tx, key) is not None for table in registered):
            self.assign_by_code(tx, name, value)
            return
        buffers = self.table(tx, "_buffers")
        if buffers is None or buffers.look_up(tx, key) is None:
            self.guard_rest_of_mro(tx)
            self.generic_setattr(tx, name, value)
            return
        register = self.getattr(tx, "register_buffer").realize(tx)
        fn = register.fn.realize(tx) if isinstance(register, UserMethodVariable) else None
        usual = isinstance(fn, UserFunctionVariable) and fn.fn is torch.nn.Module.register_buffer
        kept = isinstance(value, TensorVariable) or value.python_type() is type(None)
        if not usual or not kept or self.global_hooks(tx, "_global_buffer_registration_hooks"):
            self.assign_by_code(tx, name, value)
            return
        buffers.put(tx, key, value)

    def guard_rest_of_mro(self, tx: Tracing) -> None:
        """`super().__setattr__` in nn.Module is object's."""
        mro = type.__dict__["__mro__"].__get__(self.cls)
        for position in range(mro.index(torch.nn.Module) + 1, len(mro)):
            if type_lookup(mro[position], "__setattr__") is not object.__setattr__:
                self.refuse(tx, "__setattr__")
            if mro[position] is not object:
                above = ItemSource(AttrSource(self.type_source(tx), "__mro__"), position)
                tx.install(make_guard(AttrSource(above, "__setattr__"), GuardBuilder.ID_MATCH))

    def assign_by_code(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """The code of nn.Module.__setattr__, traced."""
        source = AttrSource(self.source_of_module(tx), "__setattr__")
        code = UserFunctionVariable(torch.nn.Module.__setattr__, source)
        code.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.FUNCTION_MATCH)
        tx.inline(code, [self, ConstantVariable(name), value], {})

    def source_of_module(self, tx: Tracing) -> Source:
        """One way to the class nn.Module for the whole trace."""
        position = type.__dict__["__mro__"].__get__(self.cls).index(torch.nn.Module)
        module = ItemSource(AttrSource(self.type_source(tx), "__mro__"), position)
        found: Source = tx.trace.class_sources.setdefault(torch.nn.Module, module)
        return found

    def has_no_hooks(self, tx: Tracing) -> bool:
        """Whether none of the dictionaries of hooks that a call asks has an element."""
        return not any(self.hooks(tx, name) or self.global_hooks(tx, f"_global{name}") for name in HOOKS)

    def hooks(self, tx: Tracing, name: str) -> Hooks:
        """(id, hook) of one of the instance's dictionaries of hooks, as the trace left it."""
        found = self.own_attribute(tx, name)
        if found is None or type_lookup(self.cls, name) is not None:
            self.refuse(tx, f"attribute {name}")
        return self.read_hooks(tx, found)

    def global_hooks(self, tx: Tracing, name: str) -> Hooks:
        """The same for a dictionary that holds for every module."""
        return self.read_hooks(tx, self.global_table(tx, name))

    def global_table(self, tx: Tracing, name: str) -> DictVariable:
        """A dictionary of hooks that hold for every module."""
        names = AttrSource(AttrSource(self.source_of_module(tx), "_call_impl"), "__globals__")
        found = LazyVariable(vars(module_globals)[name], ItemSource(names, name)).realize(tx)
        if not isinstance(found, DictVariable):
            self.refuse(tx, "hooks")
        return found

    def read_hooks(self, tx: Tracing, found: VariableTracker) -> Hooks:
        hooks = found.realize(tx)
        if not isinstance(hooks, DictVariable):
            self.refuse(tx, "hooks")
        if not hooks.slot_len(tx):
            return []
        return [(key.value, hooks.items[key]) for key in hooks.all_keys(tx)]


class NewModuleVariable(ModuleObject, NewObjectVariable):
    """One that was made in the trace: `Module.__init__` is traced as any other. Rebuilt as any new object is."""

    __slots__ = ()


def _registers(tx: Tracing, value: VariableTracker) -> bool:
    """Would nn.Module register the value, whatever its name?"""
    kind = value.python_type()
    if kind is object:
        tx.unsupported(STORE, operation="assignment of something unknown", what="a module")
    if is_subtype(kind, torch.nn.Module) or is_subtype(kind, torch.nn.Parameter):
        return True
    return any(is_marked(tx, value, mark) for mark in MARKS.values())


def is_marked(tx: Tracing, value: VariableTracker, mark: str) -> bool:
    """Whether the value is a tensor that has the attribute, and that is true."""
    if not isinstance(value, TensorVariable) or not tx.tensor_has(value, mark):
        return False
    assert value.source is not None
    example = tx.graph.inputs[value.as_proxy().node].example
    return tx.wrap(static_attr(example, mark), AttrSource(value.source, mark)).realize(tx).slot_truth(tx)
