"""Classes: known by identity; attributes are read statically, those of the metaclass too."""

from __future__ import annotations

import abc
import types
from typing import Any

import torch

from ..guards.builder import GuardBuilder
from ..guards.guard import ById, make_guard
from ..pycode import expr as E
from ..sources import AttrSource, ItemSource, Source, TypeSource
from ..static_access import is_subtype, is_users_class, type_lookup
from .base import Emitting, Tracing, VariableTracker
from .bound_enums import is_bound_enumeration, members_of
from .constant import ConstantVariable
from .enums import is_enumeration, member_map
from .functions import BuiltinVariable
from .methods import UserMethodVariable
from .registry import wraps_if
from .user_objects import MISSING, is_data_descriptor

LIBRARY_METACLASSES = (type, abc.ABCMeta)
# Descriptors that are themselves when they are read from a class.
OF_THE_CLASS = (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
TENSORS = (torch.Tensor, torch.nn.Parameter)
NAMES = ("__name__", "__qualname__", "__module__")
_C_FUNCTIONS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType)


class ClassVariable(BuiltinVariable):
    """A class. Instances are made by `rules.classes`."""

    __slots__ = ()

    def is_users(self) -> bool:
        return is_users_class(self.fn)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: type_getattro: a data descriptor of the metaclass, the class's own attribute, the metaclass's."""
        if is_enumeration(self.fn) and self.source is not None and name in (members := member_map(self.fn)):
            return tx.wrap(members[name], ItemSource(AttrSource(self.source, "_member_map_"), name))
        if (
            is_bound_enumeration(self.fn)
            and self.source is not None
            and name in (bound := members_of(self.fn))
        ):
            return tx.wrap(bound[name], AttrSource(self.source, name))
        if name == "__class__":
            return class_of(tx, self)
        if name in NAMES:
            return self.own_name(tx, name)
        if not self.is_users():
            return self.of_builtin(tx, name)
        meta = type_lookup(type(self.fn), name, MISSING)
        if self.source is None or type_lookup(type(self.fn), "__getattribute__") is not type.__getattribute__:
            return super().getattr(tx, name)
        if meta is not MISSING and is_data_descriptor(meta):
            return self.of_metaclass(tx, name, meta)
        raw = type_lookup(self.fn, name, MISSING)
        self.guard_metaclass(tx, name)
        if raw is not MISSING:
            return self.own_attribute(tx, name, raw)
        if meta is not MISSING:
            return self.of_metaclass(tx, name, meta)
        if type_lookup(type(self.fn), "__getattr__") is not None:
            return super().getattr(tx, name)
        tx.install(make_guard(self.source, GuardBuilder.HASATTR, name))
        tx.raises(
            f"attribute {name} of class {self.type_name()}",
            AttributeError,
            ConstantVariable(
                f"type object {type.__dict__['__name__'].__get__(self.fn)!r} has no attribute {name!r}"
            ),
        )

    def guard_metaclass(self, tx: Tracing, name: str) -> None:
        """A metaclass of the user's may get an attribute that goes first."""
        if not any(type(self.fn) is known for known in LIBRARY_METACLASSES):
            assert self.source is not None
            meta = TypeSource(self.source)
            present = type_lookup(type(self.fn), name, MISSING) is not MISSING
            kind = GuardBuilder.TYPE_MATCH if present else GuardBuilder.HASATTR
            if not present and type_lookup(type, name, MISSING) is not MISSING:
                self._opaque(tx, f"attribute {name}")
            source = AttrSource(meta, name) if present else meta
            tx.install(make_guard(source, kind, *(() if present else (name,))))

    def lacks(self, tx: Tracing, name: str) -> bool:
        """Whether `getattr` finds nothing; guarded when it does not."""
        found = type_lookup(self.fn, name, MISSING) is not MISSING
        if found or type_lookup(type(self.fn), name, MISSING) is not MISSING:
            return False
        if type_lookup(type(self.fn), "__getattr__") is not None or is_enumeration(self.fn):
            self._opaque(tx, f"test for attribute {name}")
        if self.is_users():
            if self.source is None:
                self._opaque(tx, f"test for attribute {name}")
            self.guard_metaclass(tx, name)
            tx.install(make_guard(self.source, GuardBuilder.HASATTR, name))
        return True

    def guard_bases(self, tx: Tracing, base: type) -> None:
        """Guard that the class is derived from `base`, or that it is not, as it is now."""
        if self.fn is not base and self.is_users():
            if self.source is None:
                self._opaque(tx, "issubclass()")
            tx.install(make_guard(self.source, GuardBuilder.SUBCLASS, ById(base)))

    def own_name(self, tx: Tracing, name: str) -> VariableTracker:
        value = type.__dict__[name].__get__(self.fn)
        if type(value) is not str or self.source is None and self.is_users() and self.fn not in TENSORS:
            self._opaque(tx, f"attribute {name}")
        if self.source is None:
            return ConstantVariable(value, guards=self.guards)
        return tx.lazily(value, AttrSource(self.source, name))

    def of_builtin(self, tx: Tracing, name: str) -> VariableTracker:
        """An attribute of a class that nobody can change."""
        if type_lookup(type(self.fn), name, MISSING) is not MISSING and type(self.fn) is not type:
            return super().getattr(tx, name)
        raw = type_lookup(self.fn, name, MISSING)
        if name == "__init__" or isinstance(raw, _C_FUNCTIONS):
            return BuiltinVariable(raw, None, self.guards)
        if type(raw) is types.ClassMethodDescriptorType:  # dict.fromkeys
            return BuiltinVariable(raw.__get__(None, self.fn), None, self.guards)
        if type(raw) is staticmethod and isinstance(raw.__func__, _C_FUNCTIONS):  # str.maketrans
            return BuiltinVariable(raw.__func__, None, self.guards)
        return super().getattr(tx, name)

    def own_attribute(self, tx: Tracing, name: str, raw: Any) -> VariableTracker:
        """What the class, or one of its bases, has under the name, bound to the class."""
        assert self.source is not None
        source = AttrSource(self.source, name)
        kind = type(raw)
        if kind in OF_THE_CLASS:
            return tx.lazily(raw, source)
        if kind is staticmethod:
            return tx.wrap(raw.__func__, AttrSource(source, "__func__"))
        if kind is classmethod:
            return UserMethodVariable(tx.wrap(raw.__func__, AttrSource(source, "__func__")), self, name)
        if isinstance(raw, _C_FUNCTIONS):
            return tx.wrap(raw, AttrSource(self.source, name, raw=True))
        if type_lookup(kind, "__get__", None) is None:
            return tx.lazily(raw, source)
        getter = type_lookup(kind, "__get__")
        if type(getter) is types.FunctionType and is_users_class(kind) and tx.may_inline(getter):
            whole = AttrSource(self.source, name, raw=True)
            fn = tx.wrap(getter, AttrSource(TypeSource(whole), "__get__"))
            return tx.call(fn, [tx.wrap(raw, whole), ConstantVariable(None), self], {})
        return super().getattr(tx, name)

    def of_metaclass(self, tx: Tracing, name: str, raw: Any) -> VariableTracker:
        """A function or property of the user's metaclass, bound to the class; a plain value of it. The guards look it up from the
        class on, which may get an attribute of that name later."""
        assert self.source is not None
        source = AttrSource(self.source, name, raw=True)
        if type(raw) is types.FunctionType:
            return UserMethodVariable(tx.wrap(raw, source), self, name)
        if type(raw) is property and type(raw.fget) is types.FunctionType:
            return tx.call(tx.wrap(raw.fget, AttrSource(source, "fget")), [self], {})
        if name == "mro" or type_lookup(type(raw), "__get__", None) is not None:
            return super().getattr(tx, name)
        return tx.lazily(raw, source)

    def special(self, tx: Tracing, name: str) -> VariableTracker | None:
        """A special method of the user's metaclass."""
        fn = type_lookup(type(self.fn), name)
        if type(fn) is not types.FunctionType or self.source is None:
            return None
        return tx.wrap(fn, AttrSource(TypeSource(self.source), name))

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        """CPython: PyObject_GetItem: the metaclass's `__getitem__`, else `__class_getitem__` of the class."""
        fn = self.special(tx, "__getitem__")
        if fn is not None:
            return tx.call(fn, [self, key], {})
        raw = type_lookup(self.fn, "__class_getitem__")
        if type(raw) is classmethod and type(raw.__func__) is types.FunctionType and self.source is not None:
            return tx.call(self.getattr(tx, "__class_getitem__"), [key], {})
        return super().slot_getitem(tx, key)

    def slot_len(self, tx: Tracing) -> int:
        result = self.call_special(tx, "__len__").realize(tx)
        if type(result.as_python_constant() if result.is_python_constant() else None) is not int:
            self._opaque(tx, "len()")
        return int(result.as_python_constant())

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return self.call_special(tx, "__iter__").realize(tx)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        return self.call_special(tx, "__contains__", item).realize(tx).slot_truth(tx)

    def slot_truth(self, tx: Tracing) -> bool:
        for name in ("__bool__", "__len__"):
            if type_lookup(type(self.fn), name) is not None and not is_enumeration(self.fn):
                self._opaque(tx, "truth value")
        return True

    def call_special(self, tx: Tracing, name: str, *args: VariableTracker) -> VariableTracker:
        fn = self.special(tx, name)
        if fn is None:
            self._opaque(tx, f"method {name}")
        return tx.call(fn, [self, *args], {})

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.getattr(tx, name), args, kwargs)

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        if type_lookup(type(self.fn), "__eq__") is not type.__eq__:
            return super().slot_compare(tx, symbol, left, right)
        return None

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """`int | str`: known to isinstance as the tuple of its classes."""
        sides = [side for each in (left, right) for side in union_members(each)]
        if symbol != "|" or any(side is None for side in sides):
            return super().slot_binary(tx, symbol, left, right)
        return UnionVariable([side for side in sides if side is not None])


