"""The form of a run's JSON, as data, and a check of a document against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SCHEMA = "minidynamo-bench/2"

NUMBER = (int, float)


@dataclass(frozen=True, slots=True)
class Maybe:
    """A key that may be absent."""

    form: Any


@dataclass(frozen=True, slots=True)
class Each:
    """A list, or the values of an object whose keys are free, each of one form."""

    of: Any
    kind: type = list


RATIO = {
    "value": NUMBER, "low": NUMBER, "high": NUMBER, "pairs": int, "a": Maybe(NUMBER), "b": Maybe(NUMBER),
    "raw": Maybe(Each(Each(NUMBER))),
}  # fmt: skip
COUNTS = Each(int, dict)
NUMBERS = Each(NUMBER, dict)

WORKLOAD = {
    "name": str,
    "suite": str,
    "family": str,
    "size": Maybe(int),
    "counters": Maybe(COUNTS),
    "calls": Maybe(int),
    "coverage": Maybe({"captured": int, "total": int}),
    "peer_counters": Maybe(COUNTS),
    "accuracy": Maybe(
        {"ok": bool, "error": NUMBER, "eager_error": NUMBER, "kinds": Each(NUMBERS, dict)},
    ),
    "cold": Maybe(
        {
            "ms": Maybe(NUMBER), "low": Maybe(NUMBER), "high": Maybe(NUMBER), "rounds": Maybe(int),
            "stages": Maybe(NUMBERS), "peer_ms": Maybe(NUMBER), "over_peer": Maybe(NUMBER),
            "over_low": Maybe(NUMBER), "over_high": Maybe(NUMBER),
        }
    ),
    "warm": Maybe(
        {"eager": RATIO, "floor": NUMBER, "bare": Maybe(RATIO), "peer": Maybe(RATIO), "calls": Maybe(int)}
    ),
    "guards": Maybe({"rows": int, "ns": NUMBER, "peer_ns": Maybe(NUMBER), "over_peer": Maybe(RATIO)}),
    "recompiles": Maybe(
        {
            "first_ms": NUMBER, "ms": NUMBERS, "told_ms": NUMBERS, "miss_us": NUMBERS,
            "over_first": {"value": NUMBER, "low": NUMBER, "high": NUMBER}, "rounds": int,
            "peer_first_ms": Maybe(NUMBER), "peer_ms": Maybe(NUMBERS),
        }
    ),
    "after_limit": Maybe({"ours": RATIO | {"us": NUMBER}, "peer": Maybe(RATIO | {"us": NUMBER})}),
    "cut": Maybe(Each(str)),
    "error": Maybe(str),
    "not_run": Maybe(str),
}  # fmt: skip
CURVE = {
    "family": str, "sizes": Each(int), "calls": Maybe(Each(int)), "calls_exponent": Maybe(NUMBER),
    "ms": Maybe(Each(NUMBER)), "ms_exponent": Maybe(NUMBER),
}  # fmt: skip
KIND = {
    "kind": str, "count": int, "program": str, "value": NUMBER, "low": NUMBER, "high": NUMBER, "share": NUMBER,
}  # fmt: skip
PROCESS = {
    "kinds": Maybe(Each(KIND)),
    "memory": Maybe(Each(Each((*NUMBER, dict), dict), dict)),
    "leak": Maybe(Each(COUNTS, dict)),
    "neutrality": Maybe(RATIO | {"floor": NUMBER}),
    "start": Maybe(NUMBERS),
    "jit": Maybe(RATIO),
    "cut": Maybe(Each(str)),
    "errors": Maybe(Each(str, dict)),
    "not_run": Maybe(Each(str, dict)),
}
GOAL = {"what": str, "goal": str, "measured": str, "interval": str, "floor": str, "verdict": str, "note": str}
DOCUMENT = {
    "schema": str,
    "machine": Each((str, int, float), dict),
    "revision": (str, type(None)),
    "quick": bool,
    "budget": {"seconds": NUMBER, "used": NUMBER},
    "workloads": Each(WORKLOAD),
    "scaling": Each(CURVE),
    "process": PROCESS,
    "goals": Each(GOAL),
}


def faults(value: Any, form: Any = DOCUMENT, place: str = "document") -> Iterator[str]:
    """Where a document differs from the form, a line each."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            yield f"{place} is {name_of(type(value))} instead of an object"
            return
        for key, below in form.items():
            if key in value:
                yield from faults(
                    value[key], below.form if isinstance(below, Maybe) else below, f"{place}.{key}"
                )
            elif not isinstance(below, Maybe):
                yield f"{place}.{key} is missing"
        yield from (f"{place}.{key} is not known" for key in value if key not in form)
    elif isinstance(form, Each):
        if not isinstance(value, (list, tuple) if form.kind is list else form.kind):
            yield f"{place} is {name_of(type(value))} instead of {name_of(form.kind)}"
            return
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from faults(item, form.of, f"{place}[{key!r}]")
    elif not isinstance(value, form) or (isinstance(value, bool) and form is not bool):
        wanted = form if isinstance(form, tuple) else (form,)
        yield f"{place} is {name_of(type(value))} instead of {' or '.join(map(name_of, wanted))}"


def name_of(kind: type) -> str:
    """The JSON name of a Python type."""
    return {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}.get(
        kind, "number"
    )
