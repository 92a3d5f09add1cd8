"""Functions made in the frame."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import MISSING_OPCODE
from ...variables.functions import InnerFunctionVariable
from .table import handles

DEFAULTS, KEYWORD_DEFAULTS, ANNOTATIONS, CLOSURE = 1, 2, 4, 8


@handles("MAKE_FUNCTION")
def make_function(tx: Any, inst: Instruction) -> None:
    tx.push(InnerFunctionVariable(tx.pop().value, tx.scope))


@handles("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(tx: Any, inst: Instruction) -> None:
    """CPython: the value lies below the function."""
    fn, value = tx.pop(), tx.pop().realize(tx)
    if inst.arg == DEFAULTS:
        fn.defaults = list(value.items)
    elif inst.arg == CLOSURE:
        fn.cells = list(value.items)
    else:
        tx.unsupported(MISSING_OPCODE, opname="SET_FUNCTION_ATTRIBUTE with annotations or keyword defaults")
    tx.push(fn)
