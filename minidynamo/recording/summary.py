"""The summary of a run: a table where there is room, a block per cause where there is not, a line per cause for other programs."""

from __future__ import annotations

from collections.abc import Iterator

from .model import QUIET_SKIPS, Break, Cause, Run, Skip
from .words import TABLE_FROM, Style, count, cut, key_text, place_text, seconds_text, short_path


def head(run: Run) -> str:
    """`train.py  exit 0 · 4 functions · 11 compiles (7 avoidable) · 0.31 s compiling, 0.20 s avoidable`."""
    parts = []
    if run.exit is not None:
        parts.append(f"exit {run.exit}")
    parts.append(count(len(run.functions), "function"))
    again = run.avoidable
    compiles = count(len(run.compiles), "compile")
    parts.append(f"{compiles} ({len(again)} avoidable)" if again else compiles)
    spent = f"{seconds_text(run.seconds)} compiling"
    parts.append(f"{spent}, {seconds_text(sum(c.seconds for c in again))} avoidable" if again else spent)
    if len(run.headers) > 1:
        parts.append(count(len(run.headers), "process").replace("processs", "processes"))
    return f"{program(run)}  {' · '.join(parts)}"


def program(run: Run) -> str:
    """The script's name."""
    command = run.headers[0].get("command") if run.headers else None
    return short_path(command[0]) if command else "program"


def sorted_causes(run: Run, by: str = "cost") -> list[Cause]:
    """Causes by time lost, or by number of compilations."""
    return sorted(run.causes, key=lambda c: -c.compiles) if by == "count" else list(run.causes)


def told_skips(run: Run, everything: bool = False) -> list[Skip]:
    """Frames that are not compiled and of which the reader may want to know; a frame is told once."""
    rows = {(s.key, s.code, s.text): s for s in run.skips if everything or s.code not in QUIET_SKIPS}
    return list(rows.values())


def site_text(cause: Cause) -> str:
    """Where the value was passed or written."""
    shown = f"{place_text(cause.site)}  {cause.site.text}" if cause.site is not None else ""
    return f"possibly {shown}" if cause.site_kind == "written" and len(cause.writers) > 1 else shown


def lines(run: Run, style: Style, by: str = "cost", everything: bool = False) -> list[str]:
    """The whole summary."""
    if not style.terminal and not style.colour:
        return list(plain(run, by, everything))
    body = table(run, style, by) if style.width >= TABLE_FROM else blocks(run, style, by)
    return [
        style.paint(cut(f"minidynamo  {head(run)}", style.width), "1"),
        *body,
        *breaks(run, style),
        *skips(run, style, everything),
        *(style.paint(f"note: {text}", "33") for text in run.problems),
        *following(run, style),
    ]


def following(run: Run, style: Style) -> Iterator[str]:
    """What to ask next."""
    if run.causes or run.breaks:
        asks = ["minidynamo why 1"] if run.causes else []
        yield style.paint("next: " + " · ".join([*asks, "minidynamo report --html out.html"]), "2")


# --- a table ---------------------------------------------------------------------------------------------------------
def table(run: Run, style: Style, by: str) -> Iterator[str]:
    """One row per cause, and a second line with what becomes of it and where it is used."""
    causes = sorted_causes(run, by)
    if not causes:
        yield "no recompilations"
        return
    names = [f"{short_name(c)}  {c.name}" for c in causes]
    values = [f"{c.old} → {c.new}" for c in causes]
    left = min(max(map(len, names)), 34)
    middle = min(max(map(len, [*values, "old → new"])), 24)
    site = max(20, style.width - (4 + left + 2 + 5 + 2 + middle + 2 + 2 + 8 + 2 + 7))
    heading = f" #  {'cause':<{left + 7}}  {'old → new':<{middle}}  {'passed or written at':<{site}}  compiles  lost"
    yield style.paint(heading, "2")
    for cause, name, value in zip(causes, names, values):
        where = cut(site_text(cause), site)
        code = style.paint(cause.code, "36")
        yield (
            f"{cause.number:>2}  {cut(name, left):<{left}}  {code}  {cut(value, middle):<{middle}}  "
            f"{where:<{site}}  {cause.compiles:>8}  {seconds_text(cause.seconds)}"
        )
        used = (
            f"; used at {place_text(cause.used, False)}  {cause.used.source.strip()}"
            if cause.used is not None
            else ""
        )
        yield style.paint(cut(f"    {cause.ends}{used}", style.width), "2")
        yield style.paint(cut(f"    fix: {cause.fix}", style.width), "32")


