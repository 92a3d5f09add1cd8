"""Instances of user-defined classes: attributes are found as `object.__getattribute__` finds them, special methods are
inlined. Nothing of the user's runs while tracing."""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import types
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from ..guards.builder import GuardBuilder
from ..guards.guard import ById, make_guard
from ..pycode import expr as E
from ..reasons import OPAQUE_VALUE, OPERATOR_FAILS, STORE
from ..sources import AttrSource, Source, TypeSource
from ..static_access import instance_dict, is_subtype, is_users_class, type_lookup
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import ConstantVariable
from .instance_dict import InstanceDictVariable, WithMembers
from .methods import UserMethodVariable
from .raising import ObservedException
from .registry import wraps_if
from .special_names import COMPARE, FORWARD, SWAPPED, UNARY, reflected

MISSING = object()
# Builtin classes whose attribute access is object's own, under descriptors of their own.
USUAL = (object, BaseException, dict, collections.OrderedDict)
# Builtin classes whose instances are more than their attributes.
WITH_CONTENT = frozenset(
    cls
    for cls in vars(builtins).values()
    if isinstance(cls, type) and cls not in USUAL and not issubclass(cls, BaseException)
)
SLOT = (types.MemberDescriptorType,)
C_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)
FROM_PARTS: dict[str, Callable[..., VariableTracker]] = {}  # "partial": filled by the file of partials


def has_plain_attributes(cls: type) -> bool:
    """Reading attributes of instances runs no code but descriptors and `__getattr__`."""
    return is_usual(cls, "__getattribute__")


def is_usual(cls: type, name: str) -> bool:
    """Whether attribute access goes by object's own algorithm; exceptions have names of their own for it."""
    found = type_lookup(cls, name)
    return any(found is vars(base).get(name, MISSING) for base in USUAL)


def no_attribute(tx: Tracing, owner: VariableTracker, name: str) -> NoReturn:
    """The program's AttributeError."""
    text = f"{owner.type_name()!r} object has no attribute {name!r}"
    tx.raises(f"attribute {name} of {owner.type_name()}", AttributeError, ConstantVariable(text))


def is_attribute_error(stop: ObservedException) -> bool:
    return is_subtype(stop.exception.cls, AttributeError)


SHARED = ("cls", "members")  # slots of every class of trackers below UserObject


