"""Making instances: classes of the user whose `__new__` is object's, `dict(...)`, `super()`."""

from __future__ import annotations

import builtins
import functools
import types
from typing import Any

import torch

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..reasons import CLASS_BODY, OPERATOR_FAILS, UNSUPPORTED_CALL
from ..sources import AttrSource, ItemSource, TypeSource
from ..static_access import is_subtype, is_users_class, type_lookup
from ..variables import sets, text
from ..variables.base import Tracing, VariableTracker
from ..variables.classes import LIBRARY_METACLASSES
from ..variables.constant import ConstantVariable
from ..variables.dict_objects import NewDictObjectVariable, builtin_base, is_dict_class
from ..variables.dicts import DictVariable, from_names
from ..variables.enums import is_enumeration
from ..variables.exceptions import SIMPLE_INIT, ExceptionVariable
from ..variables.functions import BuiltinVariable, FunctionVariable
from ..variables.keys import Key
from ..variables.methods import UserMethodVariable
from ..variables.module_objects import NewModuleVariable
from ..variables.new_objects import NewObjectVariable
from ..variables.own_access import NewOwnAccessVariable, has_own_access
from ..variables.partials import PLACEHOLDER, PartialVariable
from ..variables.sequences import NONE, TupleVariable
from ..variables.sets import FrozenSetVariable
from ..variables.super import SuperVariable, may_be_super
from ..variables.user_objects import USUAL, UserObject, has_plain_attributes, is_users_object, no_attribute
from .builtins import Args, Rule, items_of, positional, rule

ABSTRACT = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT


def may_instantiate(cls: Any) -> bool:
    """Calling `cls` does what `type.__call__` does: `__new__`, object's or one that is traced, then `__init__`."""
    return (
        is_subtype(type(cls), type)
        and type_lookup(type(cls), "__call__") is type_lookup(type, "__call__")
        and (makes_plain_objects(cls) or type(type_lookup(cls, "__new__")) is staticmethod)
        and may_allocate(cls)
        or makes_dicts(cls)
    )


def makes_dicts(cls: Any) -> bool:
    """Calling `cls` makes an empty dict of the class, then `__init__`, which is traced."""
    return (
        is_subtype(type(cls), type)
        and is_dict_class(cls)
        and is_users_object(cls)
        and type_lookup(type(cls), "__call__") is type_lookup(type, "__call__")
        and type_lookup(cls, "__new__") is type_lookup(builtin_base(cls), "__new__")
        and type(type_lookup(cls, "__init__")) is types.FunctionType
        and type_lookup(cls, "__del__") is None
        and not cls.__flags__ & ABSTRACT
        and has_plain_attributes(cls)
    )


def makes_plain_objects(cls: Any) -> bool:
    return type_lookup(cls, "__new__") is type_lookup(object, "__new__")


def may_allocate(cls: Any) -> bool:
    """`object.__new__(cls)` makes an instance whose whole state is its attributes, and whose end nobody sees."""
    mro = type.__dict__["__mro__"].__get__(cls)
    return (
        is_users_class(cls)
        and not cls.__flags__ & ABSTRACT
        and all(base is object or is_users_class(base) for base in mro)
        and not is_subtype(cls, torch.jit.ScriptModule)
        and not is_enumeration(cls)
        and type_lookup(cls, "__del__") is None
        and (has_plain_attributes(cls) or has_own_access(cls) and not is_subtype(cls, torch.nn.Module))
    )


def instantiate(
    tx: Tracing, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """CPython: type_call."""
    if fn.source is not None and not any(type(fn.fn) is known for known in LIBRARY_METACLASSES):
        tx.install(make_guard(AttrSource(TypeSource(fn.source), "__call__"), GuardBuilder.ID_MATCH))
    if makes_plain_objects(fn.fn) or makes_dicts(fn.fn):
        made: VariableTracker = allocate(tx, fn)
    else:
        if fn.source is None:
            tx.unsupported(UNSUPPORTED_CALL, name=fn.name())
        new = type_lookup(fn.fn, "__new__")
        source = AttrSource(AttrSource(fn.source, "__new__"), "__func__")
        made = tx.call(tx.wrap(new.__func__, source), [fn, *args], kwargs).realize(tx)
        if not isinstance(made, UserObject):
            tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()}, whose __new__ gives a {made.type_name()}")
        made.guard_bases(tx, fn.fn)
        if not is_subtype(made.cls, fn.fn):
            return made
    assert isinstance(made, UserObject)
    init = type_lookup(made.cls, "__init__")
    if isinstance(init, types.FunctionType):
        if made.call_special(tx, "__init__", args, kwargs).realize(tx).python_type() is not type(None):
            tx.unsupported(OPERATOR_FAILS, name=f"{fn.name()}.__init__", error="TypeError")
    elif init is not object.__init__ or (args or kwargs) and makes_plain_objects(fn.fn):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()} with these arguments")
    elif fn.source is not None:
        made.special(tx, "__init__")  # that it stays object's is guarded
    return made


