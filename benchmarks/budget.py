"""Time that a run may take, shared out among what is still to be done. Nothing begins when it is used up, and what goes on then ends."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

QUICK_SECONDS, FULL_SECONDS = 225.0, 2100.0  # of the 5 and 40 minutes that `make` may take with its build
COUNTERS_SECONDS = 3600.0  # counters are a gate: none may be left out on a slow machine
RESERVE = 0.05  # of the whole, for steps that take longer than their share


class Share:
    """Seconds that one measure may take. A measure asks between steps whether the next one still fits."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.begin = clock()
        self.end = self.begin + seconds

    def left(self) -> float:
        return self.end - self.clock()

    def fits(self, seconds: float = 0.0) -> bool:
        """Whether a step that takes so long ends in time."""
        return self.left() > seconds

    def part(self, of: int) -> Share:
        """The share of the next step when `of` steps, itself included, have to divide what is left."""
        return Share(max(0.0, self.left()) / of, self.clock)


class Budget:
    """`seconds` for tasks of known weights. Each gets its part of what is left: who needs less leaves more to the others."""

    def __init__(self, seconds: float, weight: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds, self.weight, self.clock = seconds, weight, clock
        self.begin = clock()

    def used(self) -> float:
        return self.clock() - self.begin

    def next(self, weight: float) -> Share | None:
        """The share of the next task; None when the budget is used up and the task may not begin."""
        left = self.seconds * (1 - RESERVE) - self.used()
        share = left * weight / self.weight if self.weight > 0 else left
        self.weight -= weight
        return Share(share, self.clock) if left > 0 else None


class TimeUp(BaseException):
    """The time of the run is used up. (No Exception: what is measured must not take it for a failure of its own.)"""


@contextlib.contextmanager
def ends_after(seconds: float) -> Iterator[None]:
    """Raises TimeUp in the middle of whatever goes on after so many seconds. In threads but the main one it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def up(*_args: Any) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again: a destructor swallows what is raised in it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def unlimited() -> Share:
    return Share(float("inf"))
