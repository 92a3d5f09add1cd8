"""Which local variables are live: their value can still be read on some path.

The classic backwards data-flow analysis, on bit sets. An instruction in an exception region can go to the
handler, whose live locals count for it. Cells are not looked at: another function may read them at any time.
"""

from __future__ import annotations

from .canon import TERMINATORS
from .lift import CodeIR

READS = frozenset({"LOAD_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"})  # deleting needs a bound local


def live_locals(ir: CodeIR) -> tuple[frozenset[str], ...]:
    """The locals that are live on entry to each instruction, by index."""
    instructions = ir.instructions
    bits: dict[str, int] = {}
    for instruction in instructions:
        if instruction.opname in READS or instruction.opname == "STORE_FAST":
            bits.setdefault(instruction.arg, 1 << len(bits))
    handlers = [-1] * len(instructions)
    for region in ir.regions:
        for index in range(region.start, region.end):
            handlers[index] = region.target
    live = [0] * (len(instructions) + 1)
    changed = True
    while changed:
        changed = False
        for instruction in reversed(instructions):
            index, opname = instruction.index, instruction.opname
            now = 0 if opname in TERMINATORS else live[index + 1]
            if instruction.target is not None:
                now |= live[instruction.target.index]
            if opname == "STORE_FAST":
                now &= ~bits[instruction.arg]
            elif opname in READS:
                now |= bits[instruction.arg]
            if handlers[index] >= 0:
                now |= live[handlers[index]]
            if now != live[index]:
                live[index] = now
                changed = True
    names: dict[int, frozenset[str]] = {}
    for mask in live:
        if mask not in names:
            names[mask] = frozenset(name for name, bit in bits.items() if mask & bit)
    return tuple(names[mask] for mask in live[: len(instructions)])
