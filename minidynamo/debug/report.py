"""`report(fn)`: what was compiled of a function, why its graphs ended, how often each entry was used, and its
guards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cache import CacheEntry
from ..guards.check_fn import VALID
from .frames import begins_at, code_of, compiled_frames
from .show import make_console, place, short_path, table

LONGEST_GUARD = 92  # comments stand in one column beside guards up to this length


@dataclass(frozen=True, slots=True)
class FrameRow:
    """One cache entry as text and numbers.

    depth: 0 for the function itself, one more for each resume function on the way
    file, line: where it begins, a resume function at the line where it goes on
    exit: "return" or "break"; why, where, hint: of the break, else ""
    guards: (conjunct of the check_fn, what it means), in the order in which they are checked
    """

    depth: int
    compile_id: str
    function: str
    file: str
    line: int
    hits: int
    ops: int
    exit: str
    why: str
    where: str
    hint: str
    guards: tuple[tuple[str, str], ...]


def frame_rows(fn: Any) -> list[FrameRow]:
    """The live entries of `fn`, resume functions after what they resume. Raises TypeError unless `fn` is a
    function, method, module, optimized object or code object."""
    return [_row(depth, entry) for depth, entry in compiled_frames(fn)]


def _row(depth: int, entry: CacheEntry) -> FrameRow:
    made = entry.guarded
    code = entry.original_code
    line = made.where.line if code is None else begins_at(code)
    why, where, hint = "", "", ""
    if made.break_ is not None:
        reason, at = made.break_
        why, where, hint = str(reason), place(at.filename, at.line), reason.hint
    return FrameRow(
        depth=depth,
        compile_id=made.compile_id,
        function=made.original_name,
        file=short_path(made.where.filename),
        line=line,
        hits=entry.hits,
        ops=made.ops,
        exit="return" if made.break_ is None else "break",
        why=why,
        where=where,
        hint=hint,
        guards=guard_lines(made.check),
    )


def guard_lines(check: Any) -> tuple[tuple[str, str], ...]:
    """A CheckFn's text as one guard per line, each with its meaning in the user's words."""
    words = (f"{row.path.describe()}: {check.expected.get(row, row.kind)}" for row in check.rows)
    return ((VALID, "the objects that the entry relies on are alive"), *zip(check.parts, words, strict=True))


def frames_table(rows: Iterable[FrameRow], title: str) -> Table:
    """Which frames were compiled: resume functions are indented below what they resume."""
    cells = (
        (
            f"{'  ' * r.depth}{r.compile_id} {r.function}",
            f"line {r.line}",
            r.hits,
            r.ops,
            r.exit,
            r.why,
            r.where,
        )
        for r in rows
    )
    headings = ("entry", "begins at", "hits", "ops", "ends with", "why the graph ended", "where")
    return table(title, headings, cells, whole=("entry", "begins at", "where"))


def guards_text(guards: Iterable[tuple[str, str]]) -> Text:
    """A check_fn, one guard per line: a Python expression whose comments say what each guard means."""
    rows = list(guards)
    width = min(max(len(guard) for guard, _ in rows), LONGEST_GUARD)
    made = Text()
    for number, (guard, meaning) in enumerate(rows):
        made.append("    and " if number else "        ", style="dim")
        made.append(guard.ljust(width))
        made.append(f"  # {meaning}\n", style="dim")
    made.right_crop()
    return made


def report(fn: Any, console: Console | None = None) -> list[FrameRow]:
    """Print what is compiled of `fn`: a table of entries, what to do about each break, and every entry's
    guards.

    console: where to print (standard output). Returns the rows that were printed. Raises TypeError as
    `frame_rows`.
    """
    out = make_console() if console is None else console
    rows = frame_rows(fn)
    if not rows:
        out.print(f"{code_of(fn).co_qualname}: nothing is compiled", markup=False)
        return rows
    out.print(frames_table(rows, f"compiled frames of {rows[0].function}, {rows[0].file}"))
    for why, where, hint in dict.fromkeys((r.why, r.where, r.hint) for r in rows if r.why):
        out.print(f"break at {where}: {why}; to do: {hint}", markup=False, highlight=False)
    for row in rows:
        out.print()
        out.print(
            Text(f"guards of {row.compile_id} {row.function}, from {row.file}:{row.line}", style="bold")
        )
        out.print(guards_text(row.guards), soft_wrap=True)
    return rows
