"""Plain Python in a process where minidynamo's hook was live and is restored, against a process that never had it.

Two processes answer requests in ABBA order; a third, as plain as the first, is the A/A control: what the layout of memory and the
seed of hashes do to two processes of one kind. `python -m benchmarks.neutrality KIND` is such a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .budget import Share
from .sampling import Effort, enough, ratio_of

ROOT = Path(__file__).resolve().parents[1]
READY = "ready"


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def words() -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for word in ("a b c d e f g " * 40).split():
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (item[1], item[0]))


def work() -> None:
    """Calls, dictionaries, sorting: what an evaluator of frames could slow down."""
    fib(15)
    words()


def leave_a_trace() -> None:
    """The hook live for a captured function, a graph break and a function without a graph; then restored."""
    import torch

    import minidynamo
    from minidynamo import _C

    @minidynamo.optimize("eager")
    def step(x: Any) -> Any:
        y = x + 1
        print(end="")
        return y * fib(5)

    minidynamo.optimize("eager")(work)()
    step(torch.ones(2))
    if _C.hook_installed():
        raise SystemExit("the hook is still installed after the last call")


def serve(kind: str) -> None:
    """Answers each line `COUNT` on standard input with the CPU nanoseconds of one call over so many."""
    import torch

    torch.set_num_threads(1)
    if kind == "restored":
        leave_a_trace()
    import gc

    gc.collect()
    gc.disable()
    print(READY, flush=True)
    for line in sys.stdin:
        rounds = range(int(line))
        begin = time.thread_time_ns()
        for _ in rounds:
            work()
        print((time.thread_time_ns() - begin) / len(rounds), flush=True)


class Worker:
    """A process that measures `work`."""

    def __init__(self, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.neutrality", kind],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line. Raises RuntimeError when the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the measuring process ended with exit code {self.process.wait()}")
        return line.strip()

    def seconds(self, count: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self.line()) / 1e9

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def workers(*kinds: str) -> Iterator[list[Worker]]:
    made = [Worker(kind) for kind in kinds]
    try:
        for worker in made:
            if worker.line() != READY:
                raise RuntimeError("the measuring process did not begin")
        yield made
    finally:
        for worker in made:
            worker.close()


def restored(effort: Effort, share: Share) -> dict[str, Any]:
    """The ratio of the process where the hook was to the plain one, and the A/A control of two plain ones."""
    with workers("plain", "restored", "plain") as (plain, after, twin):
        count = max(1, round(effort.sample / plain.seconds(20)))
        pairs: dict[str, list[tuple[float, float]]] = {"restored": [], "plain": []}
        while True:
            begin = share.clock()
            for name, other in (("restored", after), ("plain", twin)):
                a1, b1 = plain.seconds(count), other.seconds(count)
                b2, a2 = other.seconds(count), plain.seconds(count)
                pairs[name].append(((a1 + a2) / 2, (b1 + b2) / 2))
            if enough(pairs["restored"], effort, share.fits(share.clock() - begin)):
                break
    control = ratio_of(pairs["plain"])
    return asdict(ratio_of(pairs["restored"])) | {"floor": max(abs(control.low - 1), abs(control.high - 1))}


if __name__ == "__main__":
    serve(sys.argv[1])
