"""How compile time grows: the exponent of a power law, fitted to each family of the scaling suite."""

from __future__ import annotations

import math
from typing import Any


def exponent(points: list[tuple[float, float]]) -> float:
    """Slope of the least-squares line through (log size, log cost). Needs two sizes or more."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def curves(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One curve per family: sizes, calls per compile (exact), milliseconds, and the exponents of both."""
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("family") and "size" in row and "error" not in row:
            families.setdefault(row["family"], []).append(row)
    made = []
    for family, members in families.items():
        members.sort(key=lambda row: row["size"])
        curve: dict[str, Any] = {"family": family, "sizes": [row["size"] for row in members]}
        for name, values in (
            ("calls", [row.get("calls") for row in members]),
            ("ms", [row.get("cold", {}).get("ms") for row in members]),
        ):
            if len(members) > 1 and all(values):
                curve[name] = values
                curve[f"{name}_exponent"] = exponent(list(zip(curve["sizes"], values, strict=True)))
        made.append(curve)
    return made
