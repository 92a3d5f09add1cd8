"""A function made in a loop holds a number that changes. Fixed: it holds a tensor."""

import sys

import torch

import minidynamo


@minidynamo.optimize("eager")
def apply(x, op):
    return op(x) + 1


def shift(k):
    return lambda y: y * k


def main(fixed: bool) -> torch.Tensor:
    x = torch.ones(4)
    for k in range(1, 5):
        x = apply(x, shift(torch.tensor(k) if fixed else k))
    return x


if __name__ == "__main__":
    main(fixed="--fixed" in sys.argv)
