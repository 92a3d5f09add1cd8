"""Calls, guards, cache entries, graph breaks: one thing each."""

from __future__ import annotations

import torch

from benchmarks.workloads import Case, add, workload


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape)


@workload("micro")
def x_plus_1() -> Case:
    return Case(lambda x: x + 1, (ones(4),))


def many_arguments(count: int) -> Case:
    names = [f"a{i}" for i in range(count)]
    scope: dict[str, object] = {}
    exec(f"def add({', '.join(names)}):\n    return {' + '.join(names)}\n", scope)
    return Case(scope["add"], tuple(ones(4) for _ in names))


add("micro", "10 tensor arguments", lambda: many_arguments(10))
add("micro", "50 tensor arguments", lambda: many_arguments(50), quick=False)


@workload("micro")
def ten_operators_with_keywords() -> Case:
    def f(x, *, scale=2.0, shift=None):
        for _ in range(5):
            x = x * scale
            x = x if shift is None else x + shift
        return x

    return Case(f, (ones(4),), {"shift": ones(4)})


@workload("micro")
def method_of_an_object() -> Case:
    class Scaler:
        def __init__(self) -> None:
            self.factor, self.bias = 3, ones(4)

        def apply(self, x):
            return x * self.factor + self.bias

    return Case(Scaler().apply, (ones(4),))


def breaks(count: int) -> Case:
    body = "".join("    x = x + 1\n    print(end='')\n" for _ in range(count))
    scope: dict[str, object] = {}
    exec(f"def broken(x):\n{body}    return x + 1\n", scope)
    return Case(scope["broken"], (ones(4),))


for count in (1, 5, 20):
    add(
        "micro",
        f"{count} graph break{'s' * (count > 1)}",
        lambda count=count: breaks(count),
        quick=count != 20,
    )


def entries(count: int) -> Case:
    """Calls that go through `count` cache entries in turn; one call of the case makes them all once."""

    def f(x, n):
        return x + n

    x = ones(4)

    def step(fn):
        def rotate():
            for n in range(count):
                fn(x, n)

        return rotate

    return Case(f, (x, 0), step=step, accuracy=False)


for count in (1, 4, 8):
    add(
        "micro",
        f"rotating through {count} entr{'y' if count == 1 else 'ies'}",
        lambda count=count: entries(count),
    )


class Stack(torch.nn.Module):
    """`count` modules whose parameters the graph uses."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


for count in (10, 100):
    add(
        "micro",
        f"{count} linear layers",
        lambda count=count: Case(Stack(count), (ones(2, 4),)),
        quick=count == 10,
    )
