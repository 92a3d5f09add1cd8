"""Python's builtins over trackers: a table of rules, and the pure ones that are folded on constants."""

from __future__ import annotations

import abc
import collections.abc
import math
import numbers
import operator
import types
from collections.abc import Callable
from typing import Any

import torch

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..reasons import OPAQUE_VALUE, PRINT, TENSOR_DATA, UNSUPPORTED_CALL
from ..sources import StateSource
from ..static_access import is_subtype, is_users_class, type_lookup
from ..variables import protocol
from ..variables.base import Tracing, VariableTracker
from ..variables.classes import ClassVariable, UnionVariable, class_of
from ..variables.constant import BINARY, COMPARE, CONSTANT_TYPES, INPLACE, UNARY, ConstantVariable
from ..variables.functions import BuiltinVariable
from ..variables.module_objects import MARKS, is_marked
from ..variables.modules import PythonModuleVariable
from ..variables.numbers import NumberVariable, kind_of
from ..variables.sequences import ListVariable, RangeVariable, SequenceVariable, TupleVariable
from ..variables.tensor import TensorVariable
from ..variables.user_objects import UserObject

Args = list[VariableTracker]
Rule = Callable[..., VariableTracker]
RULES: dict[Any, Rule] = {}

_UNBOUNDED = {math.factorial, math.comb, math.perm}  # results of any size: left to plain Python
PURE: frozenset[Any] = frozenset(
    [
        *(abs, min, max, round, divmod, int, float, bool, complex, str, len, sum, ord, chr, bin, hex, oct),
        *(all, any, sorted, repr, ascii, format),
        *(int.from_bytes, bytes.fromhex, float.fromhex),
        *(f for f in vars(math).values() if callable(f) and f not in _UNBOUNDED),
    ]
)


def rule(*functions: Any) -> Callable[[Rule], Rule]:
    """Row of the table: `rule(tx, args, kwargs)` for calls of `functions`. A duplicate row fails at import."""

    def register(made: Rule) -> Rule:
        for fn in functions:
            if fn in RULES:
                raise ValueError(f"two rules for {fn!r}")
            RULES[fn] = made
        return made

    return register


