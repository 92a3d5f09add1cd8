"""Whether the code of a tensor wrapper (`__torch_dispatch__` and what it calls) may be run for a look, on fake tensors.

It may where it can be seen in it that it only computes: it stores nothing outside of its own variables and of the wrapper that it
makes, and calls nothing but torch, itself, and builtins that do nothing else either. What cannot be seen counts as seen to be otherwise.
Nothing is run here.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import os
import types
import weakref
from typing import Any

import torch

from ..exc import MinidynamoError
from ..guards.code_reads import (
    BINDING,
    RECORDS,
    CodeReads,
    read_cell,
    read_global,
    read_in_module,
    read_member,
)
from ..literals import is_literal
from ..pycode.lift import lift, unlift
from ..static_access import is_subtype, type_lookup

#: What torch calls of a wrapper's class.
ENTRIES = (
    "__torch_dispatch__",
    "__tensor_flatten__",
    "__tensor_unflatten__",
    "__new__",
    "__init__",
    "__torch_function__",
)
BUILTINS = frozenset(
    """
    abs all any bool bytes callable classmethod complex dict divmod enumerate filter float frozenset getattr hasattr hash id int
    isinstance issubclass iter len list map max min next object range repr reversed round set slice sorted staticmethod str sum
    super tuple type zip property
    """.split()
)  # fmt: skip
PURE_MODULES = (math, operator, functools)
#: Special names that computing does not use.
SPARED = frozenset(
    """
    __module__ __doc__ __qualname__ __name__ __dict__ __weakref__ __annotations__ __slots__ __firstlineno__ __static_attributes__
    __reduce__ __reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__ __dir__ __init_subclass__ __class_getitem__
    __orig_bases__ __parameters__ __match_args__ __dataclass_fields__ __dataclass_params__ __replace__ __annotate__
    """.split()
)
PRINTING = ("__repr__", "__str__", "__format__")
#: Operations that change what they are applied to, where that is no tensor.
CHANGES = frozenset(
    """
    append update pop setdefault clear extend insert remove discard popitem write sort reverse appendleft popleft move_to_end
    """.split()
)
#: Beginnings of names of torch's functions that change state of the process or files.
STATEFUL = (
    "set_",
    "_set_",
    "manual_seed",
    "seed",
    "save",
    "load",
    "register",
    "compile",
    "_register",
    "fork_",
    "enable_",
)
REFUSED = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL DELETE_ATTR STORE_NAME DELETE_NAME LOAD_NAME LOAD_BUILD_CLASS IMPORT_STAR".split()
)
CONTAINERS = (list, dict, set)
TORCH_VALUES = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops._OpNamespace)
_TORCH_DIRECTORY = os.path.dirname(torch.__file__) + os.sep
METACLASSES = (type, type(torch.Tensor), type(torch.nn.Parameter), type(torch.nn.Buffer))
_MISSING = object()


class Seen(MinidynamoError):
    """Why code may not be run for a look."""


def _is_torchs(value: Any) -> bool:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return type(module) is str and module.split(".")[0] == "torch"


class Look:
    """One look at the code of a class."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.reads = CodeReads(cls)
        self.classes: list[type] = []
        self.names: set[str] = set()  # attributes that some code reads
        self.codes: set[types.CodeType] = set()
        self.spelled: list[tuple[types.CodeType, str]] = []  # names in texts
        self.kept: list[str] = []  # containers that outlive a call
        self.changing: list[str] = []  # what would change one

    def all(self) -> CodeReads:
        """Follow everything. Raises Seen."""
        self.names.update(ENTRIES)
        self.add_class(self.cls)
        known = -1
        while known != len(self.names) + len(self.classes):
            known = len(self.names) + len(self.classes)
            for code, name in self.spelled if "getattr" in self.names else ():
                self.attribute(code, name)
            for cls in list(self.classes):
                for name in sorted(
                    self.names if "getattr" not in self.names else self.names | set(_own_names(cls))
                ):
                    self.member(cls, name)
        if self.kept and self.changing:
            raise Seen(f"may change {self.kept[0]} by {self.changing[0]}")
        return self.reads

    # --- classes ----------------------------------------------------------------------------------------------------------
    def add_class(self, cls: type) -> None:
        """A class whose instances are made, or whose attributes are read."""
        if any(cls is known for known in self.classes):
            return
        if not any(type(cls) is known for known in METACLASSES):
            raise Seen(f"uses class {cls.__name__}, which has a metaclass")
        self.classes.append(cls)
        self.names.update(name for name in _own_names(cls) if _is_called_unnamed(name))

    def member(self, cls: type, name: str) -> None:
        """What a class has under a name that is read somewhere."""
        raw = type_lookup(cls, name, _MISSING)
        if raw is _MISSING or any(
            raw is type_lookup(base, name, _MISSING) for base in (object, torch.Tensor)
        ):
            if name in ENTRIES:
                self.reads.add(cls, name, read_member(name))
            return
        self.reads.add(cls, name, read_member(name))
        if name == "__torch_function__" and raw is torch._C._disabled_torch_function_impl:  # type: ignore[attr-defined]
            return
        inner = raw.__func__ if type(raw) in BINDING else raw.fget if type(raw) is property else raw
        if type(inner) is types.FunctionType:
            self.function(inner)
        elif type(inner) not in (types.MemberDescriptorType, types.GetSetDescriptorType):
            self.value(f"{cls.__name__}.{name}", inner)

    # --- functions --------------------------------------------------------------------------------------------------------
    def function(self, fn: types.FunctionType) -> None:
        """A function that may be called."""
        wrapped = fn.__dict__.get("__wrapped__")
        if type(wrapped) is types.FunctionType and fn.__code__.co_filename.startswith(_TORCH_DIRECTORY):
            self.function(wrapped)  # a decorator of torch's around it
            return
        if fn.__code__ in self.codes:
            return
        for index, (name, cell) in enumerate(zip(fn.__code__.co_freevars, fn.__closure__ or ())):
            try:
                content = cell.cell_contents
            except ValueError:
                raise Seen(f"uses {name}, which has no value yet") from None
            self.reads.add(fn, f"cell {name}", read_cell(index))
            self.value(name, content)
        for default in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            self.value(f"a default of {fn.__name__}", default)
        self.code(fn.__code__, fn, frozenset(fn.__code__.co_freevars))

    def code(self, code: types.CodeType, fn: types.FunctionType, outer: frozenset[str]) -> None:
        """The code of a function, or of one that is defined in it. outer: the variables of functions around it."""
        self.codes.add(code)
        try:
            instructions = lift(code).instructions
        finally:
            unlift(code)
        makes = code.co_name if code.co_name in ("__new__", "__init__") else ""
        index = 0
        while index < len(instructions):
            at = instructions[index]
            name = at.arg
            if at.opname in REFUSED:
                raise Seen(f"{code.co_name} has {at.opname} {name}")
            if at.opname.startswith(("FORMAT_", "CONVERT_")):
                self.names.update(PRINTING)
            if at.opname == "BINARY_OP" and str(name).endswith("="):
                self.changing.append(f"{name}")
            if at.opname == "LOAD_GLOBAL":
                index = self.global_chain(instructions, index, fn)
                continue
            if at.opname == "STORE_ATTR" and not _stores_into_new(instructions[index - 1], code, makes):
                raise Seen(f"{code.co_name} stores attribute {name}")
            if (
                at.opname in ("STORE_DEREF", "DELETE_DEREF")
                and name in outer
                and name in fn.__code__.co_freevars
            ):
                raise Seen(f"{code.co_name} assigns to {name} of another function")
            if at.opname in ("STORE_SUBSCR", "DELETE_SUBSCR"):
                self.changing.append("an item assignment")
            if at.opname == "IMPORT_NAME" and name.split(".")[0] not in (
                "torch",
                "math",
                "operator",
                "functools",
            ):
                raise Seen(f"{code.co_name} imports {name}")
            if at.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER_ATTR"):
                self.attribute(code, str(name))
            if at.opname == "LOAD_SUPER_ATTR":
                self.attribute(code, str(name[0] if isinstance(name, tuple) else name))
            index += 1
        for const in code.co_consts:
            if type(const) is str and const.isidentifier():  # perhaps a name for getattr
                self.spelled.append((code, const))
            if isinstance(const, types.CodeType):
                self.code(const, fn, outer | frozenset(code.co_cellvars))
            elif const == "dispatch_sizes_strides_policy" or (
                type(const) is tuple and "dispatch_sizes_strides_policy" in const
            ):
                raise Seen("its sizes are asked of __torch_dispatch__")

    def attribute(self, code: types.CodeType, name: str) -> None:
        """An attribute of something that is not known."""
        self.names.add(name)
        if name in CHANGES:
            self.changing.append(f"{name}()")
        if name.startswith(STATEFUL) and not hasattr(torch.Tensor, name):
            raise Seen(f"{code.co_name} calls {name}")
        if name in ("__dict__", "__globals__", "__setattr__", "__delattr__", "__subclasses__", "f_globals"):
            raise Seen(f"{code.co_name} uses {name}")

    def global_chain(self, instructions: tuple[Any, ...], index: int, fn: types.FunctionType) -> int:
        """`torch.ops.aten.mul`: a global and the attributes that follow. Gives the index of the next instruction."""
        name = instructions[index].arg
        index += 1
        if name in fn.__globals__:
            value = fn.__globals__[name]
            self.reads.add(fn, name, read_global(name))
        elif name in fn.__builtins__:  # type: ignore[attr-defined]
            value = fn.__builtins__[name]  # type: ignore[attr-defined]
            self.reads.add(fn, name, read_global(name))
            if value is getattr:
                self.names.add("getattr")
            if value in (str, repr):
                self.names.update(PRINTING)
        else:
            raise Seen(f"uses {name}, which is not defined")
        while type(value) is types.ModuleType and instructions[index].opname in ("LOAD_ATTR", "LOAD_METHOD"):
            member = instructions[index].arg
            index += 1
            name = f"{name}.{member}"
            if member not in vars(value):
                if not _is_torchs(value):
                    raise Seen(f"uses {name}, which is not defined")
                value = getattr(value, member, None)
                continue
            if not _is_torchs(value) and value not in PURE_MODULES:
                self.reads.add(value, member, read_in_module(member))
            value = vars(value)[member]
        self.value(name, value)
        return index

    # --- values -----------------------------------------------------------------------------------------------------------
    def value(self, name: str, value: Any) -> None:
        """Something that code has from outside of its arguments."""
        kind = type(value)
        if is_literal(value) or kind in TORCH_VALUES:
            return
        if isinstance(value, types.ModuleType):
            if not _is_torchs(value) and not any(value is module for module in PURE_MODULES):
                raise Seen(f"uses module {name}")
        elif kind is types.FunctionType:
            if not _is_torchs(value):
                if getattr(functools, value.__name__, None) is not value:
                    self.function(value)
            elif value.__name__.startswith(STATEFUL):
                raise Seen(f"calls {name}")
        elif kind in (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType):
            self.builtin(name, value)
        elif value is operator.methodcaller or value is operator.attrgetter:
            raise Seen(f"uses {name}")
        elif isinstance(value, type):
            known: Any = getattr(builtins, value.__name__, None)
            if known is value:
                if known.__name__ not in BUILTINS and not is_subtype(value, BaseException):
                    raise Seen(f"uses {name}")
            elif (
                not _is_torchs(value)
                or is_subtype(value, torch.Tensor)
                and value.__dictoffset__
                and value is not torch.Tensor
            ):
                if value not in (torch.nn.Parameter, torch.nn.Buffer):
                    self.add_class(value)
                    self.names.update(("__new__", "__init__", "__call__"))
        elif kind in CONTAINERS:
            self.container(name, value)
        elif kind is tuple or kind is frozenset:
            for item in value:
                self.value(f"{name}[...]", item)
        else:
            raise Seen(f"uses {name}, a {kind.__name__}")

    def builtin(self, name: str, value: Any) -> None:
        module = getattr(value, "__module__", None)
        if module == "builtins" and value.__name__ not in BUILTINS:
            raise Seen(f"calls {name}")
        if module in ("math", "_operator", "builtins", None) and type(value) is types.BuiltinFunctionType:
            if (
                value.__name__ in ("setitem", "delitem")
                or module is None
                and not _is_torchs(type(value.__self__))
            ):
                raise Seen(f"calls {name}")
        elif type(module) is str and module.split(".")[0] != "torch":
            raise Seen(f"calls {name}")
        if value.__name__.startswith(STATEFUL):
            raise Seen(f"calls {name}")

    def container(self, name: str, value: Any) -> None:
        """A table that outlives a call: what it holds may be called, and it may be changed by whoever can."""
        self.kept.append(name)
        self.reads.containers = True
        if type(value) is not dict:
            raise Seen(f"uses {name}, a {type(value).__name__}")
        for key, item in list(value.items()):
            self.value(f"a key of {name}", key)
            self.value(f"{name}[...]", item)


