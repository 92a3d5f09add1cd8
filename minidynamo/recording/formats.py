"""A run as text for people and for other programs: one row per format."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from .chrome import chrome
from .html import html
from .model import Cause, Run
from .summary import cause_line, head, lines, plain, told_skips
from .words import Style, count, key_text, place_text, short_path, standard_style


@dataclass(frozen=True, slots=True)
class Format:
    """A row: what it is for, and the function that makes the text."""

    doc: str
    make: Callable[[Run], str]


def rich(run: Run, style: Style | None = None, by: str = "cost") -> str:
    """For people: a table, or blocks on a narrow terminal."""
    style = style or standard_style()
    return "\n".join(lines(run, Style(style.width, True, style.colour), by))


def text(run: Run, by: str = "cost") -> str:
    """One line per cause."""
    return "\n".join(plain(run, by))


def as_json(run: Run) -> dict[str, Any]:
    """The rows as plain data."""
    return {
        "schema": "minidynamo-report/1",
        "program": run.program,
        "exit": run.exit,
        "complete": run.complete,
        "compiles": len(run.compiles),
        "recompiles": len(run.avoidable),
        "seconds": round(run.seconds, 6),
        "functions": [list(key) for key in run.functions],
        "causes": [_cause(cause) for cause in run.causes],
        "graph_breaks": [asdict(row) for row in run.breaks],
        "skipped": [asdict(row) for row in told_skips(run, everything=True)],
        "limits": [asdict(row) for row in run.limits],
        "entries": [
            {
                "id": c.id,
                "pid": c.pid,
                "function": c.key[2],
                "hits": c.hits,
                "ops": c.ops,
                "seconds": c.seconds,
            }
            for c in run.compiles
        ],
        "problems": run.problems,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    row = asdict(cause)
    row["entries"] = [entry.id for entry in cause.entries]
    return row


def json_text(run: Run) -> str:
    """The rows as JSON."""
    return json.dumps(as_json(run), indent=1, default=str)


def markdown(run: Run) -> str:
    """For pull requests and issues."""
    out = [f"**minidynamo** {_md(head(run))}", ""]
    if run.causes:
        out += [
            "| # | cause | code | old → new | passed or written at | compiles | lost | fix |",
            "|---|---|---|---|---|---|---|---|",
        ]
    for c in run.causes:
        cells = (
            str(c.number),
            f"{_code(c.function)} {_code(c.name)}",
            c.code,
            f"{_code(c.old)} → {_code(c.new)}",
            f"{place_text(c.site)} {_code(c.site.text)}" if c.site is not None else "",
            str(c.compiles),
            f"{c.seconds:.2f} s",
            _code(c.fix) if c.edits else c.fix,
        )
        out.append("| " + " | ".join(map(_md, cells)) + " |")
    if run.breaks:
        out += ["", "| break | reason | code | calls | fix |", "|---|---|---|---|---|"]
        for b in run.breaks:
            row = (place_text(b.place, False), b.text, b.code, str(b.count), b.hint)
            out.append("| " + " | ".join(map(_md, row)) + " |")
    out += [
        f"- not compiled: {key_text(s.key)} {_code(s.key[2])}: {_md(s.text)} {s.code}"
        for s in told_skips(run)
    ]
    out += [f"- note: {_md(text)}" for text in run.problems]
    return "\n".join(out)


def _code(text: str) -> str:
    """A code span, whatever the text holds."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _md(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def github(run: Run) -> str:
    """Workflow commands that annotate the lines of a pull request."""
    out = []
    for c in run.causes:
        place = c.site or c.used
        file, line = (place.file, place.line) if place is not None else (c.key[0], c.key[1])
        message = f"{c.function} is compiled again: {c.name} {c.old} -> {c.new} ({count(c.compiles, 'compile')}); {c.fix}"
        out.append(_annotation("warning", file, line, f"{c.code} recompilation", message))
    for b in run.breaks:
        message = f"{b.function}: {b.text} ({count(b.count, 'call')}); {b.hint}"
        out.append(_annotation("notice", b.place.file, b.place.line, f"{b.code} graph break", message))
    for limit in run.limits:
        message = f"{limit.key[2]} reached the cache limit ({limit.limit})"
        out.append(_annotation("error", limit.key[0], limit.key[1], "MD115 limit", message))
    return "\n".join(out)


def _annotation(level: str, file: str, line: int, title: str, message: str) -> str:
    def value(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    def name(text: str) -> str:
        return value(text).replace(":", "%3A").replace(",", "%2C")

    return f"::{level} file={name(short_path(file))},line={line},title={name(title)}::{value(message)}"


def junit(run: Run) -> str:
    """A test case per function; a cause or a limit is a failure, a graph break is told in the output."""
    suite = ET.Element("testsuite", name="minidynamo", errors="0", skipped="0")
    failed = 0
    for key in run.functions:
        own = [c for c in run.compiles if c.key == key]
        case = ET.SubElement(
            suite,
            "testcase",
            classname=short_path(key[0]),
            name=key[2],
            file=short_path(key[0]),
            line=str(key[1]),
            time=f"{sum(c.seconds for c in own):.6f}",
        )
        causes = [c for c in run.causes if c.key == key]
        limits = [row for row in run.limits if row.key == key]
        if causes or limits:
            failed += 1
            message = f"{count(sum(c.again for c in own), 'recompilation')}"
            failure = ET.SubElement(
                case, "failure", message=message, type=causes[0].code if causes else "MD115"
            )
            failure.text = "\n".join(
                [*map(cause_line, causes), *(f"limit {row.limit} reached" for row in limits)]
            )
        broken = [b for b in run.breaks if b.place.file == key[0] and b.function == key[2]]
        if broken:
            ET.SubElement(case, "system-out").text = "\n".join(
                f"{place_text(b.place, False)} {b.code} {b.text}" for b in broken
            )
    suite.set("tests", str(len(run.functions)))
    suite.set("failures", str(failed))
    suite.set("time", f"{run.seconds:.6f}")
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode")


FORMATS: dict[str, Format] = {
    "rich": Format("a table for people", rich),
    "plain": Format("one greppable line per cause", text),
    "json": Format("the rows as JSON", json_text),
    "md": Format("Markdown", markdown),
    "html": Format("one offline file for browsers", html),
    "github": Format("annotations of a GitHub workflow", github),
    "junit": Format("JUnit XML", junit),
    "chrome": Format("a timeline for chrome://tracing and Perfetto", chrome),
}


def write(path: str, made: str) -> None:
    """To a file, or standard output for `-`. Raises OSError."""
    if path == "-":
        print(made)
        sys.stdout.flush()
        return
    with open(path, "w", encoding="utf-8") as out:
        out.write(made + "\n")