def allocate(tx: Tracing, cls: BuiltinVariable) -> NewObjectVariable:
    """An instance without attributes."""
    if cls.source is not None:
        kind = GuardBuilder.ID_MATCH if is_dict_class(cls.fn) else GuardBuilder.TYPE_MATCH
        tx.install(make_guard(AttrSource(cls.source, "__new__"), kind))
    made: NewObjectVariable
    if is_dict_class(cls.fn):
        made = NewDictObjectVariable(cls.fn, cls)
    elif is_subtype(cls.fn, torch.nn.Module):
        made = NewModuleVariable(cls.fn, cls)
    elif has_own_access(cls.fn):
        made = NewOwnAccessVariable(cls.fn, cls)
    else:
        made = NewObjectVariable(cls.fn, cls)
    tx.trace.holds(made)
    return made


@rule(object.__new__)
def _object_new(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: object_new. More arguments are an error unless one of `__new__` and `__init__` is overridden, not both."""
    cls = args[0].realize(tx) if args else None
    if not isinstance(cls, BuiltinVariable) or not isinstance(cls.fn, type) or not may_allocate(cls.fn):
        tx.unsupported(UNSUPPORTED_CALL, name="object.__new__ with these arguments")
    if len(args) > 1 or kwargs:
        tx.unsupported(UNSUPPORTED_CALL, name="object.__new__ with more arguments")
    return allocate(tx, cls)


@rule(*(vars(base)["__setattr__"] for base in USUAL if "__setattr__" in vars(base)))
@positional("object.__setattr__", 3, 3)
def _object_setattr(
    tx: Tracing, owner: VariableTracker, name: VariableTracker, value: VariableTracker
) -> VariableTracker:
    """CPython: hackcheck, PyObject_GenericSetAttr."""
    own = _own_attribute(tx, owner, name, "__setattr__")
    owner.generic_setattr(tx, own, value)  # type: ignore[attr-defined]
    return NONE


@rule(*(vars(base)["__delattr__"] for base in USUAL if "__delattr__" in vars(base)))
@positional("object.__delattr__", 2, 2)
def _object_delattr(tx: Tracing, owner: VariableTracker, name: VariableTracker) -> VariableTracker:
    owner.generic_delattr(tx, _own_attribute(tx, owner, name, "__delattr__"))  # type: ignore[attr-defined]
    return NONE


@rule(*(vars(base)["__getattribute__"] for base in USUAL if "__getattribute__" in vars(base)))
@positional("object.__getattribute__", 2, 2)
def _object_getattribute(tx: Tracing, owner: VariableTracker, name: VariableTracker) -> VariableTracker:
    own = _own_attribute(tx, owner, name, "__getattribute__")
    if owner.lacks(tx, own, generic=True):  # type: ignore[attr-defined]
        no_attribute(tx, owner, own)
    return owner.generic_getattr(tx, own)  # type: ignore[attr-defined]


def _own_attribute(tx: Tracing, owner: VariableTracker, name: VariableTracker, method: str) -> str:
    """The name, where object's own algorithm may be used on the owner."""
    known = name.as_python_constant() if name.is_python_constant() else None
    if not isinstance(owner, UserObject) or type(known) is not str:
        tx.unsupported(UNSUPPORTED_CALL, name=f"object.{method} with these arguments")
    return str(known)


@rule(str)
def _str(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """Constants are folded before."""
    if len(args) != 1 or kwargs:
        tx.unsupported(UNSUPPORTED_CALL, name="str with these arguments")
    return text.text_of(tx, args[0], str)


@rule(repr)
@positional("repr", 1, 1)
def _repr(tx: Tracing, value: VariableTracker) -> VariableTracker:
    return text.text_of(tx, value, repr)


@rule(*SIMPLE_INIT)
def _exception_init(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: BaseException_init."""
    exception = args[0].realize(tx) if args else None
    if kwargs or not isinstance(exception, ExceptionVariable) or not exception.is_simple():
        tx.unsupported(UNSUPPORTED_CALL, name="the __init__ of an exception with these arguments")
    exception.args = list(args[1:])
    return NONE


def member_by_value(
    tx: Tracing, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """`Enumeration(value)`. CPython: EnumType.__call__, Enum.__new__; only values that are there."""
    value = args[0].realize(tx) if len(args) == 1 and not kwargs else None
    if value is not None and value.python_type() is fn.fn:
        return value
    if isinstance(value, ConstantVariable) and fn.source is not None:
        known = type_lookup(fn.fn, "_value2member_map_")
        key = Key(tx, value).value
        if type(known) is dict and key in known:
            places = AttrSource(fn.source, "_value2member_map_")
            return tx.wrap(known[key], ItemSource(places, key))
    tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()} with these arguments")


@rule(functools.partial)
def _partial(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: partial_new. A partial of a partial binds to the inner function."""
    if not args or any(getattr(a.realize(tx), "fn", None) is PLACEHOLDER for a in args):
        tx.unsupported(UNSUPPORTED_CALL, name="functools.partial with these arguments")
    fn, *bound = args
    fn = fn.realize(tx)
    if (
        type_lookup(fn.python_type(), "__call__") is None
        or fn.source is not None
        and isinstance(fn, PartialVariable)
    ):
        tx.unsupported(UNSUPPORTED_CALL, name=f"functools.partial of a {fn.type_name()}")
    if isinstance(fn, PartialVariable):
        before, named = fn.parts(tx)
        fn, bound, kwargs = fn.func, [*before, *bound], {**named, **kwargs}
    return PartialVariable(fn, TupleVariable(bound), from_names(tx, kwargs))


@rule(builtins.__build_class__)
def _build_class(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    tx.unsupported(CLASS_BODY)


@rule(types.MethodType)
@positional("method", 2, 2)
def _method(tx: Tracing, fn: VariableTracker, owner: VariableTracker) -> VariableTracker:
    """A function bound to an object by hand."""
    if not isinstance(fn, FunctionVariable) or owner.python_type() is type(None):
        tx.unsupported(UNSUPPORTED_CALL, name=f"method with a {fn.type_name()}")
    return UserMethodVariable(fn, owner, fn.code().co_name, made_anew=True)


@rule(object.__init__)
def _object_init(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    if len(args) != 1 or kwargs:
        tx.unsupported(UNSUPPORTED_CALL, name="object.__init__ with arguments")
    return NONE


@rule(dict)
def _dict(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    made = from_names(tx, {}) if args else from_names(tx, kwargs)
    if len(args) > 1:
        tx.unsupported(UNSUPPORTED_CALL, name="dict with these arguments")
    if args:
        made.call_method(tx, "update", args, kwargs)
    return made


@rule(dict.fromkeys)
@positional("dict.fromkeys", 1, 2)
def _fromkeys(tx: Tracing, keys: VariableTracker, value: VariableTracker = NONE) -> VariableTracker:
    made = DictVariable({}, guards=VariableTracker.propagate(keys))
    for item in items_of(tx, "dict.fromkeys", keys):
        made.put(tx, Key(tx, item), value)
    return made


def _make_set(kind: type) -> Rule:
    @positional(kind.__name__, 0, 1)
    def build(tx: Tracing, *values: VariableTracker) -> VariableTracker:
        if kind is frozenset and values and isinstance(values[0], FrozenSetVariable):
            return values[0]
        return sets.made_by(tx, kind, tuple(sets.operand_of(tx, v) for v in values), *values)

    return build


rule(set)(_make_set(set))
rule(frozenset)(_make_set(frozenset))


@rule(super)
def _super(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """CPython: super_init. Without arguments: the cell `__class__` and the first argument of the frame."""
    if kwargs or len(args) not in (0, 2):
        tx.unsupported(UNSUPPORTED_CALL, name="super with these arguments")
    if not args:
        names = tx.code.co_varnames
        cell = tx.cells.get("__class__")
        first = tx.symbolic_locals.get(names[0]) if tx.code.co_argcount else None
        if first is None and tx.code.co_argcount and names[0] in tx.cells:
            first = tx.read_cell(tx.cells[names[0]])
        if cell is None or first is None:
            tx.unsupported(UNSUPPORTED_CALL, name="super without a class or first argument")
        args = [tx.read_cell(cell), first]
    cls, owner = (a.realize(tx) for a in args)
    if not may_be_super(cls, owner):
        tx.unsupported(UNSUPPORTED_CALL, name="super of something that is not followed")
    return SuperVariable(cls, owner)  # type: ignore[arg-type]