def _own_names(cls: type) -> list[str]:
    """The names in a class and its bases, down to torch's tensors."""
    stop = set(type.__dict__["__mro__"].__get__(torch.Tensor))
    return [name for base in type.__dict__["__mro__"].__get__(cls) if base not in stop for name in vars(base)]


def _is_called_unnamed(name: str) -> bool:
    """Whether Python or torch call a method of this name that no code needs to name: operators, and what torch's own code uses."""
    if name.startswith("__"):
        return name not in SPARED and name not in PRINTING
    return hasattr(torch.Tensor, name)


def _stores_into_new(owner: Any, code: types.CodeType, makes: str) -> bool:
    """Whether STORE_ATTR after this instruction stores into an object that is being made."""
    if owner.opname != "LOAD_FAST" or not makes:
        return False
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return owner.arg == parameters[0] if makes == "__init__" else owner.arg not in parameters


_known: weakref.WeakKeyDictionary[type, CodeReads | str] = weakref.WeakKeyDictionary()


def reads_of(cls: type) -> CodeReads | str:
    """What the code of a wrapper's class reads, or why it may not be run for a look. cls: its metaclass is one of torch's"""
    known = _known.get(cls)
    if isinstance(known, CodeReads) and known.hold():
        return known
    try:
        found: CodeReads | str = Look(cls).all()
    except Seen as why:
        return str(why)
    except MinidynamoError as error:  # code that cannot be lifted
        return str(error)
    except TypeError as error:  # an object without weak references
        return str(error)
    if isinstance(found, CodeReads):
        RECORDS[found.serial] = found
    _known[cls] = found
    return found