class UnionVariable(VariableTracker):
    """`A | B` over plain classes, made in the trace; for isinstance. Anything else is left to plain Python."""

    __slots__ = ("classes",)

    def __init__(self, classes: list[VariableTracker]) -> None:
        super().__init__(None, VariableTracker.propagate(*classes))
        self.classes = classes

    def python_type(self) -> type:
        return types.UnionType

    def children(self) -> tuple[VariableTracker, ...]:
        return tuple(self.classes)

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        sides = [side for each in (left, right) for side in union_members(each)]
        if symbol != "|" or any(side is None for side in sides):
            return super().slot_binary(tx, symbol, left, right)
        return UnionVariable([side for side in sides if side is not None])

    def reconstruct(self, emit: Emitting) -> E.Expr:
        made = emit.value(self.classes[0])
        for each in self.classes[1:]:
            made = E.Op("BINARY_OP", "|", (made, emit.value(each)))
        return made


def union_members(value: VariableTracker) -> list[VariableTracker | None]:
    """The classes of a side of `|`; [None] for a side that is no plain class."""
    if isinstance(value, UnionVariable):
        return list(value.classes)
    plain = isinstance(value, ClassVariable) and type(value.fn) is type
    return [value if plain else None]


def class_of(tx: Tracing, value: VariableTracker) -> VariableTracker:
    """`type(value)` of a value whose exact type is known."""
    known = getattr(value, "class_variable", None)
    if known is not None:
        found: VariableTracker = known(tx)
        return found
    if value.source is not None:
        return tx.wrap(value.python_type(), TypeSource(value.source))
    return ClassVariable(value.python_type(), None, VariableTracker.propagate(value))


@wraps_if("class", lambda value: is_subtype(type(value), type))
def wrap_class(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = ClassVariable(value, source)
    made.make_guards(tx, GuardBuilder.ID_MATCH)
    return made
