"""Python's builtins over trackers: a table of rules, and the pure ones that are folded on constants."""

from __future__ import annotations

import abc
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from ..reasons import OPAQUE_VALUE, PRINT, TENSOR_DATA, UNSUPPORTED_CALL
from ..sources import TypeSource
from ..static_access import is_subtype, type_lookup
from ..variables import protocol
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import BINARY, COMPARE, CONSTANT_TYPES, INPLACE, UNARY, ConstantVariable
from ..variables.functions import BuiltinVariable
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
    """CPython: object_isinstance, for classes whose metaclass does not override `__instancecheck__`."""
    flat = _classes(tx, classes)
    tp = protocol.known_type(value)
    if tp is None or not all(_plain_check(c) or _is_collection(c, tp) for c in flat):
        tx.unsupported(OPAQUE_VALUE, operation="isinstance()", type=value.type_name())
    if not all(_plain_check(c) for c in flat):
        return constant(issubclass(tp, tuple(flat)), value, classes)
    if type_lookup(tp, "__class__") is not _OWN_CLASS:  # a property of that name decides too
        tx.unsupported(OPAQUE_VALUE, operation="isinstance()", type=value.type_name())
    return constant(any(is_subtype(tp, c) for c in flat), value, classes)


_OWN_CLASS = object.__dict__["__class__"]


_PLAIN_METATYPES = (type, type(torch.Tensor), type(torch.nn.Parameter))


def _plain_check(cls: type) -> bool:
    return type(cls) in _PLAIN_METATYPES


def _is_collection(cls: type, tp: type) -> bool:
    """An abstract class of collections.abc, asked about a builtin type: the answer is part of Python."""
    return (
        type(cls) is abc.ABCMeta
        and cls.__module__ == "collections.abc"
        and tp in CONSTANT_TYPES | {tuple, list, dict}
    )


def _classes(tx: Tracing, value: VariableTracker) -> list[type]:
    value = value.realize(tx)
    if isinstance(value, BuiltinVariable) and isinstance(value.fn, type):
        return [value.fn]
    if isinstance(value, TupleVariable):
        return [c for item in value.items for c in _classes(tx, item)]
    tx.unsupported(UNSUPPORTED_CALL, name="isinstance with these classes")


@rule(type)
@positional("type", 1, 1)
def _type(tx: Tracing, value: VariableTracker) -> VariableTracker:
    tp = protocol.known_type(value)
    if tp is None:
        tx.unsupported(OPAQUE_VALUE, operation="type()", type=value.type_name())
    source = TypeSource(value.source) if value.source is not None else None
    return BuiltinVariable(tp, source, VariableTracker.propagate(value))


@rule(print)
def _print(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    tx.unsupported(PRINT)


@rule(abs)
@positional("abs", 1, 1)
def _abs(tx: Tracing, value: VariableTracker) -> VariableTracker:
    if isinstance(value, TensorVariable):
        return tx.tensor_op(abs, [value], {})
    tx.unsupported(OPAQUE_VALUE, operation="abs()", type=value.type_name())


@rule(float, int, complex)
def _number(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """Constants are folded before; what is left needs a tensor's data or the value's own methods."""
    if args and isinstance(args[0].realize(tx), TensorVariable):
        tx.unsupported(TENSOR_DATA, name="conversion of a tensor to a Python number")
    tx.unsupported(UNSUPPORTED_CALL, name="a number type with these arguments")


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
    if default and _lacks(tx, owner, attribute):
        return default[0]
    return protocol.getattr_(tx, owner, attribute)


@rule(hasattr)
@positional("hasattr", 2, 2)
def _hasattr(tx: Tracing, owner: VariableTracker, name: VariableTracker) -> VariableTracker:
    attribute = _attribute(tx, "hasattr", name)
    if _lacks(tx, owner, attribute):
        return constant(False, owner)
    protocol.getattr_(tx, owner, attribute)  # which installs the guards
    return constant(True, owner)


def _attribute(tx: Tracing, what: str, name: VariableTracker) -> str:
    if not name.is_python_constant() or type(name.as_python_constant()) is not str:
        tx.unsupported(UNSUPPORTED_CALL, name=f"{what} with a name that is not known")
    return str(name.as_python_constant())


def _lacks(tx: Tracing, owner: VariableTracker, name: str) -> bool:
    """Whether reading the attribute raises AttributeError. Breaks the graph where that is not known."""
    if isinstance(owner, UserObject):
        return owner.lacks(tx, name)
    if type_lookup(owner.python_type(), name, owner) is not owner:
        return False
    if owner.python_type() not in CONSTANT_TYPES | {tuple, list, dict}:
        tx.unsupported(OPAQUE_VALUE, operation=f"test for attribute {name}", type=owner.type_name())
    return True


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
