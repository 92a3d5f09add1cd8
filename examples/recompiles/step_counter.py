"""A module that counts its calls in a Python number. Fixed: the count is a buffer."""

import sys

import torch

import minidynamo


class Warmup(torch.nn.Module):
    def __init__(self, fixed: bool) -> None:
        super().__init__()
        if fixed:
            self.register_buffer("calls", torch.tensor(0))
        else:
            self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls / 100


def main(fixed: bool) -> torch.Tensor:
    model = minidynamo.optimize("eager")(Warmup(fixed))
    for _ in range(5):
        y = model(torch.ones(4))
    return y


if __name__ == "__main__":
    main(fixed="--fixed" in sys.argv)
