"""One canonical instruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Instruction:
    """One instruction of the canonical set (`canon.CANON`). Compared and hashed by identity.

    opcode          row number in `canon.CANON`
    opname          name of that row
    arg             the canonical argument: a name, a constant, a count, an operator symbol such as "+"; None
                    without one
    argval          the same value, for printing
    offset          byte offset at which the ORIGINAL instruction begins (its prefixes such as EXTENDED_ARG
                    included); -1 for an instruction that the lift made up
    starts_line     the line number if the instruction is the first one of its line, else None
    is_jump_target  a jump or an exception region leads here
    target          where a jump goes
    index           position in `CodeIR.instructions`
    """

    opcode: int
    opname: str
    arg: Any = None
    argval: Any = None
    offset: int = -1
    starts_line: int | None = None
    is_jump_target: bool = False
    target: Instruction | None = field(default=None, repr=False)
    index: int = -1

    def __str__(self) -> str:
        if self.target is not None:
            return f"{self.opname} to {self.target.index}"
        return (
            self.opname
            if self.arg is None and self.opname != "LOAD_CONST"
            else f"{self.opname} {self.argval!r}"
        )
