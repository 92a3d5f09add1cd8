"""Checks on code objects that are made here, and the depth of the stack at every instruction of any code
object."""

from __future__ import annotations

import dis
import opcode
from bisect import bisect_left
from collections.abc import Iterator
from types import CodeType

from ..exc import InternalError
from .tables import parse_exception_table
from .versions import CURRENT

_STRIDES = [2] * 256
_NAMES = [""] * 256
_CACHES = opcode._inline_cache_entries  # type: ignore[attr-defined]
for _name, _number in opcode.opmap.items():
    if _number < 256:
        _NAMES[_number] = _name
        _STRIDES[_number] = 2 + 2 * (_CACHES.get(_name, 0) if isinstance(_CACHES, dict) else _CACHES[_number])
_JUMPS = frozenset(opcode.hasjrel) | frozenset(opcode.hasjabs) | frozenset(getattr(opcode, "hasjump", ()))
_BACKWARD = frozenset(number for number in _JUMPS if number < 256 and "BACKWARD" in _NAMES[number])
_ENDS = frozenset(
    number
    for number, name in enumerate(_NAMES)
    if name in ("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD")
    or name in ("JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT")
)
_HAS_ARGUMENT = [number >= opcode.HAVE_ARGUMENT for number in range(256)]
for _number in getattr(opcode, "hasarg", ()):
    if _number < 256:
        _HAS_ARGUMENT[_number] = True
_EXTENDED_ARG = opcode.EXTENDED_ARG


def decode(code: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """(offset with prefixes, offset, opcode number, argument, offset of the next instruction) of every
    instruction."""
    offset, size = 0, len(code)
    while offset < size:
        begin = offset
        number, arg = code[offset], code[offset + 1]
        while number == _EXTENDED_ARG:
            offset += 2
            number, arg = code[offset], arg << 8 | code[offset + 1]
        end = offset + _STRIDES[number]
        yield begin, offset, number, arg, end
        offset = end


def jump_target(number: int, arg: int, end: int) -> int | None:
    """Where an instruction jumps to, in bytes; None if it does not jump. `end` is the offset of the next
    instruction."""
    if number not in _JUMPS:
        return None
    return end - 2 * arg if number in _BACKWARD else end + 2 * arg


def _fail(code: CodeType, offset: int, text: str) -> InternalError:
    return InternalError(
        f"{code.co_filename}:{code.co_firstlineno}: code for {code.co_qualname} is wrong at byte {offset}: "
        f"{text}"
    )


def stack_depths(code: CodeType) -> dict[int, int]:
    """The depth of the stack before every reachable instruction, by the offset at which it begins (prefixes
    included).

    Raises InternalError if depths disagree or are negative, if a jump or an exception entry leads into the
    middle of an instruction, or if the end can be fallen off.
    """
    depths, _ = _flow(code)
    return depths


def _flow(code: CodeType) -> tuple[dict[int, int], int]:
    instructions = {
        begin: (offset, number, arg, end) for begin, offset, number, arg, end in decode(code.co_code)
    }
    depths: dict[int, int] = {}
    deepest = 0
    work = [(0, 0)]
    entries = parse_exception_table(code.co_exceptiontable)
    pending = list(entries)
    while work:
        begin, depth = work.pop()
        while True:
            row = instructions.get(begin)
            if row is None:
                raise _fail(code, begin, "no instruction begins here")
            if depth < 0:
                raise _fail(code, begin, "the stack's depth is negative")
            known = depths.get(begin)
            if known is not None:
                if known != depth:
                    raise _fail(code, begin, f"the stack is {known} and {depth} deep")
                break
            depths[begin] = depth
            _, number, arg, end = row
            oparg = arg if _HAS_ARGUMENT[number] else None
            name = _NAMES[number]
            target = jump_target(number, arg, end)
            if target is not None:
                effect = CURRENT.jump_effects.get(name)
                if effect is None:
                    effect = dis.stack_effect(number, oparg, jump=True)
                deepest = max(deepest, depth + effect)
                work.append((target, depth + effect))
            effect = CURRENT.fall_effects.get(name)
            depth += dis.stack_effect(number, oparg, jump=False) if effect is None else effect
            deepest = max(deepest, depth)
            if number in _ENDS:
                if depth < 0:
                    raise _fail(code, begin, "the stack's depth is negative")
                break
            begin = end
        if not work and pending:
            rest, reached = [], sorted(depths)
            for entry in pending:
                if bisect_left(reached, entry.start) < bisect_left(reached, entry.end):
                    depth = entry.depth + entry.lasti + 1
                    deepest = max(deepest, depth)
                    work.append((entry.target, depth))
                else:
                    rest.append(entry)
            pending = rest if work else []
    return depths, deepest


def verify(code: CodeType) -> int:
    """Check a code object that was made here: depths, jumps, exception table, line table.

    Returns how deep its stack gets. Raises InternalError that says what is wrong and where.
    """
    size = len(code.co_code)
    try:
        entries = parse_exception_table(code.co_exceptiontable)
    except ValueError as error:
        raise _fail(code, 0, str(error)) from None
    depths, deepest = _flow(code)
    if deepest > code.co_stacksize:
        raise _fail(code, 0, f"co_stacksize is {code.co_stacksize}, needed are {deepest}")
    last, reached = 0, sorted(depths)
    for entry in entries:
        if not last <= entry.start < entry.end <= size:
            raise _fail(code, entry.start, "the exception table's entries are out of order")
        last = entry.end
        for offset in reached[bisect_left(reached, entry.start) : bisect_left(reached, entry.end)]:
            if depths[offset] < entry.depth:
                depth = f"the stack is {depths[offset]} deep, its exception entry wants {entry.depth}"
                raise _fail(code, offset, depth)
    covered = 0
    for start, end, line in code.co_lines():
        if start != covered or line is not None and line < 0:
            raise _fail(code, start, "the line table does not cover the code")
        covered = end
    if covered != size:
        raise _fail(code, covered, "the line table does not cover the code")
    return deepest
