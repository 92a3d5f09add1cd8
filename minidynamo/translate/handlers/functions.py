"""Functions made in the frame."""

from __future__ import annotations

import builtins
from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import MISSING_OPCODE
from ...variables.base import VariableTracker
from ...variables.code import CodeVariable
from ...variables.dicts import DictVariable
from ...variables.functions import BuiltinVariable, CellVariable, InnerFunctionVariable
from ...variables.sequences import TupleVariable
from .table import handles

DEFAULTS, KEYWORD_DEFAULTS, ANNOTATIONS, CLOSURE = 1, 2, 4, 8


@handles("MAKE_FUNCTION")
def make_function(tx: Any, inst: Instruction) -> None:
    code = tx.pop()
    if not isinstance(code, CodeVariable):  # a graph break since it was loaded
        tx.unsupported(MISSING_OPCODE, opname="MAKE_FUNCTION of code that plain Python loaded")
    tx.push(InnerFunctionVariable(code.value, tx.scope))


@handles("LOAD_BUILD_CLASS")
def load_build_class(tx: Any, inst: Instruction) -> None:
    """Calling it breaks the graph: plain Python makes the class, with the body that is rebuilt for it."""
    tx.push(BuiltinVariable(builtins.__build_class__, None))


@handles("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(tx: Any, inst: Instruction) -> None:
    """CPython: the value lies below the function, which is fresh."""
    fn, value = tx.pop(), tx.pop().realize(tx)
    items = value.items if isinstance(value, TupleVariable) else None
    if (
        inst.arg == KEYWORD_DEFAULTS
        and isinstance(fn, InnerFunctionVariable)
        and isinstance(value, DictVariable)
    ):
        fn.keyword_defaults = value
        tx.push(fn)
        return
    if not isinstance(fn, InnerFunctionVariable) or items is None:
        not_followed(tx, inst, value)
    elif inst.arg == DEFAULTS:
        fn.defaults = list(items)
    elif inst.arg == ANNOTATIONS:
        fn.annotations = value
    elif inst.arg == CLOSURE and all(isinstance(item, CellVariable) for item in items):
        fn.cells = [item for item in items if isinstance(item, CellVariable)]
    else:
        not_followed(tx, inst, value)
    tx.push(fn)


def not_followed(tx: Any, inst: Instruction, value: VariableTracker) -> None:
    tx.unsupported(MISSING_OPCODE, opname=f"SET_FUNCTION_ATTRIBUTE {inst.arg} with a {value.type_name()}")
