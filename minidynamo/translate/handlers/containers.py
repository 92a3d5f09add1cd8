"""Tuples, lists and slices: building, extending, unpacking."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import OPAQUE_VALUE, OPERATOR_FAILS
from ...rules.builtins import items_of
from ...variables.base import VariableTracker
from ...variables.constant import ConstantVariable
from ...variables.sequences import ListVariable, SequenceVariable, SliceVariable, TupleVariable
from .table import handles


@handles("BUILD_TUPLE")
def build_tuple(tx: Any, inst: Instruction) -> None:
    items = tx.popn(inst.arg)
    tx.push(TupleVariable(items, guards=VariableTracker.propagate(*items)))


@handles("BUILD_LIST")
def build_list(tx: Any, inst: Instruction) -> None:
    items = tx.popn(inst.arg)
    tx.push(ListVariable(items, guards=VariableTracker.propagate(*items)))


@handles("BUILD_SLICE")
def build_slice(tx: Any, inst: Instruction) -> None:
    parts = [v.realize(tx) for v in tx.popn(inst.arg)]
    if len(parts) == 2:
        parts.append(ConstantVariable(None))
    tx.push(SliceVariable((parts[0], parts[1], parts[2])))


def _made_here(tx: Any, depth: int) -> ListVariable:
    """The list that a display or comprehension is filling."""
    made = tx.stack[-depth].realize(tx)
    if not isinstance(made, ListVariable):
        tx.unsupported(OPAQUE_VALUE, operation="filling a container", type=made.type_name())
    made.own(tx, "append")
    return made


@handles("LIST_APPEND")
def list_append(tx: Any, inst: Instruction) -> None:
    item = tx.pop()
    _made_here(tx, inst.arg).items.append(item)


@handles("LIST_EXTEND")
def list_extend(tx: Any, inst: Instruction) -> None:
    more = items_of(tx, "unpacking", tx.pop())
    _made_here(tx, inst.arg).items.extend(more)


@handles("LIST_TO_TUPLE")
def list_to_tuple(tx: Any, inst: Instruction) -> None:
    made = tx.pop().realize(tx)
    tx.push(TupleVariable(list(made.items), guards=VariableTracker.propagate(made)))


def unpacked(tx: Any, value: VariableTracker) -> list[VariableTracker]:
    value = value.realize(tx)
    if isinstance(value, SequenceVariable):
        return list(value.items)
    return items_of(tx, "unpacking", value)


@handles("UNPACK_SEQUENCE")
def unpack_sequence(tx: Any, inst: Instruction) -> None:
    items = unpacked(tx, tx.pop())
    if len(items) != inst.arg:
        tx.unsupported(OPERATOR_FAILS, name="unpacking", error="ValueError")
    tx.stack.extend(reversed(items))


@handles("UNPACK_EX")
def unpack_ex(tx: Any, inst: Instruction) -> None:
    before, after = inst.arg & 0xFF, inst.arg >> 8
    items = unpacked(tx, tx.pop())
    if len(items) < before + after:
        tx.unsupported(OPERATOR_FAILS, name="unpacking", error="ValueError")
    end = len(items) - after
    tx.stack.extend(reversed([*items[:before], ListVariable(items[before:end]), *items[end:]]))
