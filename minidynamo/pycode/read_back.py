"""Whether an independent reader, the `bytecode` package, finds in a code object what the assembler put into it."""

from __future__ import annotations

import enum
from types import CodeType
from typing import Any

import bytecode

from ..exc import InternalError
from .assembler import LABEL, Item, Label


def read_back(code: CodeType, items: list[Item]) -> None:
    """Raises InternalError at the first instruction that is read differently from how it was written."""
    written = [(name, arg) for name, arg, _, _ in items if name != LABEL]
    read = [each for each in bytecode.Bytecode.from_code(code) if isinstance(each, bytecode.Instr)]
    if len(read) != len(written):
        raise InternalError(
            f"code of {code.co_qualname}: {len(written)} instructions written, {len(read)} read"
        )
    for (name, arg), found in zip(written, read, strict=True):
        if found.name != name or not _same(arg, found.arg):
            raise InternalError(
                f"code of {code.co_qualname}: {name} {arg!r} was written, {found.name} {found.arg!r} is read"
            )


def _same(written: Any, read: Any) -> bool:
    if isinstance(written, Label):
        return isinstance(read, bytecode.Label)
    if isinstance(read, bytecode.CellVar | bytecode.FreeVar):
        return bool(written == read.name)
    if isinstance(read, enum.IntEnum):  # of a symbol the number is from the same table
        return not isinstance(written, int) or written == int(read)
    return written is read or type(written) is type(read) and written == read or written in (None, 0)
