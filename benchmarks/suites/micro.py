"""Calls, guards, cache entries, graph breaks: one thing each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from benchmarks.workloads import Case, add, workload

STATIC = {"dynamic": False}  # as many entries on both sides


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape)


@workload("micro")
def x_plus_1() -> Case:
    return Case(lambda x: x + 1, (ones(4),))


@contextmanager
def without_guard_profiler() -> Iterator[None]:
    """torch.compile runs each new entry's guards some thousand times to log how long they take; here it does not."""
    from torch._dynamo import guards

    plain = guards.profile_guard_manager
    guards.profile_guard_manager = lambda *_args: 0.0
    try:
        yield
    finally:
        guards.profile_guard_manager = plain


@workload("micro", "one operator, peer without its guard profiler", measures=("cold",))
def without_profiler() -> Case:
    return Case(lambda x: x + 1, (ones(4),), peer_around=without_guard_profiler)


@workload("micro")
def x_plus_n() -> Case:
    """Compiled again for each number."""
    return Case(lambda x, n: x + n, (ones(4), 0), peer_options=STATIC, again=lambda k: (ones(4), 7 * k))


@workload("micro")
def changed_input() -> Case:
    def f(x, y):
        y.mul_(0.5).add_(x)
        return torch.sin(y)

    return Case(f, (ones(4), torch.zeros(4)))


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


def entries(count: int, rotating: bool) -> Case:
    """A function with `count` cache entries. Rotating: a call of the case goes through all of them once; else it makes as many calls
    that the entry made last fits."""

    def f(x, n):
        return x + n

    x = ones(4)

    def step(fn):
        for n in range(count):
            fn(x, n)
        numbers = range(count) if rotating else [count - 1] * count

        def calls():
            for n in numbers:
                fn(x, n)

        return calls

    return Case(f, (x, 0), step=step, accuracy=False, peer_options=STATIC, calls=count)


for count in (1, 4, 8, 16):
    plural = "y" if count == 1 else "ies"
    add(
        "micro",
        f"rotating through {count} entr{plural}",
        lambda count=count: entries(count, True),
        quick=count in (1, 8),
        cold=False,
    )
    if count > 1:
        add(
            "micro",
            f"the same of {count} entries",
            lambda count=count: entries(count, False),
            quick=count == 8,
            cold=False,
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


class Activations(torch.nn.Module):
    """`count` modules without parameters."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.ReLU() for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


for kind, made in (("linear layers", Stack), ("activations", Activations)):
    for count in (0, 10, 100, 1000):
        if count or made is Stack:
            add(
                "micro",
                f"{count} {kind}",
                lambda made=made, count=count: Case(made(count), (ones(2, 4),), peer=count < 1000),
                quick=count == 10 or (count == 100 and made is Stack),
                cold=count < 1000,
            )


@workload("micro")
def second_instance_of_a_module() -> Case:
    """The entry of the first instance fits the second: no recompilation."""
    first, second, x = Stack(3), Stack(3), ones(2, 4)

    def step(fn):
        return lambda: (fn(first, x), fn(second, x))

    return Case(lambda module, x: module(x), step=step, accuracy=False, calls=2)
