"""A branch on `.item()` breaks the graph, and the number that comes out is computed with. Fixed: torch.where."""

import sys

import torch

import minidynamo


@minidynamo.optimize("eager")
def clip(x):
    top = x.abs().max().item()
    if top > 1:
        return x / top
    return x * 1


@minidynamo.optimize("eager")
def clip_fixed(x):
    top = x.abs().max()
    return torch.where(top > 1, x / top, x * 1)


def main(fixed: bool) -> torch.Tensor:
    run = clip_fixed if fixed else clip
    return torch.stack([run(torch.arange(4.0) * n) for n in range(1, 5)])


if __name__ == "__main__":
    main(fixed="--fixed" in sys.argv)
