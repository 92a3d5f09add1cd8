"""Operators, comparisons, subscripts, formatting."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import TENSOR_TRUTH, UNSUPPORTED_CALL
from ...variables import protocol, text
from ...variables.base import VariableTracker
from ...variables.constant import ConstantVariable, fold
from ...variables.tensor import TensorVariable
from .table import Handler, handles


@handles("BINARY_OP")
def binary_op(tx: Any, inst: Instruction) -> None:
    stack = tx.stack
    right, left = stack.pop(), stack.pop()
    stack.append(protocol.binary_op(tx, inst.arg, left, right))


@handles("COMPARE_OP")
def compare_op(tx: Any, inst: Instruction) -> None:
    left, right = tx.popn(2)
    tx.push(protocol.compare_op(tx, inst.arg, left, right))


@handles("IS_OP")
def is_op(tx: Any, inst: Instruction) -> None:
    left, right = tx.popn(2)
    same = protocol.identical(tx, left, right)
    tx.push(ConstantVariable(same != bool(inst.arg), guards=VariableTracker.propagate(left, right)))


@handles("CONTAINS_OP")
def contains_op(tx: Any, inst: Instruction) -> None:
    item, container = (v.realize(tx) for v in tx.popn(2))
    found = container.slot_contains(tx, item)
    tx.push(ConstantVariable(found != bool(inst.arg), guards=VariableTracker.propagate(item, container)))


def unary(symbol: str) -> Handler:
    def handler(tx: Any, inst: Instruction) -> None:
        tx.push(tx.pop().realize(tx).slot_unary(tx, symbol))

    return handler


for _name, _symbol in (("UNARY_NEGATIVE", "-"), ("UNARY_INVERT", "~"), ("UNARY_POSITIVE", "+")):
    handles(_name)(unary(_symbol))


@handles("UNARY_NOT")
def unary_not(tx: Any, inst: Instruction) -> None:
    value = tx.pop().realize(tx)
    if isinstance(value, TensorVariable):
        tx.unsupported(TENSOR_TRUTH)
    tx.push(ConstantVariable(not value.slot_truth(tx), guards=VariableTracker.propagate(value)))


@handles("BINARY_SUBSCR")
def binary_subscr(tx: Any, inst: Instruction) -> None:
    owner, key = tx.popn(2)
    tx.push(protocol.getitem(tx, owner, key))


@handles("STORE_SUBSCR")
def store_subscr(tx: Any, inst: Instruction) -> None:
    value, owner, key = tx.popn(3)
    owner.realize(tx).slot_setitem(tx, key.realize(tx), value)


@handles("DELETE_SUBSCR")
def delete_subscr(tx: Any, inst: Instruction) -> None:
    owner, key = tx.popn(2)
    owner.realize(tx).slot_delitem(tx, key.realize(tx))


@handles("CONVERT_VALUE")
def convert_value(tx: Any, inst: Instruction) -> None:
    convert = (str, str, repr, ascii)[inst.arg]
    tx.push(text.text_of(tx, tx.pop(), convert))


@handles("FORMAT_SIMPLE")
def format_simple(tx: Any, inst: Instruction) -> None:
    tx.push(text.formatted(tx, tx.pop(), ConstantVariable("")))


@handles("FORMAT_WITH_SPEC")
def format_with_spec(tx: Any, inst: Instruction) -> None:
    value, spec = tx.popn(2)
    tx.push(text.formatted(tx, value, spec))


@handles("BUILD_STRING")
def build_string(tx: Any, inst: Instruction) -> None:
    tx.push(
        fold(
            tx, "f-string", lambda *parts: "".join(parts), *[constant_only(tx, v) for v in tx.popn(inst.arg)]
        )
    )


def constant_only(tx: Any, value: VariableTracker) -> VariableTracker:
    """A constant whose text is the same everywhere; others are formatted by plain Python."""
    value = value.realize(tx)
    if not isinstance(value, ConstantVariable):
        tx.unsupported(UNSUPPORTED_CALL, name=f"formatting of {value.type_name()}")
    return value
