"""How things are written in reports: places, symbolic values, tables. Text from the program is never read as
markup."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..variables.base import VariableTracker
from ..variables.constant import CONSTANT_TYPES
from ..variables.lazy import LazyVariable
from ..variables.numbers import NumberVariable
from ..variables.opaque import NullVariable

WIDTH_WITHOUT_TERMINAL = 120
LONGEST_VALUE = 32
_PLAIN_CONTAINERS = (tuple, list, range, slice)
_ROOT_WORDS = ("argument ", "global ", "builtin ")


def make_console(file: IO[str] | None = None) -> Console:
    """A console on `file` (standard output). COLUMNS and NO_COLOR count; without a terminal lines are 120
    wide."""
    out = sys.stdout if file is None else file
    wide = None if out.isatty() or "COLUMNS" in os.environ else WIDTH_WITHOUT_TERMINAL
    return Console(file=out, width=wide, markup=False, highlight=False, emoji=False)


def table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], whole: Iterable[str] = ()
) -> Table:
    """A table of `rows`; a cell is a Text or anything else by its `str`. Columns named in `whole` are not
    folded."""
    heading = Text(title, style="bold") if title else None
    made = Table(title=heading, title_justify="left", show_edge=False, pad_edge=False)
    for name in columns:
        made.add_column(Text(name), overflow="fold", no_wrap=name in whole)
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return made


def short_path(filename: str) -> str:
    """`filename` relative to the working directory where that is shorter."""
    try:
        near = os.path.relpath(filename)
    except ValueError:
        return filename
    return near if len(near) < len(filename) and not near.startswith("..") else filename


def place(filename: str, line: int | None) -> str:
    """`file:line`, as editors and terminals open it."""
    return f"{short_path(filename)}:{line}"


def value_text(value: VariableTracker) -> str:
    """A symbolic value in a few words: `lazy a` (nobody has looked at it yet), `abs_1 float32(10,)`, `-1`,
    `list of 2`."""
    while isinstance(value, LazyVariable) and value.real is not None:
        value = value.real
    if isinstance(value, LazyVariable):
        return f"lazy {source_text(value)}"
    if isinstance(value, NullVariable):
        return "NULL"
    if isinstance(value, NumberVariable):
        return f"{value.proxy.node.name} {value.kind.__name__}"
    if value.is_proxy():
        meta = value.as_meta()
        return f"{value.as_proxy().node.name} {str(meta.dtype).removeprefix('torch.')}{meta.shape_text}"
    if value.is_python_constant():
        constant = value.as_python_constant()
        if type(constant) in CONSTANT_TYPES or type(constant) in _PLAIN_CONTAINERS:
            return cut(repr(constant))
    if value.source is not None:
        return source_text(value)
    name = getattr(value, "name", None)
    if name is not None:
        return cut(name() if callable(name) else f"method {name}")
    items = getattr(value, "items", None)
    return f"{value.type_name()} of {len(items)}" if isinstance(items, list) else value.type_name()


def source_text(value: VariableTracker) -> str:
    """Where a value came from, in the user's words: `a`, `torch.abs`, `items[0]`."""
    text = value.source.describe() if value.source is not None else value.type_name()
    return cut(next((text.removeprefix(word) for word in _ROOT_WORDS if text.startswith(word)), text))


def cut(text: str) -> str:
    """`text`, or its beginning where it is long."""
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def stack_text(stack: Iterable[Any]) -> tuple[str, ...]:
    """The symbolic stack, bottom first."""
    return tuple(value_text(value) for value in stack)
