"""Recordings from files. What is readable is used; what is not is a line in `problems`."""

from __future__ import annotations

import difflib
import glob
import json
import os
from collections.abc import Iterable, Sequence

from .schema import EVENTS, SCHEMA, Record


class Unreadable(Exception):
    """No recording could be read; the message is one line."""


def default_path() -> str:
    """Where `minidynamo run` records unless told otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "minidynamo", "last.jsonl")


def expand(patterns: Sequence[str]) -> list[str]:
    """File names: `%p` and shell patterns stand for every file that fits. Raises Unreadable for one that fits none."""
    out: list[str] = []
    for pattern in patterns:
        found = (
            sorted(glob.glob(pattern.replace("%p", "*"))) if any(c in pattern for c in "*?[%") else [pattern]
        )
        if not found:
            raise Unreadable(f"no recording {pattern!r}")
        out += found
    return out


def read(patterns: Sequence[str]) -> tuple[list[list[Record]], list[str]]:
    """(records of each recording, problems in words). Raises Unreadable when nothing can be read."""
    recordings, problems = [], []
    for name in expand(patterns):
        try:
            with open(name, encoding="utf-8", errors="replace") as lines:
                records, trouble = parse(lines)
        except OSError as error:
            raise Unreadable(f"{name}: {error.strerror or error}{_nearest(name)}") from error
        problems += [f"{name}: {text}" for text in trouble]
        if records:
            recordings.append(records)
    if not recordings:
        raise Unreadable("; ".join(problems) or "no recording")
    return recordings, problems


def _nearest(name: str) -> str:
    """`; did you mean 'a.jsonl'?`: a recording beside a file that is not there."""
    if os.path.exists(name):
        return ""
    folder, base = os.path.split(name)
    beside = [os.path.basename(path) for path in glob.glob(os.path.join(glob.escape(folder), "*.jsonl"))]
    near = difflib.get_close_matches(base, beside, n=1)
    return f"; did you mean {os.path.join(folder, near[0])!r}?" if near else ""


def parse(lines: Iterable[str]) -> tuple[list[Record], list[str]]:
    """(records, problems) of one recording. A file that is none, or of another schema, gives no records."""
    records: list[Record] = []
    problems: list[str] = []
    unknown: dict[str, int] = {}
    torn = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if number == 1 or not records:
            schema = record.get("schema") if isinstance(record, dict) else None
            if schema != SCHEMA:
                what = (
                    f"schema {schema!r}, this version reads {SCHEMA!r}"
                    if schema
                    else "not a minidynamo recording"
                )
                return [], [what]
        if not isinstance(record, dict) or "event" not in record:
            torn += 1
        elif record["event"] not in EVENTS:
            unknown[record["event"]] = unknown.get(record["event"], 0) + 1
        else:
            records.append(record)
    if not records:
        return [], ["empty"]
    if torn:
        problems.append(
            f"{torn} line{'s' * (torn > 1)} cannot be read and {'are' if torn > 1 else 'is'} left out"
        )
    if unknown:
        problems.append("records of unknown kinds are left out: " + ", ".join(sorted(unknown)))
    if records[-1]["event"] != "summary":
        problems.append("it ends early (the program is running or was killed): hits are not known")
    return records, problems