def short_name(cause: Cause) -> str:
    """A function without the names around it."""
    return cause.function.rpartition("<locals>.")[2]


def breaks(run: Run, style: Style) -> Iterator[str]:
    """One line per place."""
    if not run.breaks:
        return
    yield style.paint(f"graph breaks: {count(len(run.breaks), 'place')}", "1")
    for row in run.breaks:
        yield cut(f" {row.letter}  {break_text(row)}", style.width)


def break_text(row: Break) -> str:
    """`train.py:15  float(tensor)  MD203  4 calls  3 | 2 operators  return the tensor`."""
    sides = f"  {row.before} | {row.after} operators" if row.after >= 0 else ""
    return f"{place_text(row.place, False)}  {row.text}  {row.code}  {count(row.count, 'call')}{sides}  {row.hint}"


def skips(run: Run, style: Style, everything: bool) -> Iterator[str]:
    """Frames that are not compiled."""
    found = told_skips(run, everything)
    if not found:
        return
    yield style.paint(f"not compiled: {count(len(found), 'frame')}", "1")
    for row in found:
        yield cut(f"    {key_text(row.key)}  {row.key[2]}  {row.text}  {row.code}  {row.hint}", style.width)


# --- a block per cause -----------------------------------------------------------------------------------------------
def blocks(run: Run, style: Style, by: str) -> Iterator[str]:
    """For narrow terminals."""
    for cause in sorted_causes(run, by):
        yield style.paint(
            cut(f"{cause.number}  {short_name(cause)}  {cause.name}  {cause.code}", style.width), "1"
        )
        rows = (
            ("change", f"{cause.old} → {cause.new}"),
            ("at", site_text(cause)),
            ("cost", f"{count(cause.compiles, 'compile')}, {seconds_text(cause.seconds)}"),
            ("ends", cause.ends),
            ("fix", cause.fix),
        )
        for name, text in rows:
            if text:
                yield cut(f"   {name:<7}{text}", style.width)


# --- a line per cause ------------------------------------------------------------------------------------------------
def plain(run: Run, by: str = "cost", everything: bool = False) -> Iterator[str]:
    """One greppable line per cause, break, limit and skipped frame."""
    for cause in sorted_causes(run, by):
        yield cause_line(cause)
    for row in run.breaks:
        yield (
            f"{place_text(row.place, False)} {row.function} {row.code} break calls={row.count} "
            f'text="{_quoted(row.text)}" fix="{_quoted(row.hint)}"'
        )
    for limit in run.limits:
        yield f'{key_text(limit.key)} {limit.key[2]} MD115 limit={limit.limit} values="{_quoted(", ".join(limit.values))}"'
    for skip in told_skips(run, everything):
        yield (
            f"{key_text(skip.key)} {skip.key[2]} {skip.code} skip count={skip.count} "
            f'text="{_quoted(skip.text)}" fix="{_quoted(skip.hint)}"'
        )
    for problem in run.problems:
        yield f"note: {problem}"


def cause_line(cause: Cause) -> str:
    """`train.py:18 train_step MD107 cfg.step 2->3 at=train.py:33 compiles=3 lost_s=0.112 fix="..."`."""
    at = f" at={place_text(cause.site)}" if cause.site is not None else ""
    old, new = (" ".join(text.split()) for text in (cause.old, cause.new))
    return (
        f"{key_text(cause.key)} {cause.function} {cause.code} {cause.name} {old}->{new}{at} "
        f'compiles={cause.compiles} lost_s={cause.seconds:.3f} fix="{_quoted(cause.fix)}"'
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
