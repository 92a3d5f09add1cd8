"""Does a place in the code lie in a loop?"""

from __future__ import annotations

import types

from ..pycode.canon import TERMINATORS
from ..pycode.lift import CodeIR, lift
from ..pycode.resume import is_resume_code


def in_loop(ir: CodeIR, index: int) -> bool:
    """Whether control can come back to instruction `index`. Exception handlers are not followed: an exception leaves the loop or
    is met by plain Python."""
    seen: set[int] = set()
    waiting = [index]
    while waiting:
        inst = ir.instructions[waiting.pop()]
        following = [] if inst.opname in TERMINATORS else [inst.index + 1]
        if inst.target is not None:
            following.append(inst.target.index)
        if index in following:
            return True
        waiting += [i for i in following if i not in seen]
        seen.update(following)
    return False


def resumed_at(ir: CodeIR) -> int:
    """Where the prologue of a resume code jumps to: it ends with its only jump."""
    jump = next(inst for inst in ir.instructions if inst.opname == "JUMP")
    assert jump.target is not None
    return jump.target.index


def goes_round(code: types.CodeType) -> bool:
    """Whether `code` is a resume function that goes on inside a loop, so that a later round comes to it again."""
    return is_resume_code(code) and in_loop(ir := lift(code), resumed_at(ir))
