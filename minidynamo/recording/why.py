"""One cause in full: what changed, the guard, the lines that used and passed it, what it cost, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from .model import Break, Cause, Compile, Run
from .reader import Unreadable
from .summary import break_text
from .words import Style, count, key_text, place_text, stages_text, underlined


def page(run: Run, cause: Cause, style: Style) -> list[str]:
    """The page of a cause."""
    return [line.rstrip() for line in _page(run, cause, style)]


def _page(run: Run, cause: Cause, style: Style) -> Iterator[str]:
    newest = cause.entries[-1] if cause.entries else None
    made = f"compile {newest.id} replaces {cause.replaced}" if newest is not None else "no entry fitted"
    title = reason_text(cause.code)
    yield style.paint(f"{cause.function} ({key_text(cause.key)})  {made}       {cause.code} {title}", "1")
    yield f"  guard     {cause.guard or '(none)'}"
    yield f"  changed   {cause.name}  {style.paint(f'{cause.old} → {cause.new}', '36')}"
    if len(set(cause.values)) > 2:
        yield f"  values    {', '.join(dict.fromkeys(cause.values))}"
    yield from _place("used", cause.used)
    words = {"passed": "passed", "written": "written", "called": "called", "made": "made"}
    yield from _place(words.get(cause.site_kind, "at"), cause.site)
    for other in cause.writers[1:]:
        yield f"            or {place_text(other, False)}  {other.text}"
    if cause.site_kind == "written":
        yield "            (possible writers)"
    entries = [c for c in run.compiles if c.key == cause.key and c.resume == (cause.site_kind == "made")]
    shown = "  ·  ".join(f"{c.id} hit {'?' if c.hits is None else c.hits}×" for c in entries[:10])
    yield f"  entries   {shown}" + ("  ·  ..." if len(entries) > 10 else "")
    yield f"  cost      {count(cause.compiles, 'compile')}, {cause.seconds * 1e3:.0f} ms ({stages_text(cause.stages)})"
    yield f"  goes on   {cause.ends}"
    calls = run.calls_of(cause.key)
    only = calls is not None and sum(c.key == cause.key for c in run.causes) == 1
    served = f"   one compile would have served all {calls} calls seen" if only else ""
    yield f"  fix       {style.paint(cause.fix, '32')}{served}"
    for edit in cause.edits:
        yield f"            - {edit['before'].strip()}    ({key_text((edit['file'], edit['line'], ''))})"
        yield f"            + {edit['after'].strip()}"
    yield f"  more      minidynamo explain {cause.code}"


def _place(name: str, place: object) -> Iterator[str]:
    lines = underlined(place)  # type: ignore[arg-type]
    at = place_text(place, False)  # type: ignore[arg-type]
    for index, line in enumerate(lines):
        yield f"  {name:<9} {at}     {line}" if index == 0 else f"  {'':<9} {' ' * len(at)}     {line}"
    if not lines and at:
        yield f"  {name:<9} {at}"


def reason_text(code: str) -> str:
    """The text of a code's row, holes as <words>."""
    import re

    from ..reasons import REASONS

    row = next((r for r in REASONS.values() if r.code == code), None)
    return re.sub(r"\{(\w+)\}", r"<\1>", row.text) if row is not None else ""


def find(run: Run, text: str) -> list[Cause]:
    """The causes that `text` names: a number, a compile id, an MD code, a function. Raises Unreadable with the nearest name."""
    found = [c for c in run.causes if text == str(c.number)]
    found = found or [c for c in run.causes if any(text == e.id for e in c.entries)]
    found = found or [c for c in run.causes if text.upper() == c.code]
    found = found or [c for c in run.causes if text in (c.function, c.function.rpartition(".")[2])]
    if found:
        return found
    names = [str(c.number) for c in run.causes]
    names += [name for c in run.causes for name in (c.function.rpartition(".")[2], c.function, c.code)]
    raise Unreadable(_unknown("cause", text, names))


def find_break(run: Run, text: str) -> Break | None:
    """The graph break with that letter."""
    return next((row for row in run.breaks if row.letter == text.upper()), None)


def break_page(row: Break) -> list[str]:
    """The lines about a graph break."""
    return [
        f"{row.function}  graph break {row.letter}       {row.code} {row.text}",
        f"  at        {place_text(row.place, False)}     {row.place.text}",
        f"  count     {count(row.count, 'call')}, {count(row.compiles, 'compile')}",
        f"  graphs    {row.before} operators before, {'?' if row.after < 0 else row.after} after",
        f"  fix       {row.hint}",
        f"  more      minidynamo explain {row.code}",
    ]


def find_compile(run: Run, text: str) -> Compile:
    """The compilation with that id (the newest of equal ones), or the newest of a function. Raises Unreadable."""
    found = [c for c in run.compiles if c.id == text or text in (c.key[2], c.key[2].rpartition(".")[2])]
    if not found:
        raise Unreadable(
            _unknown("compilation", text, [c.id for c in run.compiles] + [c.key[2] for c in run.compiles])
        )
    return found[-1]


def _unknown(what: str, text: str, names: list[str]) -> str:
    if not names:
        return f"no {what} {text!r}: the recording has none"
    near = difflib.get_close_matches(text, names, n=1)
    few = ", ".join(list(dict.fromkeys(names))[:6])
    return f"no {what} {text!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {few}")


__all__ = ["break_page", "break_text", "find", "find_break", "find_compile", "page", "reason_text"]
