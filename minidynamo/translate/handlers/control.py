"""Jumps, loops, return."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import OPAQUE_VALUE, TENSOR_BRANCH
from ...variables import protocol
from ...variables.numbers import NumberVariable
from ...variables.tensor import TensorVariable
from .table import Handler, handles

CONDITIONAL = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")


@handles("JUMP")
def jump(tx: Any, inst: Instruction) -> None:
    tx.jump(inst.target)


def jump_if(wanted: bool) -> Handler:
    def handler(tx: Any, inst: Instruction) -> None:
        value = tx.pop().realize(tx)
        if isinstance(value, (TensorVariable, NumberVariable)):
            tx.unsupported(TENSOR_BRANCH)
        if protocol.truth(tx, value) is wanted:
            tx.jump(inst.target)

    return handler


def jump_if_none(wanted: bool) -> Handler:
    def handler(tx: Any, inst: Instruction) -> None:
        value = tx.pop().realize(tx)
        tp = protocol.known_type(value)
        if tp is None:
            tx.unsupported(OPAQUE_VALUE, operation="comparison with None", type=value.type_name())
        if (tp is type(None)) is wanted:
            tx.jump(inst.target)

    return handler


handles("POP_JUMP_IF_TRUE")(jump_if(True))
handles("POP_JUMP_IF_FALSE")(jump_if(False))
handles("POP_JUMP_IF_NONE")(jump_if_none(True))
handles("POP_JUMP_IF_NOT_NONE")(jump_if_none(False))


@handles("GET_ITER")
def get_iter(tx: Any, inst: Instruction) -> None:
    tx.push(protocol.iterate(tx, tx.pop()))


@handles("FOR_ITER")
def for_iter(tx: Any, inst: Instruction) -> None:
    """The iterator stays on the stack at exhaustion; the instruction at the target pops it."""
    iterator = tx.stack[-1].realize(tx)
    item = iterator.slot_next(tx)
    if item is None:
        tx.jump(inst.target)
    else:
        tx.stack.append(item)


@handles("RETURN_VALUE")
def return_value(tx: Any, inst: Instruction) -> None:
    tx.result = tx.pop()
