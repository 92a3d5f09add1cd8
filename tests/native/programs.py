"""Guard programs by the names of their instructions: `program(("LOAD_LOCAL", 0), ("CHECK_LENGTH", 0, 2), arguments=1)`."""

from __future__ import annotations

import re
import weakref
from pathlib import Path
from typing import Any

from tests.native.conftest import C

TABLE = (Path(__file__).parents[2] / "minidynamo/guards/guard_ops.def").read_text()
ROWS = re.findall(r"^GUARD_OP\((\w+), (\w+), (\w+),", TABLE, re.MULTILINE)
OPCODES = {name: number for number, (name, _, _) in enumerate(ROWS)}
INPUTS = {name: register for name, register, _ in ROWS}
LITERAL, EQUAL, OBJECT, WEAK = range(4)


def weak(obj: object) -> tuple[int, Any]:
    return WEAK, weakref.ref(obj)


def instructions(*code: tuple[Any, ...]) -> tuple[tuple[int, int, Any], ...]:
    """(name, operand) for instructions without a register, (name, register, operand) for the others."""
    out = []
    for name, *rest in code:
        register = rest.pop(0) if INPUTS[name] == "REG" else -1
        out.append((OPCODES[name], register, rest[0] if rest else None))
    return tuple(out)


def program(*code: tuple[Any, ...], arguments: int = 1, **options: Any) -> Any:
    return C.GuardProgram(instructions(*code), arguments, **options)
