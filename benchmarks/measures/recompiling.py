"""What happens when no entry fits: the miss, the k-th compilation, and calls after the limit."""

from __future__ import annotations

import functools
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from minidynamo import events

from ..sampling import paired
from ..workloads import Case
from .subject import Subject, compilations, compiled_by_torch, cpu_seconds, forget, limits, optimized

KTH, FEW = (1, 2, 4, 8), (1, 2)
LIMIT = 4


def recompiles(subject: Subject) -> dict[str, Any] | None:
    """Milliseconds of the first compilation and of each of the next eight (two in a quick run) for other arguments of the same
    function, the reasons built as they always are; `told_ms` with somebody listening, who gets every failure against the closest
    entry; `miss_us`: from the call to the beginning of the compilation, and from its end to the result."""
    if subject.workload.case().again is None:
        return None
    with_peer = subject.peer and subject.workload.case().peer
    ours: list[list[float]] = []
    told: list[list[float]] = []
    peers: list[list[float]] = []
    misses: list[list[float]] = []
    longest = 0.0
    kept = KTH if subject.repeats > 2 else FEW
    with limits(peer=with_peer):
        while len(ours) < 2 or (len(ours) <= subject.repeats and subject.share.fits(longest)):
            begin = time.perf_counter()
            times, around = series(subject.workload.fresh(), optimized, max(kept))
            ours.append(times)
            misses.append(around)
            with events.listen(lambda event: None):
                told.append(series(subject.workload.fresh(), optimized, max(kept))[0])
            if with_peer:
                peers.append(series(subject.workload.fresh(), compiled_by_torch, 1)[0])
            longest = time.perf_counter() - begin

    def kth(rounds: list[list[float]], scale: float) -> dict[str, float]:
        there = [k for k in kept if k < len(rounds[0])]
        return {str(k): statistics.median(row[k] for row in rounds[1:]) * scale for k in there}

    ratios = sorted(statistics.median(row[k] for k in kept) / row[0] for row in ours[1:])
    figures: dict[str, Any] = {
        "first_ms": statistics.median(row[0] for row in ours[1:]) * 1e3,
        "ms": kth(ours, 1e3),
        "told_ms": kth(told, 1e3),
        "miss_us": kth(misses, 1e6),
        "over_first": {"value": statistics.median(ratios), "low": ratios[0], "high": ratios[-1]},
        "rounds": len(ours) - 1,
    }
    if peers:
        figures["peer_first_ms"] = statistics.median(row[0] for row in peers[1:]) * 1e3
        figures["peer_ms"] = kth(peers, 1e3)
    return figures


def series(case: Case, make: Callable[[Case], Any], further: int) -> tuple[list[float], list[float]]:
    """CPU seconds of the first call and of `further` calls with other arguments, each of which compiles; the same without the compilation
    and without the call of what it made."""
    assert case.again is not None
    forget()
    fn = make(case)
    times, around = [], []
    for k in range(further + 1):
        call = functools.partial(fn, *case.again(k))
        with compilations() as made:
            times.append(cpu_seconds(call))
        around.append(max(0.0, times[-1] - sum(one.seconds for one in made) - cpu_seconds(call)))
    return times, around


def after_limit(subject: Subject) -> dict[str, Any] | None:
    """A call that fits none of four entries when four are allowed: over eager, and over the peer in the same state."""
    case = subject.workload.case()
    if case.again is None:
        return None
    again = case.again
    sides: list[tuple[str, Any]] = [("ours", optimized(case))]
    if subject.peer and case.peer:
        sides.append(("peer", compiled_by_torch(case)))
    other = again(LIMIT + 1)
    forget()
    figures: dict[str, Any] = {}
    with limits(LIMIT, "peer" in dict(sides)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fn in sides:
            for k in range(LIMIT):
                fn(*again(k))
            for _ in range(3):
                fn(*other)
            part = subject.share.part(len(sides) - len(figures))
            ratio = paired(lambda: case.fn(*other), lambda fn=fn: fn(*other), subject.effort, part)
            figures[name] = asdict(ratio) | {"us": (ratio.b - ratio.a) * 1e6}
    return figures
