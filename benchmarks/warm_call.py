"""Overhead of a warm call over the bare graph, per program: `python benchmarks/warm_call.py [--pairs N] [--count N]`.

"bare graph" is `gm.forward` of the captured graph: the least that any front end can cost. Absolute figures belong to the machine
and the moment; the A/A line says how much of them is noise.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from paired import compare

import minidynamo
from minidynamo.testing import EagerAndRecordGraphs


def one_op(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def ten_arguments(a, b, c, d, e, f, g, h, i, j):  # type: ignore[no-untyped-def]
    return a + b + c + d + e + f + g + h + i + j


def one_break(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 2


PROGRAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "x + 1": (one_op, 1),
    "10 arguments, 9 adds": (ten_arguments, 10),
}


def repeat(fn: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[int], None]:
    def run(count: int) -> None:
        for _ in range(count):
            fn(*args)

    return run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--count", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.2f}, torch {torch.__version__}, python {sys.version.split()[0]}")
    for name, (fn, arity) in PROGRAMS.items():
        args = tuple(torch.ones(4) for _ in range(arity))
        graphs = EagerAndRecordGraphs()
        optimized = minidynamo.optimize(graphs)(fn)
        optimized(*args)
        bare = repeat(graphs.graphs[0].forward, args)
        print(f"{name:24} A/A control    {compare(bare, bare, options.count, options.pairs)}")
        print(
            f"{name:24} over bare graph{compare(bare, repeat(optimized, args), options.count, options.pairs)}"
        )
        print(
            f"{name:24} over eager     {compare(repeat(fn, args), repeat(optimized, args), options.count, options.pairs)}"
        )
    args = (torch.ones(4),)
    optimized = minidynamo.optimize("eager")(one_break)
    optimized(*args)
    print(
        f"{'1 graph break':24} over eager     {compare(repeat(one_break, args), repeat(optimized, args), options.count, options.pairs)}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
