"""The shape of a version's row, and the lift rules that all versions share.

A lift rule turns one original instruction into canonical steps: `rule(arg, operands) -> ((opname, arg),
...)`. A jump's step carries the byte offset it goes to. A rule may return `PREFIX`: the instruction belongs
to the next one, which then begins here.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

Step = tuple[str, Any]
Steps = tuple[Step, ...]


class Operands:
    """What arguments refer to in one code object, and the state of its decoding.

    slots     names by slot number: locals, cells, free variables
    cells     the slot numbers that hold cells
    next      byte offset after the instruction being decoded, its caches included
    kwnames   keyword names that a KW_NAMES left for the next CALL
    """

    __slots__ = ("cells", "consts", "kwnames", "names", "next", "raw", "slots")

    def __init__(self, code: CodeType, slots: tuple[str, ...], cells: frozenset[int]):
        self.raw, self.consts, self.names = code.co_code, code.co_consts, code.co_names
        self.slots, self.cells = slots, cells
        self.next = 0
        self.kwnames: tuple[str, ...] | None = None

    def following(self) -> str:
        """The name of the next instruction."""
        offset = self.next
        while self.raw[offset] == opcode.EXTENDED_ARG:
            offset += 2
        return opcode.opname[self.raw[offset]]


Rule = Callable[[int, Operands], Steps]
# Canonical argument -> instructions for the `bytecode` package, as (name, argument).
Emitter = Callable[[Any], Steps]
PREFIX: Steps = (("prefix", None),)  # compared by identity
NOTHING: Steps = ()


@dataclass(frozen=True)
class Version:
    """All facts about one CPython.

    rules       lift rule by original opname
    internal    opnames that never occur in `co_code`
    exhausted   canonical jump -> canonical instruction that the lift puts at its target, where CPython itself
                pops already
    emit        canonical opname -> its emitter; what is missing cannot be emitted
    null_first  a call's NULL lies below its callable
    loop_end    what stands at the end of a loop, where FOR_ITER jumps to
    checked_local  the instruction that loads a local which may be unbound
    jump_effects   original opname -> change of the stack's depth on jumping, where dis.stack_effect does not
                   say what happens
    fall_effects   the same for falling through
    slot_pairs     opnames whose argument is two slot numbers of 4 bits
    load_cell      the instruction that pushes the cell in a slot
    not_resumable  opnames at which the stack is not what it seems
    to_bool        the instruction that makes a bool, where jumps and `not` want one
    wants_bool     opnames that want one
    """

    rules: Mapping[str, Rule]
    internal: frozenset[str]
    exhausted: Mapping[str, str]
    emit: Mapping[str, Emitter]
    null_first: bool
    loop_end: tuple[str, ...]
    checked_local: str
    jump_effects: Mapping[str, int]
    fall_effects: Mapping[str, int]
    slot_pairs: frozenset[str]
    load_cell: str
    not_resumable: frozenset[str]
    to_bool: str | None
    wants_bool: frozenset[str]


# rule makers
def plain(name: str) -> Rule:
    """The same instruction without argument."""
    steps = ((name, None),)
    return lambda arg, operands: steps


def count(name: str) -> Rule:
    """The argument is a number."""
    return lambda arg, operands: ((name, arg),)


def const(name: str) -> Rule:
    """The argument is a constant."""
    return lambda arg, operands: ((name, operands.consts[arg]),)


def named(name: str) -> Rule:
    """The argument is in co_names."""
    return lambda arg, operands: ((name, operands.names[arg]),)


def slot(name: str) -> Rule:
    """The argument is a slot."""
    return lambda arg, operands: ((name, operands.slots[arg]),)


def forward(name: str) -> Rule:
    """A jump forwards."""
    return lambda arg, operands: ((name, operands.next + 2 * arg),)


def backward(name: str) -> Rule:
    """A jump backwards."""
    return lambda arg, operands: ((name, operands.next - 2 * arg),)


def steps(*made: Step) -> Rule:
    """Always these steps."""
    return lambda arg, operands: made


def nothing(arg: int, operands: Operands) -> Steps:
    """The instruction does nothing that matters."""
    return NOTHING


def prefix(arg: int, operands: Operands) -> Steps:
    """The instruction belongs to the next one."""
    return PREFIX


_OPERATORS = tuple(symbol for _, symbol in opcode._nb_ops)  # type: ignore[attr-defined]


def binary_op(arg: int, operands: Operands) -> Steps:
    """BINARY_OP carries its symbol; from 3.14 on subscription is one of them."""
    symbol = _OPERATORS[arg]
    return (("BINARY_SUBSCR", None),) if symbol == "[]" else (("BINARY_OP", symbol),)


def compare_op(shift: int) -> Rule:
    """COMPARE_OP keeps the operator above `shift` flag bits."""
    table = opcode.cmp_op
    return lambda arg, operands: (("COMPARE_OP", table[arg >> shift]),)


_MAKE_FUNCTION_FLAGS = (8, 4, 2, 1)  # popped in this order


def make_function(arg: int, operands: Operands) -> Steps:
    """MAKE_FUNCTION with flag bits (up to 3.12): one SET_FUNCTION_ATTRIBUTE a bit."""
    return (
        ("MAKE_FUNCTION", None),
        *(("SET_FUNCTION_ATTRIBUTE", bit) for bit in _MAKE_FUNCTION_FLAGS if arg & bit),
    )


def format_value(arg: int, operands: Operands) -> Steps:
    """FORMAT_VALUE (up to 3.12): conversion in bits 0-1, a format spec on the stack if bit 2."""
    conversion, spec = arg & 3, arg & 4
    convert: Steps = (("CONVERT_VALUE", conversion),) if conversion else ()
    if not spec:
        return (*convert, ("FORMAT_SIMPLE", None))
    if convert:
        convert = (("SWAP", 2), *convert, ("SWAP", 2))
    return (*convert, ("FORMAT_WITH_SPEC", None))


def call(arg: int, operands: Operands) -> Steps:
    """CALL; up to 3.12 a KW_NAMES before it makes it a CALL_KW."""
    names, operands.kwnames = operands.kwnames, None
    return (("CALL", arg),) if names is None else (("LOAD_CONST", names), ("CALL_KW", arg))


def kw_names(arg: int, operands: Operands) -> Steps:
    """KW_NAMES (up to 3.12) only leaves the names for the next CALL."""
    operands.kwnames = operands.consts[arg]
    return PREFIX


# Where the NULL of a call goes, next to the callable: before it up to 3.12, after it from 3.13 on.
def global_null_first(arg: int, operands: Operands) -> Steps:
    load = ("LOAD_GLOBAL", operands.names[arg >> 1])
    return (("PUSH_NULL", None), load) if arg & 1 else (load,)


def global_null_last(arg: int, operands: Operands) -> Steps:
    load = ("LOAD_GLOBAL", operands.names[arg >> 1])
    return (load, ("PUSH_NULL", None)) if arg & 1 else (load,)


NULL_BELOW: Steps = (("PUSH_NULL", None), ("SWAP", 2))
NULL_ABOVE: Steps = (("PUSH_NULL", None),)


def attribute(name: str, null: Steps, shift: int) -> Rule:
    """An attribute load whose bit 0 asks for a method ready to be called: the bound value and a NULL."""

    def rule(arg: int, operands: Operands) -> Steps:
        load = (name, operands.names[arg >> shift])
        return (load, *null) if arg & 1 else (load,)

    return rule


def without(table: Mapping[str, Any], names: str) -> dict[str, Any]:
    """An older version's table without these rows (names separated by blanks); KeyError if one is missing."""
    rest = dict(table)
    for name in names.split():
        del rest[name]
    return rest


