"""Paired, interleaved timing: what survives a noisy machine.

Two callables are timed in ABBA order, so that slow drift hits both alike; the figure is the median of the per-pair differences
(ns per call) with a bootstrap 95 % interval, beside an A/A control of the same shape, which is the noise floor.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Nanoseconds per call: medians of A and B, of B - A, its 95 % interval, and the pairs it rests on."""

    a: float
    b: float
    delta: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.delta:8.1f} ns [{self.low:.1f}, {self.high:.1f}]  (A {self.a:.0f}, B {self.b:.0f}, {self.pairs} pairs)"


def _time(run: Callable[[int], None], count: int) -> float:
    start = time.perf_counter_ns()
    run(count)
    return (time.perf_counter_ns() - start) / count


def compare(
    a: Callable[[int], None], b: Callable[[int], None], count: int = 2000, pairs: int = 40
) -> Difference:
    """Time `a(n)` against `b(n)`; each runs its subject n times. `count` calls a sample, `pairs` ABBA groups."""
    for run in (a, b):
        run(count)
    collecting = gc.isenabled()
    gc.disable()
    try:
        samples = []
        for _ in range(pairs):
            a1, b1, b2, a2 = _time(a, count), _time(b, count), _time(b, count), _time(a, count)
            samples.append(((a1 + a2) / 2, (b1 + b2) / 2))
    finally:
        if collecting:
            gc.enable()
    deltas = [y - x for x, y in samples]
    low, high = bootstrap(deltas)
    return Difference(
        statistics.median(x for x, _ in samples),
        statistics.median(y for _, y in samples),
        statistics.median(deltas),
        low,
        high,
        pairs,
    )


def bootstrap(values: list[float], resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """95 % interval of the median by resampling."""
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples)]
