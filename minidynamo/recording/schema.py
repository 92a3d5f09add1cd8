"""The recording's format, `minidynamo/1`: one JSON object a line.

| event | when | besides `event` |
|---|---|---|
| header | first | schema, pid, command, cwd, python, torch, minidynamo, config, time (seconds since the epoch) |
| compile | a frame was compiled | n, id, at, file, line, function, resume, ops, guards, exit, seconds, stages, backend, thread, detail |
| recompile | no entry fitted | id, at, file, line, function, closest, causes |
| graph_break | a graph ended | n, id, file, line, function, frame, code, text, hint, source |
| skip | a frame is not compiled (told once) | file, line, function, code, text, hint |
| limit | the cache limit of a frame | file, line, function, limit, guard, values, causes |
| summary | last | hits (by n), skips (by file:line:function:code), seconds, exit |

`n` numbers the compilations of a process, `id` is the one that logs show (frame/compilation). `at` is in seconds since the header.
A cause: code, name, old, new, kind, guard (in words), guard_text, expected, actual, source (guard text of the place), site, site_kind,
used, fix, edits, writers. A place: file, line, source, begin, end, text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from .callsite import Place

SCHEMA = "minidynamo/1"
EVENTS = ("header", "compile", "recompile", "graph_break", "skip", "limit", "summary")
Record = dict[str, Any]


def place_record(place: Place | None) -> Record | None:
    """A place as JSON."""
    return None if place is None else asdict(place)


def place_from(record: Record | None) -> Place | None:
    """What `place_record` made."""
    return None if record is None else Place(**record)


# --- redaction -------------------------------------------------------------------------------------------------------
def redact(record: Record) -> Record:
    """Without text of the program's: strings in values, source lines, expressions, command line, directories, code listings.
    Numbers, sizes, names of functions and variables and line numbers stay."""
    if {"begin", "end", "text"} <= record.keys():  # a place
        record = {**record, "text": ""}
    if record.get("edits"):
        record = {**record, "fix": "(a line of the program)"}
    return {key: _REDACTED.get(key, _inside)(value) for key, value in record.items()}


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return redact(value)
    if isinstance(value, list):
        return [_inside(item) for item in value]
    return value


def _gone(value: Any) -> Any:
    return [] if isinstance(value, (list, tuple)) else {} if isinstance(value, dict) else ""


def _base_name(value: Any) -> Any:
    return str(value).replace("\\", "/").rpartition("/")[2]


def _without_strings(value: Any) -> Any:
    """Text with what stands in quotes replaced; lists of such texts."""
    if isinstance(value, (list, tuple)):
        return [_without_strings(item) for item in value]
    return without_strings(value) if isinstance(value, str) else value


def without_strings(text: str) -> str:
    """`text` with the contents of its string literals replaced by `...`."""
    out: list[str] = []
    quote = ""
    escaped = False
    for char in text:
        if quote:
            if not escaped and char == quote:
                out.append(f"...{quote}")
                quote = ""
            escaped = char == "\\" and not escaped
        else:
            out.append(char)
            if char in "'\"":
                quote, escaped = char, False
    return "".join(out) + ("..." if quote else "")


_REDACTED: dict[str, Callable[[Any], Any]] = {
    "file": _base_name,
    **dict.fromkeys(("command", "cwd", "source", "detail", "edits", "writers", "config"), _gone),
    **dict.fromkeys(
        (
            "name",
            "text",
            "old",
            "new",
            "expected",
            "actual",
            "guard",
            "guard_text",
            "guards",
            "values",
            "fix",
            "exit",
        ),
        _without_strings,
    ),
}
