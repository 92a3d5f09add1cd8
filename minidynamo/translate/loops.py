"""Does a place in the code lie in a loop?"""

from __future__ import annotations

from ..pycode.canon import TERMINATORS
from ..pycode.lift import CodeIR


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
