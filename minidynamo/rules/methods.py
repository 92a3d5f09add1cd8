"""Methods of builtin types called as functions: `str.upper(s)`, `list.append(l, x)`, `object.__repr__(o)`."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from ..reasons import UNSUPPORTED_CALL
from ..static_access import is_subtype, type_lookup
from ..variables import protocol
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import BINARY, COMPARE, UNARY, ConstantVariable
from ..variables.dict_objects import DictObject
from ..variables.special_names import FORWARD
from ..variables.special_names import UNARY as UNARY_NAMES

METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
NONE = ConstantVariable(None)
Call = Callable[[Tracing, list[VariableTracker]], VariableTracker]


def is_method(target: Any) -> bool:
    """A method of a type written in C, unbound."""
    return type(target) in METHODS


def call_method(
    tx: Tracing, target: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """The first argument is an instance of the very type, so that calling the method on it finds the same one."""
    owner = args[0].realize(tx) if args else None
    name = target.__name__
    if isinstance(owner, DictObject) and is_subtype(owner.cls, target.__objclass__):
        owner = owner.contents
        if name == "__init__":
            return (
                owner.call_method(tx, "update", list(args[1:]), kwargs) if len(args) > 1 or kwargs else NONE
            )
    tp = protocol.known_type(owner) if owner is not None else None
    if owner is None or tp is None or type_lookup(tp, name) is not target:
        tx.unsupported(UNSUPPORTED_CALL, name=f"{target.__qualname__} with these arguments")
    if type(target) is types.MethodDescriptorType and (name, len(args)) not in SLOTS:
        return owner.call_method(tx, name, list(args[1:]), kwargs)
    slot = SLOTS.get((name, len(args)))
    if slot is None or kwargs:
        tx.unsupported(UNSUPPORTED_CALL, name=target.__qualname__)
    return slot(tx, [owner, *(a.realize(tx) for a in args[1:])])


def _constant(fn: Callable[..., Any]) -> Call:
    return lambda tx, args: ConstantVariable(fn(tx, *args), guards=VariableTracker.propagate(*args))


def _nothing(fn: Callable[..., None]) -> Call:
    def call(tx: Tracing, args: list[VariableTracker]) -> VariableTracker:
        fn(tx, *args)
        return ConstantVariable(None)

    return call


# (special method, number of arguments with self) -> what calling it does. A result of NotImplemented is left to plain Python: the
# operators of Python never ask for it.
SLOTS: dict[tuple[str, int], Call] = {
    ("__len__", 1): _constant(lambda tx, owner: owner.slot_len(tx)),
    ("__contains__", 2): _constant(lambda tx, owner, item: owner.slot_contains(tx, item)),
    ("__bool__", 1): _constant(lambda tx, owner: owner.slot_truth(tx)),
    ("__iter__", 1): lambda tx, args: protocol.iterate(tx, args[0]),
    ("__getitem__", 2): lambda tx, args: protocol.getitem(tx, *args),
    ("__setitem__", 3): _nothing(lambda tx, owner, key, value: owner.slot_setitem(tx, key, value)),
    ("__delitem__", 2): _nothing(lambda tx, owner, key: owner.slot_delitem(tx, key)),
}


def _operators() -> None:
    """Between two values of one type an operator is what the type's method says."""

    def same_types(tx: Tracing, args: list[VariableTracker], name: str) -> None:
        if args[0].python_type() is not args[1].python_type():
            tx.unsupported(UNSUPPORTED_CALL, name=f"{name} of different types")

    def binary(symbol: str, name: str) -> Call:
        def call(tx: Tracing, args: list[VariableTracker]) -> VariableTracker:
            same_types(tx, args, name)
            return protocol.binary_op(tx, symbol, *args)

        return call

    def comparison(symbol: str, name: str) -> Call:
        def call(tx: Tracing, args: list[VariableTracker]) -> VariableTracker:
            same_types(tx, args, name)
            return protocol.compare_op(tx, symbol, *args)

        return call

    for symbol in BINARY:
        SLOTS[FORWARD[symbol], 2] = binary(symbol, FORWARD[symbol])
    for symbol, fn in COMPARE.items():
        SLOTS[f"__{fn.__name__}__", 2] = comparison(symbol, fn.__name__)
    for symbol in UNARY:
        SLOTS[UNARY_NAMES[symbol], 1] = lambda tx, args, s=symbol: args[0].slot_unary(tx, s)  # type: ignore[misc]


_operators()
