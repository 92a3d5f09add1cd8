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

from .budget import Share, unlimited

Call = Callable[[], object]
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is spent on one ratio: seconds a sample, pairs at least and at most, relative half-width to stop at.

    `least` yields to the share of the time budget, `FEWEST` to nothing: fewer pairs say nothing.
    """

    sample: float
    least: int
    most: int
    half_width: float


FULL = Effort(0.01, 30, 150, 0.02)
QUICK = Effort(0.003, 12, 30, 0.02)
FEWEST = 5


@dataclass(frozen=True, slots=True)
class Ratio:
    """B's time over A's: median, 95 % interval, pairs used, and the medians of both in seconds a call."""

    value: float
    low: float
    high: float
    pairs: int
    a: float
    b: float
    raw: tuple[tuple[float, float], ...] = ()  # nanoseconds of A and of B, pair by pair

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@contextmanager
def pinned() -> Iterator[None]:
    """One torch thread. To be entered before anything is compiled: the number of threads is part of what torch.compile guards."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
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


def rough_half_width(values: list[float]) -> float:
    """Half of the 95 % interval of the median by order statistics (normal approximation of the binomial): cheap enough to ask after
    each pair whether there are enough of them."""
    ordered, count = sorted(values), len(values)
    reach = 0.98 * math.sqrt(count)
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return (ordered[high] - ordered[low]) / 2


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
        tuple((round(a * 1e9, 2), round(b * 1e9, 2)) for a, b in pairs),
    )


def paired(a: Call, b: Call, effort: Effort = FULL, share: Share | None = None) -> Ratio:
    """Time of `b` over time of `a`: pairs until the half-width is small enough (`effort`) or the share of the time is used."""
    share = share or unlimited()
    with quiet():
        sample = min(effort.sample, max(0.001, share.left() / 4 / (2 * FEWEST)))
        count_a, count_b = calls_for(a, sample), calls_for(b, sample)
        pairs: list[tuple[float, float]] = []
        while True:
            begin = share.clock()
            a1, b1 = timed(a, count_a), timed(b, count_b)
            b2, a2 = timed(b, count_b), timed(a, count_a)
            pairs.append(((a1 + a2) / 2, (b1 + b2) / 2))
            if enough(pairs, effort, share.fits(share.clock() - begin)):
                return ratio_of(pairs)


def enough(pairs: list[tuple[float, float]], effort: Effort, time_left: bool) -> bool:
    """Whether no further pair is to be taken."""
    if len(pairs) < FEWEST:
        return False
    if not time_left or len(pairs) >= effort.most:
        return True
    if len(pairs) < effort.least:
        return False
    return rough_half_width([math.log(b / a) for a, b in pairs]) < effort.half_width


def floor(a: Call, again: Call, effort: Effort = FULL, share: Share | None = None) -> float:
    """The noise of this machine now: how far the ratio of two makes of one thing, or its interval, goes from 1."""
    ratio = paired(a, again, effort, share)
    return max(abs(ratio.low - 1), abs(ratio.high - 1))
