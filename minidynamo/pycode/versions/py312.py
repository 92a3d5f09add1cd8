"""CPython 3.12: method loads are a bit of LOAD_ATTR, inlined comprehensions, intrinsics, END_FOR and
END_SEND."""

from __future__ import annotations

import opcode
from dataclasses import replace
from typing import Any

from . import py311
from .base import (
    NULL_BELOW,
    Emitter,
    Operands,
    Rule,
    Steps,
    attribute,
    compare_op,
    emit_flagged,
    emit_same,
    emit_steps,
    forward,
    named,
    plain,
    slot,
    steps,
    without,
)

_INTRINSICS_1: list[str] = getattr(opcode, "_intrinsic_1_descs", [])
_INTRINSICS_2: list[str] = getattr(opcode, "_intrinsic_2_descs", [])
_CANONICAL = {  # intrinsics that were instructions before
    "INTRINSIC_UNARY_POSITIVE": "UNARY_POSITIVE",
    "INTRINSIC_LIST_TO_TUPLE": "LIST_TO_TUPLE",
    "INTRINSIC_ASYNC_GEN_WRAP": "ASYNC_GEN_WRAP",
}


def intrinsic_1(arg: int, operands: Operands) -> Steps:
    """CALL_INTRINSIC_1 goes by name."""
    name = _INTRINSICS_1[arg]
    canonical = _CANONICAL.get(name)
    return (("CALL_INTRINSIC_1", name),) if canonical is None else ((canonical, None),)


def intrinsic_2(arg: int, operands: Operands) -> Steps:
    """CALL_INTRINSIC_2 goes by name."""
    return (("CALL_INTRINSIC_2", _INTRINSICS_2[arg]),)


def return_const(arg: int, operands: Operands) -> Steps:
    """RETURN_CONST: load it and return."""
    return (("LOAD_CONST", operands.consts[arg]), ("RETURN_VALUE", None))


_REMOVED = """LOAD_METHOD LOAD_CLASSDEREF PRECALL JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP UNARY_POSITIVE
LIST_TO_TUPLE PRINT_EXPR IMPORT_STAR PREP_RERAISE_STAR ASYNC_GEN_WRAP POP_JUMP_FORWARD_IF_TRUE
POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE
POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE"""
RULES: dict[str, Rule] = without(py311.RULES, _REMOVED) | {
    "LOAD_ATTR": attribute("LOAD_ATTR", NULL_BELOW, 1),
    "LOAD_SUPER_ATTR": attribute("LOAD_SUPER_ATTR", NULL_BELOW, 2),
    "LOAD_FAST_CHECK": slot("LOAD_FAST"),
    "LOAD_FAST_AND_CLEAR": slot("LOAD_FAST_AND_CLEAR"),
    "LOAD_LOCALS": plain("LOAD_LOCALS"),
    "LOAD_FROM_DICT_OR_DEREF": slot("LOAD_FROM_DICT_OR_DEREF"),
    "LOAD_FROM_DICT_OR_GLOBALS": named("LOAD_FROM_DICT_OR_GLOBALS"),
    "COMPARE_OP": compare_op(4),
    "BINARY_SLICE": steps(("BUILD_SLICE", 2), ("BINARY_SUBSCR", None)),
    "STORE_SLICE": steps(("BUILD_SLICE", 2), ("STORE_SUBSCR", None)),
    "RETURN_CONST": return_const,
    "CALL_INTRINSIC_1": intrinsic_1,
    "CALL_INTRINSIC_2": intrinsic_2,
    "END_FOR": plain("POP_TOP"),
    "END_SEND": plain("END_SEND"),
    "CLEANUP_THROW": plain("CLEANUP_THROW"),
    **{
        f"POP_JUMP_IF_{test}": forward(f"POP_JUMP_IF_{test}")
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

# Instructions of the compiler, of instrumented code and of the interpreter itself; `co_code` shows none of
# them.
PSEUDO = frozenset(
    """JUMP JUMP_NO_INTERRUPT POP_BLOCK SETUP_CLEANUP SETUP_FINALLY SETUP_WITH STORE_FAST_MAYBE_NULL
    LOAD_METHOD LOAD_SUPER_METHOD LOAD_ZERO_SUPER_ATTR LOAD_ZERO_SUPER_METHOD""".split()
)
INSTRUMENTED = frozenset(name for name in opcode.opmap if name.startswith("INSTRUMENTED_"))
INTERNAL = py311.VERSION.internal | PSEUDO | INSTRUMENTED | {"INTERPRETER_EXIT", "RESERVED"}


def emit_intrinsic(name: str) -> Emitter:
    """A canonical instruction that is an intrinsic here."""
    return emit_steps(("CALL_INTRINSIC_1", name))


def emit_call(arg: Any) -> Steps:
    """CALL alone."""
    return (("CALL", arg),)


def emit_call_kw(arg: Any) -> Steps:
    """A call with keywords; `arg` is (number of arguments, names)."""
    number, names = arg
    return (("KW_NAMES", names), ("CALL", number))


EMITTERS: dict[str, Emitter] = py311.EMITTERS | {
    "LOAD_ATTR": emit_flagged("LOAD_ATTR"),
    "CALL": emit_call,
    "CALL_KW": emit_call_kw,
    "CALL_INTRINSIC_1": emit_same("CALL_INTRINSIC_1"),
    "CALL_INTRINSIC_2": emit_same("CALL_INTRINSIC_2"),
    "UNARY_POSITIVE": emit_intrinsic("INTRINSIC_UNARY_POSITIVE"),
    "LIST_TO_TUPLE": emit_intrinsic("INTRINSIC_LIST_TO_TUPLE"),
    **{
        f"POP_JUMP_IF_{test}": emit_same(f"POP_JUMP_IF_{test}")
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

VERSION = replace(
    py311.VERSION,
    rules=RULES,
    internal=INTERNAL,
    exhausted={},
    emit=EMITTERS,
    loop_end=("END_FOR",),
    checked_local="LOAD_FAST_CHECK",
    jump_effects={"FOR_ITER": 1, "SEND": 0},
    fall_effects={"FOR_ITER": 1, "SEND": 0, "RETURN_GENERATOR": 1},
    not_resumable=frozenset({"END_FOR"}),
)
