"""nopython=True: a function that cannot be one graph is refused, with the place, the reason and what to do.

Prints the message, then the rewritten function, which is one graph. Exits with 1 unless both happen.
"""

from __future__ import annotations

import sys

import torch

import minidynamo
from minidynamo.debug.show import make_console


@minidynamo.optimize("eager", nopython=True)
def flip(x, scale):
    y = x * scale
    if y.sum() < 0:
        y = -y
    return y


@minidynamo.optimize("eager", nopython=True)
def flip_in_graph(x, scale):
    y = x * scale
    return torch.where(y.sum() < 0, -y, y)


def example_args() -> tuple[torch.Tensor, float]:
    """What the functions are called with."""
    return torch.arange(-3.0, 2.0), 2.0


def main() -> int:
    console = make_console()
    args = example_args()
    try:
        flip(*args)
    except minidynamo.exc.Unsupported as refused:
        console.print(f"refused: {refused}", soft_wrap=True)
    else:
        console.print("the function was not refused")
        return 1
    result = flip_in_graph(*args)
    (entry,) = minidynamo.cache_entries(flip_in_graph)
    console.print(
        f"\nrewritten with torch.where: one graph of {entry.guarded.ops} operators, result {result}"
    )
    return 0 if torch.equal(result, flip.__wrapped__(*args)) else 1


if __name__ == "__main__":
    sys.exit(main())
