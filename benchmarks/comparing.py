"""Two runs: what has become worse. Counters compare exactly; a ratio only when its interval, the threshold and the noise say so.

A warm call is a regression when all of these hold: the 99 % interval of its change excludes none, a change of the threshold lies
within that interval or below it, and the change is larger than both runs' A/A control. So a slowdown of exactly the threshold is
found, and what may be chance is not reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

WORSE_WHEN_MORE = ("graphs", "compiles", "breaks", "recompiles", "skipped", "guards")
CALLS_TOLERANCE = 0.005  # of the calls per compile: they repeat to within one or two
WIDER = 2.576 / 1.96  # from a 95 % to a 99 % interval: many ratios are compared at once


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one workload that differs. `worse`: it is a regression. `by`: the 99 % interval of a ratio's change."""

    workload: str
    figure: str
    before: float
    after: float
    worse: bool
    by: tuple[float, float] | None = None

    def __str__(self) -> str:
        moved = f"{self.before:.4g} -> {self.after:.4g}" if self.by else f"{self.before:g} -> {self.after:g}"
        by = f" ({self.after / self.before - 1:+.1%})" if self.before else ""
        between = f", between {self.by[0]:+.1%} and {self.by[1]:+.1%}" if self.by else ""
        return (
            f"{'REGRESSION' if self.worse else 'better'}  {self.workload}: {self.figure} {moved}{by}{between}"
        )


def compare(base: dict[str, Any], new: dict[str, Any], threshold: float) -> list[Change]:
    """Every figure that differs beyond doubt, worst first. threshold: relative, for ratios (0.05 is 5 %)."""
    before = {row["name"]: row for row in base["workloads"]}
    changes: list[Change] = []
    for row in new["workloads"]:
        old = before.get(row["name"])
        if old is not None:
            changes += _counters(old, row)
            changes += _ratios(old, row, threshold)
    return sorted(changes, key=lambda c: (not c.worse, -abs(c.after - c.before) / (abs(c.before) or 1)))


def _counters(old: dict[str, Any], row: dict[str, Any]) -> list[Change]:
    name = row["name"]
    found = []
    for figure in WORSE_WHEN_MORE:
        a, b = old.get("counters", {}).get(figure), row.get("counters", {}).get(figure)
        if a is not None and b is not None and a != b:
            found.append(Change(name, figure, a, b, b > a))
    a, b = (_outside(one) for one in (old, row))
    if a is not None and b is not None and a != b:
        found.append(Change(name, "operators outside of graphs", a, b, b > a))
    a, b = old.get("calls"), row.get("calls")
    if a and b and abs(b - a) > max(2, a * CALLS_TOLERANCE):
        found.append(Change(name, "calls per compile", a, b, b > a))
    if "error" in row and "error" not in old:
        found.append(Change(name, f"fails ({row['error']})", 0, 1, True))
    if row.get("accuracy") and not row["accuracy"]["ok"]:
        found.append(
            Change(name, "error against fp64", row["accuracy"]["eager_error"], row["accuracy"]["error"], True)
        )
    return found


def _outside(row: dict[str, Any]) -> int | None:
    found = row.get("coverage")
    return None if found is None else found["total"] - found["captured"]


def _ratios(old: dict[str, Any], row: dict[str, Any], threshold: float) -> list[Change]:
    a, b = old.get("warm", {}), row.get("warm", {})
    if "eager" not in a or "eager" not in b:
        return []
    before, after = a["eager"], b["eager"]
    moved = math.log(after["value"] / before["value"])
    half = WIDER * math.hypot(_half_width(before), _half_width(after))
    by = (math.exp(moved - half) - 1, math.exp(moved + half) - 1)
    noise = max(a.get("floor", 0.0), b.get("floor", 0.0))
    if by[0] <= 0 <= by[1] or abs(math.exp(moved) - 1) <= noise:
        return []
    if max(abs(by[0]), abs(by[1])) < threshold:
        return []
    return [Change(row["name"], "warm call over eager", before["value"], after["value"], moved > 0, by)]


def _half_width(ratio: dict[str, Any]) -> float:
    """Half of the 95 % interval of the logarithm."""
    return math.log(ratio["high"] / ratio["low"]) / 2