def positional(name: str, least: int, most: int) -> Callable[[Callable[..., VariableTracker]], Rule]:
    """A rule without keywords, of `least` to `most` arguments; other calls are left to plain Python."""

    def decorate(fn: Callable[..., VariableTracker]) -> Rule:
        def checked(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
            if kwargs or not least <= len(args) <= most:
                tx.unsupported(UNSUPPORTED_CALL, name=f"{name} with these arguments")
            return fn(tx, *[a.realize(tx) for a in args])

        return checked

    return decorate


def constant(value: Any, *made_from: VariableTracker) -> ConstantVariable:
    return ConstantVariable(value, guards=VariableTracker.propagate(*made_from))


def items_of(tx: Tracing, name: str, value: VariableTracker) -> list[VariableTracker]:
    """The items of anything that can be iterated while tracing."""
    value = value.realize(tx)
    known = value.sequence_items(tx)
    if known is not None:
        return list(known)
    iterator = protocol.iterate(tx, value)
    items: list[VariableTracker] = []
    while (item := iterator.slot_next(tx)) is not None:
        items.append(item)
        tx.trace.step()
    return items


@rule(len)
@positional("len", 1, 1)
def _len(tx: Tracing, value: VariableTracker) -> VariableTracker:
    return constant(value.slot_len(tx), value)


@rule(range)
@positional("range", 1, 3)
def _range(tx: Tracing, *bounds: VariableTracker) -> VariableTracker:
    values = [b.as_python_constant() for b in bounds if b.is_python_constant()]
    if len(values) < len(bounds):
        tx.unsupported(UNSUPPORTED_CALL, name="range of values that are not known")
    try:
        return RangeVariable(range(*values), guards=VariableTracker.propagate(*bounds))
    except Exception as error:
        tx.fails("range", error)


@rule(isinstance)
@positional("isinstance", 2, 2)
def _isinstance(tx: Tracing, value: VariableTracker, classes: VariableTracker) -> VariableTracker:
    """CPython: object_isinstance."""
    tp = protocol.known_type(value)
    if tp is None:
        tx.unsupported(OPAQUE_VALUE, operation="isinstance()", type=value.type_name())
    return constant(any(_is_instance(tx, value, tp, c) for c in _classes(tx, classes)), value, classes)


def _is_instance(tx: Tracing, value: VariableTracker, tp: type, wanted: ClassVariable) -> bool:
    """CPython: object_recursive_isinstance: the exact type, the metaclass's `__instancecheck__`, the MRO."""
    cls = wanted.fn
    if tp is cls:
        return True
    for marked, mark in MARKS.items():
        if cls is marked:  # its metaclass asks for an attribute, and then the MRO
            return is_subtype(tp, cls) or is_marked(tx, value, mark)
    check = type_lookup(type(cls), "__instancecheck__")
    if type(check) is types.FunctionType and type(cls) not in _LIBRARY_CHECKS:
        fn = wanted.special(tx, "__instancecheck__")
        if fn is None or not tx.may_inline(check):
            tx.unsupported(OPAQUE_VALUE, operation="isinstance()", type=value.type_name())
        return protocol.truth(tx, tx.call(fn, [wanted, value], {}))
    if type_lookup(tp, "__class__") is not _OWN_CLASS:  # a property of that name decides too
        tx.unsupported(OPAQUE_VALUE, operation="isinstance()", type=value.type_name())
    if type(cls) is abc.ABCMeta:
        return _is_virtual(tx, value, tp, cls)
    if isinstance(value, UserObject):
        value.guard_bases(tx, cls)
    return is_subtype(tp, cls)


def _is_virtual(tx: Tracing, value: VariableTracker, tp: type, cls: type) -> bool:
    """An abstract class. About a builtin type the answer of one of the standard library is part of Python; a class of the user's that
    derives from it is an instance for good; all else can be registered at any time."""
    standard = any(cls is each for each in _STANDARD_ABCS)
    hook = type_lookup(cls, "__subclasshook__")
    if isinstance(value, UserObject) and is_subtype(tp, cls) and (standard or hook is _NO_HOOK):
        value.guard_bases(tx, cls)
        return True
    if isinstance(value, UserObject) and _only_registers(cls):
        tx.install(make_guard(StateSource(), GuardBuilder.STATE_READ, REGISTRATIONS, ()))
        value.guard_bases(tx, cls)
        return issubclass(tp, cls)
    if not standard or is_users_class(tp) or tp.__module__ != "builtins":
        tx.unsupported(OPAQUE_VALUE, operation="isinstance()", type=value.type_name())
    return issubclass(tp, cls)


def _only_registers(cls: type) -> bool:
    """Whether the MRO and what was registered decide about being a subclass: neither the class nor one below it has a hook."""
    stack: list[type] = [cls]
    seen: set[type] = set()
    while stack:
        one = stack.pop()
        if type_lookup(one, "__subclasshook__") is not _OWN_HOOK or type(one) not in (abc.ABCMeta, type):
            return False
        seen.add(one)
        below: list[type] = type.__subclasses__(one)
        stack += [each for each in below if each not in seen]
    return True


REGISTRATIONS = "registrations with abstract classes"
_OWN_HOOK = object.__dict__["__subclasshook__"]
_OWN_CLASS = object.__dict__["__class__"]


# Metaclasses whose `__instancecheck__` is known: torch's say what the MRO says but for special classes.
_LIBRARY_CHECKS = (abc.ABCMeta, type(torch.Tensor), type(torch.nn.Parameter))
_STANDARD_ABCS = [
    cls
    for module in (collections.abc, numbers)
    for cls in vars(module).values()
    if type(cls) is abc.ABCMeta  # none of them says no to a class that derives from it
]
_NO_HOOK = object.__dict__["__subclasshook__"]


@rule(issubclass)
@positional("issubclass", 2, 2)
def _issubclass(tx: Tracing, value: VariableTracker, classes: VariableTracker) -> VariableTracker:
    """CPython: object_issubclass, for classes whose metaclass does not override `__subclasscheck__`."""
    wanted = _classes(tx, classes)
    if not isinstance(value, ClassVariable) or any(
        type_lookup(type(c.fn), "__subclasscheck__") is not type.__subclasscheck__ for c in wanted
    ):
        tx.unsupported(OPAQUE_VALUE, operation="issubclass()", type=value.type_name())
    for cls in wanted:
        value.guard_bases(tx, cls.fn)
    return constant(any(is_subtype(value.fn, c.fn) for c in wanted), value, classes)


def _classes(tx: Tracing, value: VariableTracker) -> list[ClassVariable]:
    value = value.realize(tx)
    if isinstance(value, BuiltinVariable) and isinstance(value.fn, type):
        return [value if isinstance(value, ClassVariable) else ClassVariable(value.fn, value.source)]
    if isinstance(value, (TupleVariable, UnionVariable)):
        items = value.items if isinstance(value, TupleVariable) else value.classes
        return [c for item in items for c in _classes(tx, item)]
    tx.unsupported(UNSUPPORTED_CALL, name="isinstance with these classes")


@rule(type)
@positional("type", 1, 1)
def _type(tx: Tracing, value: VariableTracker) -> VariableTracker:
    tp = protocol.known_type(value)
    if tp is None:
        tx.unsupported(OPAQUE_VALUE, operation="type()", type=value.type_name())
    return class_of(tx, value)


@rule(print)
def _print(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    tx.unsupported(PRINT)


@rule(abs)
@positional("abs", 1, 1)
def _abs(tx: Tracing, value: VariableTracker) -> VariableTracker:
    if isinstance(value, TensorVariable):
        return tx.tensor_op(abs, [value], {})
    tx.unsupported(OPAQUE_VALUE, operation="abs()", type=value.type_name())


def _number(kind: type) -> None:
    @rule(kind)
    def convert(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        """Constants are folded before; what is left needs a tensor's data or the value's own methods."""
        value = args[0].realize(tx) if len(args) == 1 and not kwargs else None
        if isinstance(value, NumberVariable) and value.kind is kind:
            return value
        if isinstance(value, TensorVariable) and kind_of(value.meta.dtype) is kind:
            return tx.tensor_op("item", [value], {})
        if isinstance(value, (TensorVariable, NumberVariable)):
            tx.unsupported(TENSOR_DATA, name="conversion of a tensor to a Python number")
        tx.unsupported(UNSUPPORTED_CALL, name="a number type with these arguments")


for _kind in (float, int, complex):
    _number(_kind)


@rule(bool)
@positional("bool", 0, 1)
def _bool(tx: Tracing, *value: VariableTracker) -> VariableTracker:
    return constant(protocol.truth(tx, value[0]) if value else False, *value)


def _make_sequence(made: type[SequenceVariable], name: str) -> Rule:
    @positional(name, 0, 1)
    def build(tx: Tracing, *values: VariableTracker) -> VariableTracker:
        if not values:
            return made([])
        if type(values[0]) is made and made is TupleVariable:
            return values[0]
        return made(items_of(tx, name, values[0]), guards=VariableTracker.propagate(*values))

    return build


rule(tuple)(_make_sequence(TupleVariable, "tuple"))
rule(list)(_make_sequence(ListVariable, "list"))


@rule(getattr)
@positional("getattr", 2, 3)
def _getattr(
    tx: Tracing, owner: VariableTracker, name: VariableTracker, *default: VariableTracker
) -> VariableTracker:
    attribute = _attribute(tx, "getattr", name)
    if default and lacks(tx, owner, attribute):
        return default[0]
    return protocol.getattr_(tx, owner, attribute)


@rule(vars)
@positional("vars", 1, 1)
def _vars(tx: Tracing, owner: VariableTracker) -> VariableTracker:
    """CPython: builtin_vars, which reads `__dict__`."""
    if not isinstance(owner, UserObject):
        tx.unsupported(UNSUPPORTED_CALL, name=f"vars of a {owner.type_name()}")
    return owner.getattr(tx, "__dict__")


@rule(hasattr)
@positional("hasattr", 2, 2)
def _hasattr(tx: Tracing, owner: VariableTracker, name: VariableTracker) -> VariableTracker:
    attribute = _attribute(tx, "hasattr", name)
    if lacks(tx, owner, attribute):
        return constant(False, owner)
    protocol.getattr_(tx, owner, attribute)  # which installs the guards
    return constant(True, owner)


def _attribute(tx: Tracing, what: str, name: VariableTracker) -> str:
    if not name.is_python_constant() or type(name.as_python_constant()) is not str:
        tx.unsupported(UNSUPPORTED_CALL, name=f"{what} with a name that is not known")
    return str(name.as_python_constant())


def lacks(tx: Tracing, owner: VariableTracker, name: str) -> bool:
    """Whether reading the attribute raises AttributeError. Breaks the graph where that is not known."""
    if isinstance(owner, (UserObject, ClassVariable)):
        return owner.lacks(tx, name)
    if type_lookup(owner.python_type(), name, owner) is not owner:
        return False
    if isinstance(owner, TensorVariable):
        return not tx.tensor_has(owner, name)
    if type(owner) is PythonModuleVariable:
        return owner.lacks(tx, name)
    if owner.python_type() not in CONSTANT_TYPES | {tuple, list, dict}:
        tx.unsupported(OPAQUE_VALUE, operation=f"test for attribute {name}", type=owner.type_name())
    return True


@rule(setattr)
@positional("setattr", 3, 3)
def _setattr(
    tx: Tracing, owner: VariableTracker, name: VariableTracker, value: VariableTracker
) -> VariableTracker:
    owner.setattr(tx, _attribute(tx, "setattr", name), value)
    return ConstantVariable(None)


@rule(delattr)
@positional("delattr", 2, 2)
def _delattr(tx: Tracing, owner: VariableTracker, name: VariableTracker) -> VariableTracker:
    owner.delattr(tx, _attribute(tx, "delattr", name))
    return ConstantVariable(None)


@rule(callable)
@positional("callable", 1, 1)
def _callable(tx: Tracing, value: VariableTracker) -> VariableTracker:
    tp = protocol.known_type(value)
    if tp is None:
        tx.unsupported(OPAQUE_VALUE, operation="callable()", type=value.type_name())
    if isinstance(value, UserObject):
        value.guard_presence(tx, "__call__")
    return constant(type_lookup(tp, "__call__") is not None, value)


def _operator_rules() -> None:
    """`operator.add(a, b)` is `a + b`: the same protocol."""
    for symbol, fn in {**BINARY, **INPLACE}.items():
        rule(fn)(positional(fn.__name__, 2, 2)(lambda tx, a, b, s=symbol: protocol.binary_op(tx, s, a, b)))
    for symbol, fn in COMPARE.items():
        rule(fn)(positional(fn.__name__, 2, 2)(lambda tx, a, b, s=symbol: protocol.compare_op(tx, s, a, b)))
    for symbol, unary in UNARY.items():
        rule(unary)(positional(unary.__name__, 1, 1)(lambda tx, a, s=symbol: a.slot_unary(tx, s)))
    rule(operator.getitem)(positional("getitem", 2, 2)(lambda tx, a, b: protocol.getitem(tx, a, b)))
    rule(operator.truth)(positional("truth", 1, 1)(lambda tx, a: constant(protocol.truth(tx, a), a)))


_operator_rules()
rule(operator.abs)(RULES[abs])
rule(pow)(RULES[operator.pow])
