"""Bytecode as text: CPython's instructions beside the canonical ones that `lift` makes of them."""

from __future__ import annotations

import dis
import linecache
import types
from dataclasses import dataclass

from ..pycode.instruction import Instruction
from ..pycode.lift import lift
from ..pycode.resume import is_resume_code, origin_offset


@dataclass(frozen=True, slots=True)
class LiftRow:
    """One original instruction and what became of it.

    line, source: set on the first instruction of a source line
    offset: byte offset; None for what the lift made up
    origin: byte offset in the original function; None in the prologue of a resume function
    """

    line: int | None
    source: str
    offset: int | None
    origin: int | None
    original: str
    canonical: tuple[str, ...]


def lift_rows(code: types.CodeType) -> list[LiftRow]:
    """The lift of `code`, instruction by instruction; what the lift made up comes last."""
    lifted = _by_offset(code)
    prologue = prologue_length(code)
    rows: list[LiftRow] = []
    last = None
    for inst in dis.get_instructions(code):
        line = inst.positions.lineno if inst.positions is not None else None
        starts = line if line != last else None
        last = line or last
        rows.append(
            LiftRow(
                starts,
                linecache.getline(code.co_filename, starts).strip() if starts else "",
                inst.offset,
                None if inst.offset < prologue else origin_offset(code, inst.offset),
                original_text(inst),
                tuple(lifted.pop(inst.offset, ())),
            )
        )
    made_up = tuple(text for group in lifted.values() for text in group)
    return rows + ([LiftRow(None, "", None, None, "(made up by lift)", made_up)] if made_up else [])


def _by_offset(code: types.CodeType) -> dict[int, list[str]]:
    """Canonical instructions by the original one that they are shown beside (-1: none). What begins at a
    prefix, such as EXTENDED_ARG, is shown beside the instruction that follows it."""
    ir = lift(code)
    shown = {index: offset for offset, index in sorted(ir.by_offset.items())}
    groups: dict[int, list[str]] = {}
    at = -1
    for inst in ir.instructions:
        at = -1 if inst.offset < 0 else shown.get(inst.index, at)
        groups.setdefault(at, []).append(canonical_text(inst))
    return groups


def canonical_text(inst: Instruction) -> str:
    """`12 LOAD_FAST 'a'`: position, name, argument."""
    shown = f"{inst.opname} {_code_text(inst.arg)}" if isinstance(inst.arg, types.CodeType) else str(inst)
    return f"{inst.index} {shown}"


def original_text(inst: dis.Instruction) -> str:
    """`LOAD_FAST a`, as `dis` writes it; nested code objects by name."""
    shown = _code_text(inst.argval) if isinstance(inst.argval, types.CodeType) else inst.argrepr
    return f"{inst.opname} {shown}".rstrip()


def _code_text(code: types.CodeType) -> str:
    return f"<code {code.co_name}>"


def prologue_length(code: types.CodeType) -> int:
    """Bytes before the user's own bytecode: 0 unless `code` is a resume function."""
    if not is_resume_code(code):
        return 0
    return next(offset for offset in range(0, len(code.co_code), 2) if origin_offset(code, offset) == 0)


def bytecode_lines(code: types.CodeType) -> list[str]:
    """The bytecode of `code`, one instruction a line, the line number where it changes."""
    lines, last = [], None
    for inst in dis.get_instructions(code):
        line = inst.positions.lineno if inst.positions is not None else None
        shown = f"{line:>4} " if line is not None and line != last else "     "
        last = line if line is not None else last
        lines.append(f"{shown}{inst.offset:>4} {original_text(inst)}")
    return lines
