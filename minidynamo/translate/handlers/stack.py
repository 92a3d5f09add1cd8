"""Stack shuffles and constants. These never look at a value, so they also work on values that plain Python made."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...variables import sets
from ...variables.base import VariableTracker
from ...variables.code import CodeVariable
from ...variables.constant import CONSTANT_TYPES, ConstantVariable
from ...variables.functions import BuiltinVariable
from ...variables.opaque import NULL
from ...variables.sequences import TupleVariable
from .table import handles

SHUFFLES = ("POP_TOP", "COPY", "SWAP", "PUSH_NULL", "LOAD_CONST")


@handles("POP_TOP")
def pop_top(tx: Any, inst: Instruction) -> None:
    tx.stack.pop()


@handles("COPY")
def copy(tx: Any, inst: Instruction) -> None:
    stack = tx.stack
    stack.append(stack[-inst.arg])


@handles("SWAP")
def swap(tx: Any, inst: Instruction) -> None:
    stack = tx.stack
    stack[-1], stack[-inst.arg] = stack[-inst.arg], stack[-1]


@handles("PUSH_NULL")
def push_null(tx: Any, inst: Instruction) -> None:
    tx.stack.append(NULL)


@handles("LOAD_CONST")
def load_const(tx: Any, inst: Instruction) -> None:
    tx.stack.append(code_constant(inst.arg))


def code_constant(value: Any) -> VariableTracker:
    """A constant of the code object: immutable, nested tuples and frozensets included."""
    if type(value) in CONSTANT_TYPES:
        return ConstantVariable(value)
    if type(value) is tuple:
        return TupleVariable([code_constant(item) for item in value])
    if isinstance(value, type):  # AssertionError
        return BuiltinVariable(value, None)
    if type(value) is frozenset:
        return sets.code_constant(value, [code_constant(item) for item in value])
    return CodeVariable(value)


def constant_operand(tx: Any, value: VariableTracker) -> Any:
    """An operand that is always a constant of the code. In a resume function it may arrive from outside."""
    value = value.realize(tx)
    if isinstance(value, TupleVariable):
        value.realize_deep(tx)
    return value.as_python_constant()
