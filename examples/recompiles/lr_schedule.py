"""A learning rate that changes every step: a float argument is part of the guards. Fixed: pass a tensor."""

import sys

import torch

import minidynamo


@minidynamo.optimize("eager")
def train_step(w, grad, lr):
    return w - lr * grad


def main(fixed: bool) -> torch.Tensor:
    w, grad = torch.ones(8), torch.full((8,), 0.5)
    for epoch in range(5):
        lr = 0.1 * 0.5**epoch
        if fixed:
            w = train_step(w, grad, torch.tensor(lr))
        else:
            w = train_step(w, grad, lr)
    return w


if __name__ == "__main__":
    main(fixed="--fixed" in sys.argv)
