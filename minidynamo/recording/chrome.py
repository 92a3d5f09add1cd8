"""A timeline in the Trace Event Format, which chrome://tracing and Perfetto read: a slice per compilation and stage."""

from __future__ import annotations

import json
from typing import Any

from .model import Run
from .words import key_text

_ORDER = ("lift", "translate", "backend", "emit", "assemble", "guards")


def chrome(run: Run) -> str:
    """The timeline as JSON. Times are in microseconds since the recording began; names are those of the program's functions."""
    events: list[dict[str, Any]] = []
    threads: dict[tuple[int, int], int] = {}
    for header in run.headers:
        told = {"name": " ".join(header.get("command") or ["program"])}
        events.append(
            {"ph": "M", "name": "process_name", "pid": header.get("pid", 0), "tid": 0, "args": told}
        )
    for made in run.compiles:
        thread = threads.setdefault((made.pid, made.thread), len(threads))
        begin = (made.at - made.seconds) * 1e6
        common = {"pid": made.pid, "tid": thread, "ph": "X", "cat": "recompile" if made.again else "compile"}
        because = [f"{c.code} {c.name} {c.old} -> {c.new}" for c in run.causes if made in c.entries]
        details = {
            "id": made.id,
            "at": key_text(made.key),
            "operators": made.ops,
            "hits": made.hits,
            "because": because,
        }
        name = made.key[2] + (" (resumed)" if made.resume else "")
        events.append({**common, "name": name, "ts": begin, "dur": made.seconds * 1e6, "args": details})
        for stage in sorted(made.stages, key=lambda s: _ORDER.index(s) if s in _ORDER else len(_ORDER)):
            length = made.stages[stage] * 1e6
            events.append(
                {**common, "name": stage, "cat": "stage", "ts": begin, "dur": length, "args": {"id": made.id}}
            )
            begin += length
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
