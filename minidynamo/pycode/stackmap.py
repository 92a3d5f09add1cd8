"""What lies on the stack before each canonical instruction, as far as a resume function must know.

A map is a string with one letter for each stack value, bottom first:

    v   an ordinary value or NULL
    p   what PUSH_EXC_INFO saved: from here up an exception is being handled
    l   the number of the instruction that raised, for RERAISE
"""

from __future__ import annotations

from ..exc import InternalError
from .canon import CANON, TERMINATORS
from .lift import CodeIR

VALUE, HANDLED, LASTI = "v", "p", "l"


def _after(opname: str, arg: int, stack: str, effect: int) -> str:
    if opname == "PUSH_EXC_INFO":
        return stack[:-1] + HANDLED + VALUE
    if opname == "POP_EXCEPT":
        rest = stack[:-1]
        if stack[-1] == HANDLED:
            return rest
        place = rest.rindex(HANDLED)  # a copy was popped: the saved one is an ordinary value from here on
        return rest[:place] + VALUE + rest[place + 1 :]
    if opname == "SWAP":
        items = list(stack)
        items[-1], items[-arg] = items[-arg], items[-1]
        return "".join(items)
    return stack[:effect] if effect < 0 else stack + VALUE * effect


def stack_maps(ir: CodeIR) -> tuple[str | None, ...]:
    """The map before each instruction, by index; None where nothing leads.

    Raises InternalError if the depths of two ways to one instruction disagree.
    """
    maps: list[str | None] = [None] * len(ir.instructions)
    entered: set[int] = set()
    work: list[tuple[int, str]] = [(0, "")] if ir.instructions else []
    while work:
        index, stack = work.pop()
        while True:
            known = maps[index]
            if known is not None:
                if len(known) != len(stack):
                    raise InternalError(
                        f"{ir.instructions[index]}: the stack is {len(known)} and {len(stack)} deep"
                    )
                break
            maps[index] = stack
            instruction = ir.instructions[index]
            region = ir.handler_at(index)
            # PUSH_EXC_INFO never raises, and what it replaces is not yet what its region's depth means.
            raises = instruction.opname != "PUSH_EXC_INFO"
            if raises and region is not None and region.target not in entered:
                entered.add(region.target)
                work.append((region.target, stack[: region.depth] + LASTI * region.lasti + VALUE))
            row = CANON[instruction.opname]
            if instruction.target is not None:
                jumped = _after(instruction.opname, 0, stack, row.effect(instruction.arg, jump=True))
                work.append((instruction.target.index, jumped))
            if instruction.opname in TERMINATORS:
                break
            stack = _after(instruction.opname, instruction.arg, stack, row.effect(instruction.arg))
            index += 1
            if index == len(maps):
                break
    return tuple(maps)
