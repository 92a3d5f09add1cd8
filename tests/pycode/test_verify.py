"""Verification: every way to be wrong that it knows is found."""

from __future__ import annotations

import opcode
from types import CodeType
from typing import Any

import pytest

from minidynamo.exc import InternalError
from minidynamo.pycode.lift import STRIDES
from minidynamo.pycode.tables import ExceptionEntry, build_exception_table
from minidynamo.pycode.verify import decode, jump_target, stack_depths, verify
from tests.pycode.stdlib import sample


def f(x):
    if x:
        return [x, x]
    return None


def instruction(name: str, arg: int = 0) -> bytes:
    number = opcode.opmap[name]
    return bytes((number, arg)) + bytes(STRIDES[number] - 2)


def with_code(*parts: bytes, **changes: Any) -> CodeType:
    """A code object of these instructions on one line."""
    raw = b"".join(parts)
    line = bytes((128 | 13 << 3 | len(raw) // 2 - 1, 0))
    return f.__code__.replace(co_code=raw, co_linetable=line, **changes)


RESUME, LOAD, RETURN = instruction("RESUME"), instruction("LOAD_FAST"), instruction("RETURN_VALUE")


def test_right():
    code = with_code(RESUME, LOAD, RETURN)
    assert verify(code) == 1
    assert stack_depths(code) == {0: 0, 2: 0, 4: 1}


def test_the_library_is_right():
    for code in sample()[:400]:
        assert verify(code) <= code.co_stacksize


BACK = instruction("JUMP_BACKWARD")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((RESUME, instruction("POP_TOP"), LOAD, RETURN), "negative"),
        ((RESUME, instruction("RERAISE")), "negative"),
        ((RESUME, LOAD), "no instruction begins here"),
        ((RESUME, instruction("JUMP_FORWARD", 9), LOAD, RETURN), "no instruction begins here"),
        ((RESUME, *[LOAD] * 4, RETURN), "co_stacksize is 3, needed are 4"),
        ((RESUME, LOAD, instruction("JUMP_BACKWARD", 1 + len(BACK) // 2)), "the stack is 0 and 1 deep"),
    ],
)
def test_wrong_stack(parts, text):
    with pytest.raises(InternalError, match=text):
        verify(with_code(*parts, co_stacksize=3))


def handled(*entries: ExceptionEntry) -> CodeType:
    """Two loads, a return, and a handler at byte 8."""
    table = build_exception_table(entries)
    return with_code(RESUME, LOAD, LOAD, RETURN, RETURN, co_exceptiontable=table, co_stacksize=3)


def test_right_handlers():
    assert verify(handled(ExceptionEntry(2, 4, 8, 0, False), ExceptionEntry(4, 6, 8, 0, False))) == 2


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([ExceptionEntry(2, 4, 8, 1, False)], "0 deep, its exception entry wants 1"),
        ([ExceptionEntry(4, 6, 8, 0, False), ExceptionEntry(2, 4, 8, 0, False)], "out of order"),
        ([ExceptionEntry(2, 6, 8, 0, False), ExceptionEntry(4, 6, 8, 0, False)], "out of order"),
        ([ExceptionEntry(2, 40, 8, 0, False)], "out of order"),
        ([ExceptionEntry(2, 4, 30, 0, False)], "no instruction begins here"),
    ],
)
def test_wrong_handlers(entries, text):
    with pytest.raises(InternalError, match=text):
        verify(handled(*entries))


def test_broken_tables():
    good = handled(ExceptionEntry(2, 4, 8, 0, False))
    with pytest.raises(InternalError, match="ends within an entry"):
        verify(good.replace(co_exceptiontable=good.co_exceptiontable[:-1]))
    with pytest.raises(InternalError, match="line table"):
        verify(good.replace(co_linetable=bytes((128 | 13 << 3 | 1, 0))))


def test_says_where():
    with pytest.raises(
        InternalError, match=rf"test_verify.py:{f.__code__.co_firstlineno}: code for f is wrong"
    ):
        verify(with_code(RESUME, LOAD))


def test_decode():
    """Prefixes are part of their instruction, caches too."""
    raw = instruction("EXTENDED_ARG", 1) + instruction("LOAD_FAST", 2) + instruction("LOAD_ATTR") + RETURN
    rows = [(begin, offset, opcode.opname[number], arg) for begin, offset, number, arg, _ in decode(raw)]
    behind = 4 + len(instruction("LOAD_ATTR"))
    assert rows == [(0, 2, "LOAD_FAST", 258), (4, 4, "LOAD_ATTR", 0), (behind, behind, "RETURN_VALUE", 0)]
    numbers = opcode.opmap
    assert jump_target(numbers["JUMP_FORWARD"], 3, 10) == 16
    assert jump_target(numbers["JUMP_BACKWARD"], 3, 10) == 4
    assert jump_target(numbers["POP_TOP"], 3, 10) is None