class UserObject(WithMembers):
    """What existing and new instances share. Subclasses say where attribute values and class attributes come from, and have the slots
    for what is declared here: this one adds none, so that it can stand beside another tracker among the bases."""

    __slots__ = ()
    mutable = True
    cls: type
    members: InstanceDictVariable | None  # its `__dict__`, when that was asked for

    def __init__(self, cls: type, source: Source | None = None, guards: Provenance = NO_GUARDS) -> None:
        super().__init__(source, guards)
        self.cls = cls  # type: ignore[misc]
        self.members = None  # type: ignore[misc]

    def python_type(self) -> type:
        return self.cls

    # --- where things are -----------------------------------------------------------------------------------------------
    def own_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        """The value in the instance dictionary or slot, as the trace left it; None when it is not there."""
        raise NotImplementedError

    def instance_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        self.refuse_slot(tx, name)
        return self.own_attribute(tx, name)

    def store_member(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        self.guard_member(tx, name)
        self.store(tx, name, value)

    def remove_member(self, tx: Tracing, name: str) -> None:
        self.guard_member(tx, name)
        self.remove(tx, name)

    def guard_member(self, tx: Tracing, name: str) -> None:
        """Nothing of the class stands in front of the instance's own attribute, so that it may be changed by name."""
        self.refuse_slot(tx, name)
        raw = type_lookup(self.cls, name, MISSING)
        if raw is not MISSING and is_data_descriptor(raw):
            self.refuse(tx, f"item {name} of __dict__, under a descriptor")
        cls = self.type_source(tx)
        if raw is MISSING:
            tx.install(make_guard(cls, GuardBuilder.HASATTR, name))
        else:
            tx.install(make_guard(AttrSource(cls, name), GuardBuilder.TYPE_MATCH))

    def refuse_slot(self, tx: Tracing, name: str) -> None:
        if isinstance(type_lookup(self.cls, name), SLOT):
            self.refuse(tx, f"slot {name} as an item of __dict__")

    def as_dict(self) -> InstanceDictVariable:
        """Its `__dict__`."""
        if self.members is None:
            self.members = InstanceDictVariable(self)  # type: ignore[misc]
        return self.members

    def class_source(self, tx: Tracing, name: str) -> Source:
        """A source of what the class has under `name` (raw, no descriptor run), guarded not to be shadowed."""
        raise NotImplementedError

    # --- attributes ------------------------------------------------------------------------------------------------------
    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """CPython: PyObject_GenericGetAttr, then the class's `__getattr__`."""
        if name == "__class__":
            return self.class_variable(tx)
        raw = type_lookup(self.cls, name, MISSING)
        if name == "__dict__" and type(raw) is types.GetSetDescriptorType:
            return self.as_dict()
        if raw is not MISSING and is_data_descriptor(raw) and not isinstance(raw, SLOT):
            return self.read_descriptor(tx, name, raw)
        own = self.own_attribute(tx, name)
        if own is not None:
            return own
        if raw is not MISSING and not isinstance(raw, SLOT):
            return self.read_descriptor(tx, name, raw)
        fallback = type_lookup(self.cls, "__getattr__", None)
        if type(fallback) is types.FunctionType:
            self.guard_presence(tx, name)
            return self.call_special(tx, "__getattr__", [ConstantVariable(name)])
        self.guard_presence(tx, name)
        no_attribute(tx, self, name)

    def generic_getattr(self, tx: Tracing, name: str) -> VariableTracker:
        """What `object.__getattribute__` gives; that it gives something is known."""
        return self.getattr(tx, name)

    def raises_attribute_error(self, tx: Tracing, name: str) -> bool:
        """Whether `getattr` ends in an AttributeError, by trying."""
        tx.trace.probing += 1
        try:
            self.getattr(tx, name)
        except ObservedException as stop:
            if not is_attribute_error(stop):
                raise
            return True
        finally:
            tx.trace.probing -= 1
        return False

    def lacks(self, tx: Tracing, name: str, generic: bool = False) -> bool:
        """Whether `getattr` finds nothing; guarded when it does not. generic: `__getattr__` of the class is not asked."""
        if name == "__class__" or self.own_attribute(tx, name) is not None:
            return False
        raw = type_lookup(self.cls, name, MISSING)
        if raw is not MISSING and not isinstance(raw, SLOT):
            return False
        if not generic and type_lookup(self.cls, "__getattr__") is not None:
            return self.raises_attribute_error(tx, name)
        self.guard_presence(tx, name)
        return True

    def read_descriptor(self, tx: Tracing, name: str, raw: Any) -> VariableTracker:
        """What the class attribute `raw` gives on this instance."""
        kind = type(raw)
        if kind is types.FunctionType or kind in C_METHODS:
            return UserMethodVariable(tx.wrap(raw, self.class_source(tx, name)), self, name)
        if kind is property:
            if type(raw.fget) is not types.FunctionType:
                self.refuse(tx, f"property {name}")
            source = AttrSource(self.class_source(tx, name), "fget")
            return tx.call(tx.wrap(raw.fget, source), [self], {})
        if kind is staticmethod:
            return tx.wrap(raw.__func__, AttrSource(self.class_source(tx, name), "__func__"))
        if kind is classmethod:
            source = AttrSource(self.class_source(tx, name), "__func__")
            return UserMethodVariable(tx.wrap(raw.__func__, source), self.class_variable(tx), name)
        if type_lookup(kind, "__get__", None) is None:
            return tx.lazily(raw, self.class_source(tx, name))
        if kind is functools.cached_property:
            return self.read_cached(tx, name, raw)
        if kind is functools.partialmethod and type(raw.func) is types.FunctionType:
            return self.read_partial(tx, name, raw)
        return self.call_descriptor(tx, "__get__", name, raw, self, self.class_variable(tx))

    def read_cached(self, tx: Tracing, name: str, raw: Any) -> VariableTracker:
        """CPython: functools.cached_property.__get__, which was not called before: the value goes into the instance."""
        attribute = raw.attrname
        if type(attribute) is not str or type(raw.func) is not types.FunctionType:
            self.refuse(tx, f"cached property {name}")
        whole = self.raw_source(tx, name)
        tx.wrap(attribute, AttrSource(whole, "attrname"))
        value = tx.call(tx.wrap(raw.func, AttrSource(whole, "func")), [self], {})
        if self.own_attribute(tx, attribute) is not None:  # its function stored there
            self.refuse(tx, f"cached property {name}")
        self.store(tx, attribute, value)
        return value

    def read_partial(self, tx: Tracing, name: str, raw: Any) -> VariableTracker:
        """CPython: functools.partialmethod.__get__ of a function: a partial of the bound method."""
        whole = self.raw_source(tx, name)
        parts = [
            tx.wrap(getattr(raw, part), AttrSource(whole, part)) for part in ("func", "args", "keywords")
        ]
        bound = UserMethodVariable(parts[0], self, name, None, made_anew=True)
        return FROM_PARTS["partial"](bound, *parts[1:])

    def call_descriptor(
        self, tx: Tracing, method: str, name: str, raw: Any, *args: VariableTracker
    ) -> VariableTracker:
        """A method of a descriptor object of the user's. CPython: slot_tp_descr_get and its like."""
        kind = type(raw)
        fn = type_lookup(kind, method)
        if type(fn) is not types.FunctionType or not is_users_class(kind):
            self.refuse(tx, f"descriptor {name}")
        whole = self.raw_source(tx, name)
        descriptor = tx.wrap(raw, whole)
        return tx.call(tx.wrap(fn, AttrSource(TypeSource(whole), method)), [descriptor, *args], {})

    def raw_source(self, tx: Tracing, name: str) -> Source:
        """A source of the descriptor itself, for loading it again too."""
        return AttrSource(self.type_source(tx), name, raw=True)

    def guard_presence(self, tx: Tracing, name: str) -> None:
        """Guard that the instance or its class has the attribute, or that neither has, as it is now."""
        raise NotImplementedError

    def guard_storing(self, tx: Tracing, name: str, raw: Any, method: str = "__setattr__") -> None:
        """What decides about an assignment: the class's method for it, and what it has under the name."""
        cls = self.type_source(tx)
        tx.install(make_guard(AttrSource(cls, method), GuardBuilder.ID_MATCH))
        if raw is MISSING:
            tx.install(make_guard(cls, GuardBuilder.HASATTR, name))
        else:
            tx.install(make_guard(AttrSource(cls, name), GuardBuilder.TYPE_MATCH))

    def type_source(self, tx: Tracing) -> Source:
        """A source of the class."""
        raise NotImplementedError

    def setattr(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """CPython: PyObject_SetAttr."""
        if is_usual(self.cls, "__setattr__"):
            self.generic_setattr(tx, name, value)
        elif type(type_lookup(self.cls, "__setattr__")) is types.FunctionType:
            self.call_special(tx, "__setattr__", [ConstantVariable(name), value])
        else:
            tx.unsupported(
                STORE, operation="attribute assignment", what=f"a {self.type_name()} with __setattr__"
            )

    def generic_setattr(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """CPython: PyObject_GenericSetAttr itself."""
        raw = type_lookup(self.cls, name, MISSING)
        self.guard_storing(tx, name, raw)
        if type(raw) is property:
            if type(raw.fset) is not types.FunctionType:
                self.refuse(tx, f"property {name}")
            tx.call(tx.wrap(raw.fset, AttrSource(self.class_source(tx, name), "fset")), [self, value], {})
        elif raw is not MISSING and is_data_descriptor(raw) and not isinstance(raw, SLOT):
            self.call_descriptor(tx, "__set__", name, raw, self, value)
        elif not isinstance(raw, SLOT) and not DICT_OFFSET(self.cls):
            tx.unsupported(
                OPERATOR_FAILS, name=f"attribute {name} of {self.type_name()}", error="AttributeError"
            )
        else:
            self.store(tx, name, value)

    def delattr(self, tx: Tracing, name: str) -> None:
        """CPython: PyObject_SetAttr without a value."""
        if is_usual(self.cls, "__delattr__"):
            self.generic_delattr(tx, name)
        elif type(type_lookup(self.cls, "__delattr__")) is types.FunctionType:
            self.call_special(tx, "__delattr__", [ConstantVariable(name)])
        else:
            self.refuse(tx, f"deletion of attribute {name}")

    def generic_delattr(self, tx: Tracing, name: str) -> None:
        """CPython: PyObject_GenericSetAttr without a value."""
        raw = type_lookup(self.cls, name, MISSING)
        self.guard_storing(tx, name, raw, "__delattr__")
        if type(raw) is property:
            if type(raw.fdel) is not types.FunctionType:
                self.refuse(tx, f"deletion of property {name}")
            tx.call(tx.wrap(raw.fdel, AttrSource(self.class_source(tx, name), "fdel")), [self], {})
            return
        if raw is not MISSING and is_data_descriptor(raw) and not isinstance(raw, SLOT):
            self.call_descriptor(tx, "__delete__", name, raw, self)
            return
        if self.own_attribute(tx, name) is None:
            tx.unsupported(
                OPERATOR_FAILS, name=f"attribute {name} of {self.type_name()}", error="AttributeError"
            )
        self.remove(tx, name)

    def store(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        """Put a value into the instance."""
        raise NotImplementedError

    def remove(self, tx: Tracing, name: str) -> None:
        """Take a value out of the instance."""
        raise NotImplementedError

    def class_variable(self, tx: Tracing) -> VariableTracker:
        raise NotImplementedError

    def refuse(self, tx: Tracing, operation: str) -> NoReturn:
        tx.unsupported(OPAQUE_VALUE, operation=operation, type=self.type_name())

    def as_key(self, tx: Tracing) -> Any:
        """By identity, where the class leaves hash and equality to object."""
        if any(
            type_lookup(self.cls, name) is not type_lookup(object, name) for name in ("__hash__", "__eq__")
        ):
            return super().as_key(tx)
        self.special(tx, "__hash__")
        self.special(tx, "__eq__")
        return tx.trace.identity_of(self)

    # --- special methods: looked up on the type ----------------------------------------------------------------------------
    def guard_bases(self, tx: Tracing, base: type) -> None:
        """Guard that its class is derived from `base`, or that it is not, as it is now."""
        if self.cls is not base and is_users_class(self.cls):
            tx.install(make_guard(self.type_source(tx), GuardBuilder.SUBCLASS, ById(base)))

    def special(self, tx: Tracing, name: str) -> VariableTracker | None:
        """The function that the class defines as a special method; None when it has none; refused when it is no function."""
        raw = type_lookup(self.cls, name, None)
        if raw is None:
            self.guard_presence(tx, name)
            return None
        if type(raw) in C_METHODS:
            tx.install(make_guard(self.class_source(tx, name), GuardBuilder.ID_MATCH))
            return None
        if type(raw) is not types.FunctionType:
            self.refuse(tx, name)
        return tx.wrap(raw, self.class_source(tx, name))

    def call_special(
        self,
        tx: Tracing,
        name: str,
        args: list[VariableTracker],
        kwargs: dict[str, VariableTracker] | None = None,
    ) -> VariableTracker:
        fn = self.special(tx, name)
        if fn is None:
            self.refuse(tx, name)
        return tx.call(fn, [self, *args], kwargs or {})

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        forward = FORWARD[symbol.rstrip("=")]
        name, other = (forward, right) if left is self else (reflected(symbol), left)
        return self.attempt(tx, name, other)

    def slot_inplace(self, tx: Tracing, symbol: str, right: VariableTracker) -> VariableTracker | None:
        forward = FORWARD[symbol.rstrip("=")]
        return self.attempt(tx, f"__i{forward[2:]}", right)

    def attempt(self, tx: Tracing, name: str, other: VariableTracker) -> VariableTracker | None:
        """Call a special method; None when there is none or it declines."""
        fn = self.special(tx, name)
        if fn is None:
            if type_lookup(self.cls, name, None) not in (None, vars(object).get(name)):
                self.refuse(tx, name)  # it is written in C
            return None
        result = tx.call(fn, [self, other], {}).realize(tx)
        return None if _is_not_implemented(result) else result

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        name, other = (COMPARE[symbol], right) if left is self else (COMPARE[SWAPPED[symbol]], left)
        if name == "__ne__" and type_lookup(self.cls, name) is vars(object)[name]:
            self.special(tx, name)  # CPython: object_richcompare: the opposite of what `__eq__` says
            equal = self.attempt(tx, "__eq__", other)
            if equal is None:
                return None
            verdict = equal.slot_truth(tx)
            return ConstantVariable(not verdict, guards=VariableTracker.propagate(left, right))
        return self.attempt(tx, name, other)

    def slot_unary(self, tx: Tracing, symbol: str) -> VariableTracker:
        return self.call_special(tx, UNARY[symbol], [])

    def slot_truth(self, tx: Tracing) -> bool:
        """CPython: `__bool__`, else `__len__`, else true."""
        for name in ("__bool__", "__len__"):
            fn = self.special(tx, name)
            if fn is not None:
                result = tx.call(fn, [self], {}).realize(tx)
                if not result.is_python_constant():
                    self.refuse(tx, "truth value")
                return bool(result.as_python_constant())
        if any(type_lookup(self.cls, name) is not None for name in ("__bool__", "__len__")):
            self.refuse(tx, "truth value")
        return True

    def slot_len(self, tx: Tracing) -> int:
        result = self.call_special(tx, "__len__", []).realize(tx)
        if type(result.as_python_constant() if result.is_python_constant() else None) is not int:
            self.refuse(tx, "len()")
        return result.as_python_constant()

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        return self.call_special(tx, "__getitem__", [key])

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        self.call_special(tx, "__setitem__", [key, value])

    def slot_delitem(self, tx: Tracing, key: VariableTracker) -> None:
        self.call_special(tx, "__delitem__", [key])

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        result = self.call_special(tx, "__contains__", [item])
        return result.realize(tx).slot_truth(tx)

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return self.call_special(tx, "__iter__", []).realize(tx)

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: slot_tp_iternext; StopIteration ends the iteration."""
        try:
            return self.call_special(tx, "__next__", [])
        except ObservedException as stop:
            if not is_subtype(stop.exception.python_type(), StopIteration):
                raise
            return None

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        fn = self.special(tx, "__call__")
        if fn is None:
            self.refuse(tx, "call")
        return tx.call(fn, [self, *args], kwargs)

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.getattr(tx, name), args, kwargs)


DICT_OFFSET = type.__dict__["__dictoffset__"].__get__  # 0 for a class whose instances have slots only


def is_data_descriptor(raw: Any) -> bool:
    """CPython: tp_descr_set is there."""
    kind = type(raw)
    if kind is types.FunctionType or kind is type(None):
        return False
    return type_lookup(kind, "__set__") is not None or type_lookup(kind, "__delete__") is not None


def _is_not_implemented(result: VariableTracker) -> bool:
    return result.is_python_constant() and result.as_python_constant() is NotImplemented


class UserObjectVariable(UserObject):
    """An instance that exists outside of the trace; always rebuilt from its source. What the trace stores into it is an
    effect, and is what later reads of the trace see."""

    __slots__ = (*SHARED, "value", "stored", "moved")
    source: Source

    def __init__(self, value: Any, source: Source) -> None:
        super().__init__(type(value), source)
        self.value = value
        self.stored: dict[str, VariableTracker | None] = {}  # None: deleted
        self.moved: set[str] = set()  # names that were deleted once: they come last when they are back

    def own_attribute(self, tx: Tracing, name: str) -> VariableTracker | None:
        if name in self.stored:
            return self.stored[name]
        raw = type_lookup(self.cls, name, None)
        if isinstance(raw, SLOT):
            try:
                return tx.lazily(raw.__get__(self.value, self.cls), AttrSource(self.source, name))
            except AttributeError:
                return None
        members = instance_dict(self.value)
        if members is not None and name in members:
            return tx.lazily(members[name], AttrSource(self.source, name))
        if members is not None:
            self.guard_lacks(tx, name)
        return None

    def member_names(self, tx: Tracing) -> list[str]:
        members = instance_dict(self.value)
        if members is None or not all(type(name) is str for name in members):
            self.refuse(tx, "__dict__")
        tx.install(make_guard(self.dict_source(), GuardBuilder.DICT_KEYS))
        names = [name for name in members if name not in self.moved]
        kept = [name for name, value in self.stored.items() if value is not None and name not in names]
        return names + [name for name in kept if not isinstance(type_lookup(self.cls, name), SLOT)]

    def dict_source(self) -> Source:
        """A source of the own dictionary."""
        return AttrSource(self.source, "__dict__")

    def guard_lacks(self, tx: Tracing, name: str) -> None:
        """The own dictionary has no `name`."""
        tx.install(make_guard(self.dict_source(), GuardBuilder.DICT_CONTAINS, name))

    def class_source(self, tx: Tracing, name: str) -> Source:
        if (
            name in self.stored
        ):  # deleted by the trace: until the effects are replayed, the instance's own is still in front
            return AttrSource(TypeSource(self.source), name)
        return AttrSource(self.source, name)

    def type_source(self, tx: Tracing) -> Source:
        return TypeSource(self.source)

    def guard_presence(self, tx: Tracing, name: str) -> None:
        tx.install(make_guard(self.source, GuardBuilder.HASATTR, name))

    def class_variable(self, tx: Tracing) -> VariableTracker:
        return tx.wrap(self.cls, TypeSource(self.source))

    def store(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        if is_usual(self.cls, "__setattr__"):
            tx.effect("STORE_ATTR", name, value, self)
        else:  # the class's own method has run in the trace
            tx.effect_call(object.__setattr__, self, ConstantVariable(name), value)
        self.keep(name, value)

    def keep(self, name: str, value: VariableTracker) -> None:
        """Reads of the trace see the new value."""
        if name in self.moved:
            self.stored.pop(name)
        self.stored[name] = value
        if self.members is not None:
            self.members.stored(name, value)

    def remove(self, tx: Tracing, name: str) -> None:
        if is_usual(self.cls, "__delattr__"):
            tx.effect("DELETE_ATTR", name, self)
        else:
            tx.effect_call(object.__delattr__, self, ConstantVariable(name))
        self.stored[name] = None
        self.moved.add(name)
        if self.members is not None:
            self.members.removed(name)

    def forget(self) -> None:
        self.stored.clear()
        self.members = None

    def has_stored(self, name: str) -> bool:
        return name in self.stored

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


def _followed(value: Any) -> bool:
    """An instance of a class written in Python, with the usual attribute access."""
    cls = type(value)
    return is_users_object(cls) and has_plain_attributes(cls) and not is_subtype(cls, dict)


def is_users_object(cls: type) -> bool:
    """Instances of the class, which is written in Python, are followed by their attributes."""
    return (
        is_users_class(cls)
        and not any(base in WITH_CONTENT for base in type.__dict__["__mro__"].__get__(cls))
        and not is_subtype(cls, types.ModuleType)
        and not is_subtype(cls, enum.Enum)
        and not is_subtype(cls, torch.nn.Module)
        and not is_subtype(cls, torch.Tensor)
    )


@wraps_if("user object", _followed)
def wrap_user_object(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    made = UserObjectVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    tx.guard_class(type(value), TypeSource(source))
    return made
