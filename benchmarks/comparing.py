"""Two runs: what has become worse. Counters compare exactly; a ratio only when its interval, the threshold and the noise say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WORSE_WHEN_MORE = ("graphs", "compiles", "breaks", "recompiles", "skipped", "guards")
CALLS_TOLERANCE = 0.005  # of the calls per compile: they repeat to within one or two


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one workload that differs. `worse`: it is a regression."""

    workload: str
    figure: str
    before: float
    after: float
    worse: bool

    def __str__(self) -> str:
        moved = f"{self.before:g} -> {self.after:g}"
        by = f" ({self.after / self.before - 1:+.1%})" if self.before else ""
        return f"{'REGRESSION' if self.worse else 'better'}  {self.workload}: {self.figure} {moved}{by}"


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


def _ratios(old: dict[str, Any], row: dict[str, Any], threshold: float) -> list[Change]:
    a, b = old.get("warm", {}), row.get("warm", {})
    if "eager" not in a or "eager" not in b:
        return []
    noise = max(a.get("floor", 0.0), b.get("floor", 0.0))
    before, after = a["eager"], b["eager"]
    effect = after["value"] / before["value"] - 1
    if abs(effect) <= max(threshold, noise):
        return []
    apart = after["low"] > before["high"] if effect > 0 else after["high"] < before["low"]
    return (
        [Change(row["name"], "warm call over eager", before["value"], after["value"], effect > 0)]
        if apart
        else []
    )
