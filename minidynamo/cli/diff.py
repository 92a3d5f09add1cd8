"""`minidynamo diff A B`: what changed between two recordings, or between two entries of one (`diff 0/1 0/2`).

Imports neither torch nor the native extension. Exit codes: 0; 2 for wrong usage; 4 for what cannot be read.
"""

from __future__ import annotations

import difflib
import re
import sys

from minidynamo.cli.recordings import UNREADABLE, answer, load, reading_parser
from minidynamo.recording.model import Compile, Run
from minidynamo.recording.reader import Unreadable
from minidynamo.recording.summary import cause_line
from minidynamo.recording.why import find_compile
from minidynamo.recording.words import milliseconds, place_text

ENTRY = re.compile(r"\d+/\d+")


def run(argv: list[str]) -> int:
    """The command."""
    parser = reading_parser("diff", "What changed between two recordings, or between two entries of one.")
    parser.add_argument("a", metavar="A", help="a recording, or an entry such as 0/1")
    parser.add_argument("b", metavar="B")
    options = parser.parse_args(argv)
    entries = [bool(ENTRY.fullmatch(text)) for text in (options.a, options.b)]
    if all(entries):
        return answer("diff", options, lambda found, style: _entries(found, options.a, options.b))
    if any(entries):
        print("minidynamo diff: two recordings or two entries, not one of each", file=sys.stderr)
        return 2
    try:
        before, after = load([options.a]), load([options.b])
    except Unreadable as error:
        print(f"minidynamo diff: {error}", file=sys.stderr)
        return UNREADABLE
    print("\n".join(runs(before, after)))
    return 0


def _entries(found: Run, a: str, b: str) -> str:
    return "\n".join(entries(find_compile(found, a), find_compile(found, b)))


def entries(a: Compile, b: Compile) -> list[str]:
    """Guards and graph of two entries; what only one of them has is marked."""
    out = [f"{a.id} {a.key[2]}: {a.ops} operators, {a.hits} hits, {milliseconds(a.seconds)} ms"]
    out.append(f"{b.id} {b.key[2]}: {b.ops} operators, {b.hits} hits, {milliseconds(b.seconds)} ms")
    mine, other = ([f"{meaning}    {text}" for text, meaning in made.guards] for made in (a, b))
    changed = [line for line in difflib.ndiff(mine, other) if line[0] in "+-"]
    out += ["guards", *(f"  {line}" for line in changed)] if changed else ["guards: the same"]
    mine, other = (made.detail.get("code", "").splitlines() for made in (a, b))
    changed = [line for line in difflib.ndiff(mine, other) if line[0] in "+-"]
    return out + (["graph", *(f"  {line}" for line in changed)] if changed else ["graph: the same"])


def runs(a: Run, b: Run) -> list[str]:
    """Causes and graph breaks that went, came or stayed, and the totals."""
    old = {(c.key[2], c.code, c.name): c for c in a.causes}
    new = {(c.key[2], c.code, c.name): c for c in b.causes}
    out = [
        f"compiles {len(a.compiles)} -> {len(b.compiles)}  avoidable {len(a.avoidable)} -> {len(b.avoidable)}  "
        f"seconds {a.seconds:.2f} -> {b.seconds:.2f}  graph breaks {len(a.breaks)} -> {len(b.breaks)}"
    ]
    out += [f"- {cause_line(c)}" for key, c in old.items() if key not in new]
    out += [f"+ {cause_line(c)}" for key, c in new.items() if key not in old]
    out += [
        f"= {c.function} {c.code} {c.name} compiles {old[key].compiles} -> {c.compiles}"
        for key, c in new.items()
        if key in old
    ]
    left, right = ({(r.function, r.code, r.text): r for r in side.breaks} for side in (a, b))
    for sign, here, there in (("-", left, right), ("+", right, left)):
        gone = [row for key, row in here.items() if key not in there]
        out += [f"{sign} {place_text(r.place, False)} {r.function} {r.code} {r.text}" for r in gone]
    return out


__all__ = ["entries", "run", "runs"]
