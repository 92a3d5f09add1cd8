"""CPython 3.14: borrowed loads, common constants, subscription as an operator, `with` by LOAD_SPECIAL,
template strings."""

from __future__ import annotations

import opcode
from dataclasses import replace
from typing import Any

from . import py313
from .base import (
    NULL_ABOVE,
    Emitter,
    Operands,
    Rule,
    Steps,
    count,
    emit_steps,
    nothing,
    plain,
    steps,
    without,
)

_COMMON_CONSTANTS: list[Any] = getattr(opcode, "_common_constants", [])
_SPECIAL_METHODS: list[str] = getattr(opcode, "_special_method_names", [])


def load_small_int(arg: int, operands: Operands) -> Steps:
    """LOAD_SMALL_INT: the argument is the constant."""
    return (("LOAD_CONST", arg),)


def load_common_constant(arg: int, operands: Operands) -> Steps:
    """LOAD_COMMON_CONSTANT: the argument is a row of the interpreter's own table."""
    return (("LOAD_CONST", _COMMON_CONSTANTS[arg]),)


def load_special(arg: int, operands: Operands) -> Steps:
    """LOAD_SPECIAL pushes a method ready to be called: here the bound one and a NULL."""
    return (("LOAD_SPECIAL", _SPECIAL_METHODS[arg]), *NULL_ABOVE)


_REMOVED = "LOAD_ASSERTION_ERROR BUILD_CONST_KEY_MAP BINARY_SUBSCR BEFORE_WITH BEFORE_ASYNC_WITH RETURN_CONST"
RULES: dict[str, Rule] = without(py313.RULES, _REMOVED) | {
    "LOAD_FAST_BORROW": py313.load_fast,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": py313.load_load,
    "LOAD_SMALL_INT": load_small_int,
    "LOAD_COMMON_CONSTANT": load_common_constant,
    "LOAD_SPECIAL": load_special,
    "WITH_EXCEPT_START": steps(("WITH_EXCEPT_START", 5)),
    "CALL_FUNCTION_EX": steps(("CALL_FUNCTION_EX", 1)),
    "POP_ITER": plain("POP_TOP"),
    "NOT_TAKEN": nothing,
    "BUILD_TEMPLATE": plain("BUILD_TEMPLATE"),
    "BUILD_INTERPOLATION": count("BUILD_INTERPOLATION"),
}


def emit_call_function_ex(has_mapping: Any) -> Steps:
    """CALL_FUNCTION_EX always takes a mapping or NULL."""
    call = ("CALL_FUNCTION_EX", None)
    return (call,) if has_mapping else (("PUSH_NULL", None), call)


EMITTERS: dict[str, Emitter] = without(py313.EMITTERS, "BEFORE_WITH") | {
    "BINARY_SUBSCR": emit_steps(("BINARY_OP", "[]")),
    "CALL_FUNCTION_EX": emit_call_function_ex,
}

NO_LONGER_PSEUDO = {"LOAD_METHOD", "LOAD_SUPER_METHOD", "LOAD_ZERO_SUPER_ATTR", "LOAD_ZERO_SUPER_METHOD"}
NEW_PSEUDO = {"JUMP_IF_FALSE", "JUMP_IF_TRUE", "ANNOTATIONS_PLACEHOLDER"}

VERSION = replace(
    py313.VERSION,
    rules=RULES,
    internal=py313.VERSION.internal - NO_LONGER_PSEUDO | NEW_PSEUDO,
    emit=EMITTERS,
    loop_end=("END_FOR", "POP_ITER"),
    slot_pairs=py313.VERSION.slot_pairs | {"LOAD_FAST_BORROW_LOAD_FAST_BORROW"},
)
