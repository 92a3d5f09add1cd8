"""A multilayer perceptron as a function over its weights: one graph, the same values and gradients as eager.

Exits with 1 unless all of that holds.
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F

import minidynamo
from minidynamo.debug.report import report
from minidynamo.debug.show import make_console, table
from minidynamo.testing import EagerAndRecordGraphs

SIZES = (8, 32, 32, 4)
graphs = EagerAndRecordGraphs()


@minidynamo.optimize(graphs, nopython=True)
def mlp(x, layers, slope=0.1):
    for weight, bias in layers[:-1]:
        x = F.leaky_relu(F.linear(x, weight, bias), slope)
    weight, bias = layers[-1]
    return F.linear(x, weight, bias)


def make_layers() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Weights and biases that require gradients."""
    pairs = zip(SIZES, SIZES[1:], strict=False)
    return [(torch.randn(n, m, requires_grad=True), torch.zeros(n, requires_grad=True)) for m, n in pairs]


def example_args() -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
    """What the function is called with."""
    return torch.randn(16, SIZES[0]), make_layers()


def gradients(fn, x, layers) -> list[torch.Tensor]:
    """The output, and the gradient of its mean square for every weight and bias."""
    out = fn(x, layers)
    return [out, *torch.autograd.grad(out.square().mean(), [p for pair in layers for p in pair])]


def main() -> int:
    torch.manual_seed(0)
    console = make_console()
    x, layers = example_args()
    ours, eager = gradients(mlp, x, layers), gradients(mlp.__wrapped__, x, layers)
    again = gradients(mlp, torch.randn_like(x), layers)
    (graph,) = graphs.graphs
    console.print(graph.code.strip())
    (row,) = report(mlp, console)
    found = [
        ("graphs", 1, len(graphs.graphs)),
        ("operators", 5, row.ops),
        ("outputs and gradients equal to eager", len(eager), sum(map(torch.equal, ours, eager))),
        ("gradients of the second call", len(eager), len(again)),
        ("hits", 1, row.hits),
    ]
    cells = (("ok" if want == got else "WRONG", what, want, got) for what, want, got in found)
    console.rule("checks", align="left")
    console.print(table("", ("", "what", "expected", "found"), cells))
    return 0 if all(want == got for _, want, got in found) else 1


if __name__ == "__main__":
    sys.exit(main())
