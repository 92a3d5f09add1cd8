"""A code object -> canonical instructions and exception regions.

Lifting changes spelling, never stack layout: at the beginning of every original instruction the canonical
stack is CPython's own, in depth and order. So a symbolic stack can be handed back to the original bytecode
there (`resume`).
"""

from __future__ import annotations

import opcode
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from inspect import CO_OPTIMIZED
from types import CodeType

from ..exc import InternalError, Unsupported
from .canon import CANON, JUMPS
from .identity import IdentityCache
from .instruction import Instruction
from .tables import parse_exception_table
from .versions import CURRENT
from .versions.base import PREFIX, Operands, Rule


@dataclass(frozen=True, slots=True)
class Region:
    """Instructions [start, end) whose exceptions go to instruction `target`: the stack is cut to `depth`, the
    number of the raising instruction is pushed if `lasti`, then the exception."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


@dataclass(frozen=True, eq=False)
class CodeIR:
    """A lifted code object. It holds no reference to the code object itself.

    instructions  in order; those made up by the lift (3.11's loop ends) come last
    regions       in order, not overlapping, in instruction indexes
    by_offset     byte offset of an original instruction, or of a prefix or no-op before it -> index of its
                  first canonical instruction
    """

    instructions: tuple[Instruction, ...]
    regions: tuple[Region, ...]
    by_offset: dict[int, int]
    _lines: tuple[int | None, ...] = field(repr=False)
    _starts: tuple[int, ...] = field(repr=False)
    _positions: list[tuple[int | None, int | None, int | None, int | None]] = field(
        default_factory=list, repr=False
    )

    def handler_at(self, index: int) -> Region | None:
        """The region that catches an exception of instruction `index`."""
        place = bisect_right(self._starts, index) - 1
        if place < 0:
            return None
        region = self.regions[place]
        return region if index < region.end else None

    def line_of(self, index: int) -> int | None:
        """The source line of instruction `index`."""
        return self._lines[index]

    def is_boundary(self, index: int) -> bool:
        """Instruction `index` is the first one of an original instruction."""
        offset = self.instructions[index].offset
        return offset >= 0 and self.by_offset[offset] == index

    def positions(self, code: CodeType, index: int) -> tuple[int | None, int | None, int | None, int | None]:
        """(line, end line, column, end column) of instruction `index`; `code` is the code object that was
        lifted."""
        if not self._positions:
            self._positions.extend(code.co_positions())
        offset = self.instructions[index].offset
        if offset < 0:
            return (self._lines[index], None, None, None)
        return self._positions[offset // 2]


_CACHES = opcode._inline_cache_entries  # type: ignore[attr-defined]
_EXTENDED_ARG = opcode.EXTENDED_ARG


def _caches_of(name: str, number: int) -> int:
    return _CACHES.get(name, 0) if isinstance(_CACHES, dict) else _CACHES[number]


def _rules() -> list[Rule | None]:
    rules: list[Rule | None] = [None] * 256
    for name, number in opcode.opmap.items():
        if number < 256:
            rules[number] = CURRENT.rules.get(name)
    return rules


def _strides() -> list[int]:
    strides = [2] * 256
    for name, number in opcode.opmap.items():
        if number < 256:
            strides[number] = 2 + 2 * _caches_of(name, number)
    return strides


RULES: list[Rule | None] = _rules()  # by opcode number
STRIDES: list[int] = _strides()  # bytes of an instruction and its caches, by opcode number
_NUMBERS = {name: row.opcode for name, row in CANON.items()}
_cache: IdentityCache[CodeIR] = IdentityCache()


def slot_names(code: CodeType) -> tuple[str, ...]:
    """The names of a frame's slots: locals, cells that are no locals, free variables."""
    local = set(code.co_varnames)
    return (*code.co_varnames, *(name for name in code.co_cellvars if name not in local), *code.co_freevars)


_aliases: IdentityCache[tuple[int, tuple[str, ...]]] = IdentityCache()


def alias_slots(code: CodeType, offset: int, names: tuple[str, ...]) -> None:
    """Say that from byte `offset` on the first slots of `code` go by `names`, its free variables being copied
    there (see `resume`)."""
    _aliases.set(code, (offset, names))


def lift(code: CodeType) -> CodeIR:
    """The canonical form of `code`. Cached by identity: later calls cost a dict look-up.

    Raises Unsupported for code in which one name means two variables, InternalError for an opcode without
    rule.
    """
    return _cache.get(code) or _cache.set(code, _lift(code))


_STOPPING = ("CALL_INTRINSIC_1", "INTRINSIC_STOPITERATION_ERROR")
_bodies: IdentityCache[CodeIR] = IdentityCache()


def lift_generator(code: CodeType) -> CodeIR:
    """The canonical form of a generator's code with the blocks that the program wrote: from 3.12 on one more, around everything, makes
    a RuntimeError of a StopIteration (PEP 479)."""
    return _bodies.get(code) or _bodies.set(code, _as_written(lift(code)))


def _as_written(ir: CodeIR) -> CodeIR:
    made = [(inst.opname, inst.arg) == _STOPPING for inst in ir.instructions]
    if not any(made):
        return ir
    regions = tuple(region for region in ir.regions if not made[region.target])
    return replace(ir, regions=regions, _starts=tuple(region.start for region in regions))


def unlift(code: CodeType) -> None:
    """Forget the canonical form of `code`: made again in no time, it is larger than all else that is kept of a small function."""
    _cache.drop(code)
    _bodies.drop(code)


def _operands(code: CodeType) -> Operands:
    slots = slot_names(code)
    if len(set(slots)) != len(slots) and code.co_flags & CO_OPTIMIZED:
        # CPython 3.12+: a comprehension's captured variable that is also a free variable of the function
        # around it.
        twice = sorted({name for name in slots if slots.count(name) > 1})
        raise Unsupported(
            f"{code.co_filename}:{code.co_firstlineno}: in {code.co_qualname} the name {twice[0]!r} is "
            f"both a comprehension's captured variable and a free variable of the function: rename one"
        )
    return Operands(code, slots, _cell_slots(code, slots))


def _cell_slots(code: CodeType, slots: tuple[str, ...]) -> frozenset[int]:
    cells = {*code.co_cellvars, *code.co_freevars}
    return frozenset(slot for slot, name in enumerate(slots) if name in cells)


def _lift(code: CodeType) -> CodeIR:
    raw = code.co_code
    operands = _operands(code)
    out: list[Instruction] = []
    lines: list[int | None] = []
    jumps: list[Instruction] = []
    by_offset: dict[int, int] = {}
    line_runs = iter(code.co_lines())
    run_end, line, last_line, starts = 0, None, None, None
    alias_from, alias_names = _aliases.get(code) or (-1, ())
    offset, size, begin, count = 0, len(raw), -1, 0
    while offset < size:
        here = offset
        number, arg = raw[offset], raw[offset + 1]
        while number == _EXTENDED_ARG:
            by_offset[offset] = count
            offset += 2
            number, arg = raw[offset], arg << 8 | raw[offset + 1]
        by_offset[here] = by_offset[offset] = count
        offset += STRIDES[number]
        operands.next = offset
        if here == alias_from:
            operands.slots, operands.cells = alias_names, _cell_slots(code, alias_names)
        rule = RULES[number]
        if rule is None:
            raise InternalError(
                f"{code.co_filename}: no lift rule for {opcode.opname[number]} in {code.co_qualname}"
            )
        made = rule(arg, operands)
        if made is PREFIX:
            if begin < 0:
                begin = here
            continue
        if begin < 0:
            begin = here
        while begin >= run_end:
            _, run_end, line = next(line_runs)
            if line is not None and line != last_line:
                starts = last_line = line
        for name, value in made:
            instruction = Instruction(_NUMBERS[name], name, value, value, begin, starts, False, None, count)
            starts = None
            out.append(instruction)
            lines.append(line)
            count += 1
            if name in JUMPS:
                jumps.append(instruction)
        begin = -1
    _link(out, lines, jumps, by_offset)
    regions = tuple(
        Region(
            by_offset[entry.start],
            by_offset.get(entry.end, count),
            by_offset[entry.target],
            entry.depth,
            entry.lasti,
        )
        for entry in parse_exception_table(code.co_exceptiontable)
    )
    for region in regions:
        out[region.target].is_jump_target = True
    return CodeIR(tuple(out), regions, by_offset, tuple(lines), tuple(region.start for region in regions))


def _link(
    out: list[Instruction], lines: list[int | None], jumps: list[Instruction], by_offset: dict[int, int]
) -> None:
    """Replace the target offsets of jumps by instructions, adding the loop ends that this CPython lacks."""
    for jump in jumps:
        target = out[by_offset[jump.arg]]
        end = CURRENT.exhausted.get(jump.opname)
        if end is not None:
            line = lines[jump.index]
            made = Instruction(_NUMBERS[end], end, index=len(out))
            onward = Instruction(_NUMBERS["JUMP"], "JUMP", index=len(out) + 1, target=target)
            target.is_jump_target = True
            out += [made, onward]
            lines += [line, line]
            target = made
        jump.arg = jump.argval = None
        jump.target = target
        target.is_jump_target = True
