"""Paired, interleaved timing: what survives a noisy machine.

Two callables are timed in ABBA order, so that slow drift hits both alike. The figure is the median of the log-ratios of the
pairs with a bootstrap 95 % interval (percentile bootstrap, Efron 1979); an A/A control of the same shape is the noise floor.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Call = Callable[[], object]
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is spent on one ratio: seconds a sample, pairs at least and at most, relative half-width to stop at."""

    sample: float
    least: int
    most: int
    half_width: float


FULL = Effort(0.01, 30, 120, 0.02)
QUICK = Effort(0.003, 12, 20, 0.02)


@dataclass(frozen=True, slots=True)
class Ratio:
    """B's time over A's: median, 95 % interval, pairs used, and the medians of both in seconds a call."""

    value: float
    low: float
    high: float
    pairs: int
    a: float
    b: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection and one torch thread."""
    import torch

    threads, collecting = torch.get_num_threads(), gc.isenabled()
    torch.set_num_threads(1)
    gc.disable()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if collecting:
            gc.enable()


def timed(call: Call, count: int) -> float:
    """Seconds a call, over `count` calls."""
    clock = time.thread_time_ns  # of this thread alone: other programs on the machine take none of it
    rounds = range(count)
    start = clock()
    for _ in rounds:
        call()
    return (clock() - start) / count / 1e9


def calls_for(call: Call, seconds: float) -> int:
    """How many calls fill a sample of so many seconds."""
    call()
    count = 1
    while (spent := timed(call, count) * count) < seconds / 4 and count < 1_000_000:
        count *= 2 if spent > seconds / 100 else 8
    return max(1, round(count * seconds / max(spent, 1e-9)))


def bootstrap(values: list[float], seed: int = 0) -> tuple[float, float]:
    """95 % interval of the median by resampling; the same for the same values."""
    draw = random.Random(seed)
    count = len(values)
    medians = sorted(statistics.median(draw.choices(values, k=count)) for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]


def ratio_of(pairs: list[tuple[float, float]]) -> Ratio:
    """The ratio that pairs of (seconds of A, seconds of B) come to."""
    logs = [math.log(b / a) for a, b in pairs]
    low, high = bootstrap(logs)
    return Ratio(
        math.exp(statistics.median(logs)),
        math.exp(low),
        math.exp(high),
        len(pairs),
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
    )


def paired(a: Call, b: Call, effort: Effort = FULL) -> Ratio:
    """Time of `b` over time of `a`. Both are called once before anything is timed."""
    with quiet():
        count_a, count_b = calls_for(a, effort.sample), calls_for(b, effort.sample)
        pairs: list[tuple[float, float]] = []
        while True:
            a1, b1 = timed(a, count_a), timed(b, count_b)
            b2, a2 = timed(b, count_b), timed(a, count_a)
            pairs.append(((a1 + a2) / 2, (b1 + b2) / 2))
            if len(pairs) < effort.least or len(pairs) % 10 and len(pairs) < effort.most:
                continue
            ratio = ratio_of(pairs)
            if len(pairs) >= effort.most or ratio.half_width < effort.half_width:
                return ratio


def floor(a: Call, effort: Effort = FULL) -> float:
    """The noise of this machine now: how far a callable's ratio to itself, or its interval, goes from 1."""
    ratio = paired(a, a, effort)
    return max(abs(ratio.low - 1), abs(ratio.high - 1))
