"""Which figures are taken of a workload. Each measure is a function of a `Subject` to plain numbers, or None: not of this workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..workloads import Workload
from .accuracy import accuracy
from .counting import calls_per_compile, counters, coverage, peer_counters
from .guarding import guards
from .recompiling import after_limit, recompiles
from .subject import Subject
from .timing import cold, warm

__all__ = ["MEASURES", "Measure", "Subject"]


def _always(_row: Workload) -> bool:
    return True


def _cold(row: Workload) -> bool:
    return row.cold


def _no_curve(row: Workload) -> bool:
    return row.suite != "scaling"


def _guarded(row: Workload) -> bool:
    return row.suite in ("micro", "models")


@dataclass(frozen=True, slots=True)
class Measure:
    """name: its key in a row; weight: its share of the time; exact: a count, the same on every machine; of: which workloads."""

    name: str
    take: Callable[[Subject], Any]
    weight: float
    exact: bool
    of: Callable[[Workload], bool]


MEASURES = (
    Measure("counters", counters, 1, True, _always),
    Measure("calls", calls_per_compile, 1, True, _cold),
    Measure("coverage", coverage, 1, True, _no_curve),
    Measure("accuracy", accuracy, 1, False, _no_curve),
    Measure("peer_counters", peer_counters, 2, False, _no_curve),
    Measure("cold", cold, 6, False, _cold),
    Measure("warm", warm, 8, False, _no_curve),
    Measure("guards", guards, 3, False, _guarded),
    Measure("recompiles", recompiles, 4, False, _no_curve),
    Measure("after_limit", after_limit, 2, False, _no_curve),
)
