"""What recording costs warm calls: the same programs with a recorder listening and without, in interleaved pairs.

    python -m benchmarks.recording [--quick]

A recorder listens to compilations; a hit is counted in C, whoever listens. So nothing is to be seen here: each ratio beside the noise
of the machine (the same program against itself), and the native counters of a call, which are exact. Exits with 1 when a ratio is
certainly above the limit, or when the counters differ.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

import minidynamo
from minidynamo.cache import stats
from minidynamo.recording.recorder import Recorder

from .sampling import FULL, QUICK, Call, Effort, Ratio, calls_for, pinned, quiet, ratio_of, timed

LIMIT = 1.03
COUNTED = 100  # calls over which native counters are compared


def one_operator() -> Call:
    f = minidynamo.optimize("eager")(lambda x: x + 1)
    x = torch.ones(8)
    return lambda: f(x)


def layers() -> Call:
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(10)))
    optimized, x = minidynamo.optimize("eager")(model), torch.ones(2, 8)
    return lambda: optimized(x)


def graph_break() -> Call:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        minidynamo.graph_break()
        return y * 2

    f, x = minidynamo.optimize("eager")(broken), torch.ones(8)
    return lambda: f(x)


def below_a_skipped_function() -> Call:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1

    def main(x: torch.Tensor) -> list[torch.Tensor]:
        minidynamo.graph_break()
        return [step(x) for _ in range(3)]

    f, x = minidynamo.optimize("eager")(main), torch.ones(8)
    return lambda: f(x)


PROGRAMS: tuple[Callable[[], Call], ...] = (one_operator, layers, graph_break, below_a_skipped_function)


@dataclass(frozen=True, slots=True)
class Cost:
    """One program: time with a recorder over time without, the same of no change at all, native counters of a call that differ, and
    records that warm calls have written (there are none)."""

    name: str
    ratio: Ratio
    noise: Ratio
    differing: dict[str, tuple[int, int]]
    records: int

    @property
    def ok(self) -> bool:
        return self.ratio.low <= LIMIT and not self.differing and self.records == 0


@contextmanager
def recording(listens: bool = True) -> Iterator[Recorder]:
    """A recorder that listens inside; with False it has begun and ended before, so that what making one does to the machine's caches
    is the same."""
    recorder = Recorder().start()
    if not listens:
        recorder.stop()
    try:
        yield recorder
    finally:
        recorder.stop()


def sample(call: Call, count: int, listens: bool) -> float:
    """Seconds a call over `count` calls, after calls that are not timed."""
    with recording(listens):
        timed(call, max(4, count // 8))
        return timed(call, count)


def pairs_of(call: Call, effort: Effort, listens: bool) -> Ratio:
    """Samples in the order off, on, on, off."""
    count = calls_for(call, effort.sample)
    found = []
    with quiet():
        for _ in range(effort.most):
            first, second, third, last = (sample(call, count, on) for on in (False, listens, listens, False))
            found.append(((first + last) / 2, (second + third) / 2))
    return ratio_of(found)


def counted(call: Call) -> dict[str, int]:
    """Native counters of warm calls."""
    before = stats()
    for _ in range(COUNTED):
        call()
    return {name: value - before[name] for name, value in stats().items()}


def cost(program: Callable[[], Call], effort: Effort) -> Cost:
    """The program is compiled while a recorder listens, as under `minidynamo run`."""
    with recording() as recorder:
        call = program()
        for _ in range(4):
            call()
        before = len(recorder.records)
        on = counted(call)
        records = len(recorder.records) - before
    off = counted(call)
    differing = {name: (off[name], on[name]) for name in off if off[name] != on[name]}
    ratio, noise = pairs_of(call, effort, True), pairs_of(call, effort, False)
    return Cost(program.__name__.replace("_", " "), ratio, noise, differing, records)


def told(row: Cost) -> str:
    ratio, noise = row.ratio, row.noise
    text = (
        f"{row.name:<26} {ratio.a * 1e6:8.3f} us/call  recording {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]  "
        f"noise {noise.value:.3f} [{noise.low:.3f}, {noise.high:.3f}]  records {row.records}"
    )
    return text + (f"  counters differ: {row.differing}" if row.differing else "  counters equal")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recording", description=__doc__.splitlines()[0]
    )  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    effort = QUICK if parser.parse_args(argv).quick else FULL
    with pinned():
        rows = [cost(program, effort) for program in PROGRAMS]
    for row in rows:
        print(told(row))
    worst = max(row.ratio.value for row in rows)
    middle = statistics.median(row.ratio.value for row in rows)
    print(f"worst {worst:.3f}, median {middle:.3f}; limit {LIMIT}")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