COMMON: dict[str, Rule] = {
    **{
        name: plain(name)
        for name in """POP_TOP PUSH_NULL LOAD_BUILD_CLASS SETUP_ANNOTATIONS BINARY_SUBSCR
        STORE_SUBSCR DELETE_SUBSCR UNARY_NEGATIVE UNARY_INVERT UNARY_NOT GET_ITER
        RETURN_VALUE GET_LEN PUSH_EXC_INFO POP_EXCEPT CHECK_EXC_MATCH CHECK_EG_MATCH
        BEFORE_WITH BEFORE_ASYNC_WITH MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS
        RETURN_GENERATOR YIELD_VALUE GET_YIELD_FROM_ITER GET_AITER GET_ANEXT
        END_ASYNC_FOR""".split()
    },
    **{
        name: count(name)
        for name in """COPY SWAP COPY_FREE_VARS IS_OP CONTAINS_OP BUILD_TUPLE BUILD_LIST BUILD_SET
        BUILD_MAP BUILD_STRING BUILD_SLICE LIST_APPEND LIST_EXTEND SET_ADD SET_UPDATE
        MAP_ADD DICT_UPDATE DICT_MERGE UNPACK_SEQUENCE UNPACK_EX RERAISE RAISE_VARARGS
        MATCH_CLASS GET_AWAITABLE""".split()
    },
    **{
        name: named(name)
        for name in """STORE_GLOBAL DELETE_GLOBAL LOAD_NAME STORE_NAME DELETE_NAME STORE_ATTR
        DELETE_ATTR IMPORT_NAME IMPORT_FROM""".split()
    },
    **{
        name: slot(name)
        for name in "LOAD_FAST STORE_FAST DELETE_FAST LOAD_DEREF STORE_DEREF DELETE_DEREF MAKE_CELL".split()
    },
    "LOAD_CONST": const("LOAD_CONST"),
    "BINARY_OP": binary_op,
    "CALL": call,
    "JUMP_FORWARD": forward("JUMP"),
    "JUMP_BACKWARD": backward("JUMP"),
    "JUMP_BACKWARD_NO_INTERRUPT": backward("JUMP"),
    "FOR_ITER": forward("FOR_ITER"),
    "SEND": forward("SEND"),
    "NOP": nothing,
    "RESUME": nothing,
}


