"""CPython 3.11: keyword names and PRECALL before CALL, LOAD_METHOD, jumps by direction, FOR_ITER and SEND
that pop at the end."""

from __future__ import annotations

from typing import Any

from .base import (
    COMMON,
    EMIT,
    NULL_BELOW,
    Emitter,
    Operands,
    Rule,
    Steps,
    Version,
    backward,
    compare_op,
    count,
    emit_format_value,
    emit_plain,
    emit_same,
    emit_steps,
    format_value,
    forward,
    global_null_first,
    kw_names,
    make_function,
    named,
    plain,
    prefix,
    slot,
    steps,
    without,
)


def jump_or_pop(name: str) -> Rule:
    """Jump and keep the value, or pop it."""
    return lambda arg, operands: (("COPY", 1), (name, operands.next + 2 * arg), ("POP_TOP", None))


def load_method(arg: int, operands: Operands) -> Steps:
    """LOAD_METHOD: the bound method above a NULL."""
    return (("LOAD_ATTR", operands.names[arg]), *NULL_BELOW)


def load_classderef(arg: int, operands: Operands) -> Steps:
    """LOAD_CLASSDEREF: the class namespace first, then the cell."""
    return (("LOAD_LOCALS", None), ("LOAD_FROM_DICT_OR_DEREF", operands.slots[arg]))


def call_function_ex(arg: int, operands: Operands) -> Steps:
    """CALL_FUNCTION_EX: bit 0 says that a mapping is on the stack."""
    return (("CALL_FUNCTION_EX", arg & 1),)


RULES: dict[str, Rule] = COMMON | {
    "LOAD_GLOBAL": global_null_first,
    "LOAD_METHOD": load_method,
    "LOAD_ATTR": named("LOAD_ATTR"),
    "LOAD_CLOSURE": slot("LOAD_CLOSURE"),
    "LOAD_CLASSDEREF": load_classderef,
    "LOAD_ASSERTION_ERROR": steps(("LOAD_CONST", AssertionError)),
    "BUILD_CONST_KEY_MAP": count("BUILD_CONST_KEY_MAP"),
    "UNARY_POSITIVE": plain("UNARY_POSITIVE"),
    "LIST_TO_TUPLE": plain("LIST_TO_TUPLE"),
    "COMPARE_OP": compare_op(0),
    "PRECALL": prefix,
    "KW_NAMES": kw_names,
    "CALL_FUNCTION_EX": call_function_ex,
    "MAKE_FUNCTION": make_function,
    "FORMAT_VALUE": format_value,
    "JUMP_IF_TRUE_OR_POP": jump_or_pop("POP_JUMP_IF_TRUE"),
    "JUMP_IF_FALSE_OR_POP": jump_or_pop("POP_JUMP_IF_FALSE"),
    **{
        f"POP_JUMP_{way}_IF_{test}": jump(f"POP_JUMP_IF_{test}")
        for way, jump in (("FORWARD", forward), ("BACKWARD", backward))
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
    "WITH_EXCEPT_START": steps(("WITH_EXCEPT_START", 4)),
    "ASYNC_GEN_WRAP": plain("ASYNC_GEN_WRAP"),
    "PREP_RERAISE_STAR": steps(("CALL_INTRINSIC_2", "INTRINSIC_PREP_RERAISE_STAR")),
    "IMPORT_STAR": steps(("CALL_INTRINSIC_1", "INTRINSIC_IMPORT_STAR"), ("POP_TOP", None)),
    "PRINT_EXPR": steps(("CALL_INTRINSIC_1", "INTRINSIC_PRINT"), ("POP_TOP", None)),
}


def emit_call(arg: Any) -> Steps:
    """CALL is announced by a PRECALL."""
    return (("PRECALL", arg), ("CALL", arg))


def emit_call_kw(arg: Any) -> Steps:
    """A call with keywords; `arg` is (number of arguments, names)."""
    number, names = arg
    return (("KW_NAMES", names), ("PRECALL", number), ("CALL", number))


EMITTERS: dict[str, Emitter] = without(EMIT, "CALL_INTRINSIC_1 CALL_INTRINSIC_2") | {
    "LOAD_ATTR": emit_same("LOAD_ATTR"),
    "CALL": emit_call,
    "CALL_KW": emit_call_kw,
    "CALL_FUNCTION_EX": emit_same("CALL_FUNCTION_EX"),
    "MAKE_FUNCTION": emit_same("MAKE_FUNCTION"),
    "UNARY_POSITIVE": emit_plain("UNARY_POSITIVE"),
    "LIST_TO_TUPLE": emit_plain("LIST_TO_TUPLE"),
    "CONVERT_VALUE": emit_format_value,
    "FORMAT_SIMPLE": emit_steps(("FORMAT_VALUE", 0)),
    "FORMAT_WITH_SPEC": emit_steps(("FORMAT_VALUE", 4)),
    **{
        f"POP_JUMP_IF_{test}": emit_same(f"POP_JUMP_FORWARD_IF_{test}")
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

VERSION = Version(
    rules=RULES,
    internal=frozenset({"CACHE", "EXTENDED_ARG"}),
    exhausted={"FOR_ITER": "POP_TOP", "SEND": "END_SEND"},
    emit=EMITTERS,
    null_first=True,
    loop_end=(),
    checked_local="LOAD_FAST",
    jump_effects={"FOR_ITER": -1, "SEND": -1},
    fall_effects={"FOR_ITER": 1, "SEND": 0, "RETURN_GENERATOR": 1},
    slot_pairs=frozenset(),
    load_cell="LOAD_CLOSURE",
    not_resumable=frozenset(),
    to_bool=None,
    wants_bool=frozenset(),
)
