"""Every layer of a model has its own number, and one function is compiled for each. Fixed: the number is a buffer."""

import sys

import torch

import minidynamo


class Layer(torch.nn.Module):
    def __init__(self, scale: float, fixed: bool) -> None:
        super().__init__()
        if fixed:
            self.register_buffer("scale", torch.tensor(scale))
        else:
            self.scale = scale

    @minidynamo.optimize("eager")
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * self.scale


def main(fixed: bool) -> torch.Tensor:
    layers = [Layer(1.0 + n, fixed) for n in range(5)]
    x = torch.ones(4)
    for layer in layers:
        x = layer(x)
    return x


if __name__ == "__main__":
    main(fixed="--fixed" in sys.argv)