# Emission. Arguments are symbols, names and numbers; `lower` wraps them as the `bytecode` package wants them.
def emit_plain(name: str) -> Emitter:
    """One instruction without argument."""
    made = ((name, None),)
    return lambda arg: made


def emit_same(name: str) -> Emitter:
    """One instruction with the canonical argument."""
    return lambda arg: ((name, arg),)


def emit_steps(*made: Step) -> Emitter:
    """Always these instructions."""
    return lambda arg: made


def emit_flagged(name: str) -> Emitter:
    """A name whose bit 0, asking for a NULL or a method, is off."""
    return lambda arg: ((name, (False, arg)),)


EMIT: dict[str, Emitter] = {
    **{
        name: emit_plain(name)
        for name in """POP_TOP PUSH_NULL LOAD_BUILD_CLASS STORE_SUBSCR DELETE_SUBSCR UNARY_NEGATIVE
        UNARY_INVERT UNARY_NOT GET_ITER RETURN_VALUE GET_LEN PUSH_EXC_INFO POP_EXCEPT
        CHECK_EXC_MATCH CHECK_EG_MATCH MATCH_MAPPING MATCH_SEQUENCE GET_YIELD_FROM_ITER
        BINARY_SUBSCR BEFORE_WITH""".split()
    },
    "WITH_EXCEPT_START": lambda depth: (("WITH_EXCEPT_START", None),),
    **{
        name: emit_same(name)
        for name in """COPY SWAP IS_OP CONTAINS_OP BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP
        BUILD_STRING BUILD_SLICE LIST_APPEND LIST_EXTEND SET_ADD SET_UPDATE MAP_ADD
        DICT_UPDATE DICT_MERGE UNPACK_SEQUENCE UNPACK_EX RERAISE RAISE_VARARGS MATCH_CLASS COPY_FREE_VARS
        MAKE_CELL STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME
        IMPORT_FROM LOAD_FAST STORE_FAST DELETE_FAST LOAD_DEREF STORE_DEREF DELETE_DEREF
        LOAD_CLOSURE LOAD_CONST BINARY_OP COMPARE_OP FOR_ITER CALL_INTRINSIC_1
        CALL_INTRINSIC_2""".split()
    },
    "LOAD_GLOBAL": emit_flagged("LOAD_GLOBAL"),
    "JUMP": emit_same("JUMP_FORWARD"),
}


def emit_format_value(conversion: Any) -> Steps:
    """CONVERT_VALUE by FORMAT_VALUE (up to 3.12)."""
    return (("FORMAT_VALUE", conversion),)
