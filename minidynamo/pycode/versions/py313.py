"""CPython 3.13: NULL above the callable, TO_BOOL, CALL_KW, fused local instructions, closures loaded as
locals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import py312
from .base import (
    NULL_ABOVE,
    PREFIX,
    Emitter,
    Operands,
    Rule,
    Step,
    Steps,
    attribute,
    compare_op,
    count,
    emit_plain,
    emit_same,
    emit_steps,
    global_null_last,
    nothing,
    plain,
    without,
)


def _load(slot: int, operands: Operands) -> Step:
    return ("LOAD_CLOSURE" if slot in operands.cells else "LOAD_FAST", operands.slots[slot])


def load_fast(arg: int, operands: Operands) -> Steps:
    """LOAD_FAST of a cell's slot is what LOAD_CLOSURE was."""
    return (_load(arg, operands),)


def load_load(arg: int, operands: Operands) -> Steps:
    """Two loads."""
    return (_load(arg >> 4, operands), _load(arg & 15, operands))


def store_load(arg: int, operands: Operands) -> Steps:
    """A store and a load."""
    return (("STORE_FAST", operands.slots[arg >> 4]), _load(arg & 15, operands))


def store_store(arg: int, operands: Operands) -> Steps:
    """Two stores."""
    return (("STORE_FAST", operands.slots[arg >> 4]), ("STORE_FAST", operands.slots[arg & 15]))


# Instructions that want a bool; canonically they take the truth of any value.
WANTS_BOOL = frozenset({"POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT"})
_NOT_NOT: Steps = (("UNARY_NOT", None), ("UNARY_NOT", None))
_compare = compare_op(5)


def to_bool(arg: int, operands: Operands) -> Steps:
    """TO_BOOL belongs to the instruction that wants the bool; where there is none the bool itself is the value."""
    return PREFIX if operands.following() in WANTS_BOOL else _NOT_NOT


def compare(arg: int, operands: Operands) -> Steps:
    """COMPARE_OP: bit 4 stands for a TO_BOOL behind it."""
    if arg & 16 and operands.following() not in WANTS_BOOL:
        return (*_compare(arg, operands), *_NOT_NOT)
    return _compare(arg, operands)


def call_kw(arg: int, operands: Operands) -> Steps:
    """CALL_KW: the names are on the stack."""
    return (("CALL_KW", arg),)


_REMOVED = "FORMAT_VALUE KW_NAMES LOAD_CLOSURE"
RULES: dict[str, Rule] = without(py312.RULES, _REMOVED) | {
    "LOAD_GLOBAL": global_null_last,
    "LOAD_ATTR": attribute("LOAD_ATTR", NULL_ABOVE, 1),
    "LOAD_SUPER_ATTR": attribute("LOAD_SUPER_ATTR", NULL_ABOVE, 2),
    "LOAD_FAST": load_fast,
    "LOAD_FAST_CHECK": load_fast,
    "LOAD_FAST_LOAD_FAST": load_load,
    "STORE_FAST_LOAD_FAST": store_load,
    "STORE_FAST_STORE_FAST": store_store,
    "COMPARE_OP": compare,
    "TO_BOOL": to_bool,
    "CALL_KW": call_kw,
    "MAKE_FUNCTION": plain("MAKE_FUNCTION"),
    "SET_FUNCTION_ATTRIBUTE": count("SET_FUNCTION_ATTRIBUTE"),
    "CONVERT_VALUE": count("CONVERT_VALUE"),
    "FORMAT_SIMPLE": plain("FORMAT_SIMPLE"),
    "FORMAT_WITH_SPEC": plain("FORMAT_WITH_SPEC"),
    "END_FOR": nothing,
}


def emit_call_kw(arg: Any) -> Steps:
    """A call with keywords; `arg` is (number of arguments, names)."""
    number, names = arg
    return (("LOAD_CONST", names), ("CALL_KW", number))


def emit_make_function(flags: Any) -> Steps:
    """The attributes were pushed in the order of their bits, so they are set in the opposite one."""
    bits = (bit for bit in (16, 8, 4, 2, 1) if flags & bit)
    return (("MAKE_FUNCTION", None), *(("SET_FUNCTION_ATTRIBUTE", bit) for bit in bits))


def _truth(name: str) -> Emitter:
    return lambda label: (("TO_BOOL", None), (name, label))


EMITTERS: dict[str, Emitter] = py312.EMITTERS | {
    "LOAD_CLOSURE": emit_same("LOAD_FAST"),
    "CALL_KW": emit_call_kw,
    "MAKE_FUNCTION": emit_make_function,
    "CONVERT_VALUE": emit_same("CONVERT_VALUE"),
    "FORMAT_SIMPLE": emit_plain("FORMAT_SIMPLE"),
    "FORMAT_WITH_SPEC": emit_plain("FORMAT_WITH_SPEC"),
    "UNARY_NOT": emit_steps(("TO_BOOL", None), ("UNARY_NOT", None)),
    "POP_JUMP_IF_TRUE": _truth("POP_JUMP_IF_TRUE"),
    "POP_JUMP_IF_FALSE": _truth("POP_JUMP_IF_FALSE"),
}

VERSION = replace(
    py312.VERSION,
    rules=RULES,
    internal=py312.INTERNAL | {"ENTER_EXECUTOR", "EXIT_INIT_CHECK", "LOAD_CLOSURE"},
    emit=EMITTERS,
    null_first=False,
    loop_end=("END_FOR", "POP_TOP"),
    not_resumable=py312.VERSION.not_resumable | {"SET_FUNCTION_ATTRIBUTE"},  # the function is not whole yet
    slot_pairs=frozenset({"LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"}),
    load_cell="LOAD_FAST",
    to_bool="TO_BOOL",
    wants_bool=WANTS_BOOL,
)
