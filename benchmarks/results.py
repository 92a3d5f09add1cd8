"""What a run leaves: a JSON document under a schema id, read back with one clear line when it is not one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .schema import SCHEMA, faults


class Unreadable(Exception):
    """A file is no benchmark run: where, what, what to do."""


def new(machine: dict[str, Any], revision: str | None, quick: bool) -> dict[str, Any]:
    """An empty run."""
    return {
        "schema": SCHEMA,
        "machine": machine,
        "revision": revision,
        "quick": quick,
        "budget": {"seconds": 0.0, "used": 0.0},
        "workloads": [],
        "scaling": [],
        "process": {},
        "goals": [],
    }


def write(document: dict[str, Any], path: Path) -> None:
    """One line per workload, so that two runs can be compared as text. Raises OSError."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(item) for item in value)
            parts.append(f"{json.dumps(key)}: [\n  {rows}\n ]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    path.write_text("{\n " + ",\n ".join(parts) + "\n}\n")


def read(path: Path) -> dict[str, Any]:
    """Raises Unreadable."""
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise Unreadable(
            f"{path}: {error.strerror}; give the JSON that `minidynamo bench -o` wrote"
        ) from error
    except ValueError as error:
        raise Unreadable(
            f"{path}: not JSON ({error}); give the JSON that `minidynamo bench -o` wrote"
        ) from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise Unreadable(
            f"{path}: schema {found!r} instead of {SCHEMA!r}; make the run again with this version"
        )
    wrong = next(faults(document), None)
    if wrong is not None:
        raise Unreadable(f"{path}: {wrong}; give the JSON as `minidynamo bench -o` wrote it")
    return document


RATIOS = ("eager", "bare", "peer")


def portable(document: dict[str, Any]) -> dict[str, Any]:
    """Exact counters and ratios only, for a baseline that is committed: no time, no machine."""
    rows = []
    for row in document["workloads"]:
        kept = {
            name: row[name]
            for name in ("name", "suite", "family", "size", "counters", "calls", "coverage")
            if name in row
        }
        warm = row.get("warm", {})
        ratios = {
            name: {k: warm[name][k] for k in ("value", "low", "high", "pairs")}
            for name in RATIOS
            if name in warm
        }
        if ratios:
            kept["warm"] = ratios | {"floor": warm["floor"]}
        if "over_peer" in row.get("cold", {}):
            kept["cold"] = {"over_peer": row["cold"]["over_peer"]}
        rows.append(kept)
    scaling = [
        {k: v for k, v in curve.items() if k not in ("ms", "ms_exponent")} for curve in document["scaling"]
    ]
    versions = {name: document["machine"][name] for name in ("python", "torch")}
    empty = new(versions, None, document["quick"])
    return empty | {"workloads": rows, "scaling": scaling}
