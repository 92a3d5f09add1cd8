"""Growth of compile time: each family is one curve, whose exponent is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.suites.micro import Stack
from benchmarks.workloads import Case, add

SIZES = (100, 300, 1000, 3000)


def defined(source: str, **names: object) -> object:
    scope: dict[str, object] = {"torch": torch, **names}
    exec(source, scope)
    return scope["f"]


PEER = {
    "operators": (100, 300),
    "unrolled iterations": (100, 300),
}  # where torch.compile is measured too: the cost of one more


def operators(n: int) -> Case:
    lines = "".join(f"    x = torch.sin(x)\n    x = x + {i}\n" for i in range(n // 2))
    return Case(defined(f"def f(x):\n{lines}    return x\n"), (torch.ones(4),), size=n)


def iterations(n: int) -> Case:
    source = f"def f(x):\n    total = 0\n    for i in range({n}):\n        total = total + i * 2\n    return x + total\n"
    return Case(defined(source), (torch.ones(4),), size=n)


def guards(n: int) -> Case:
    values = [i * 3 for i in range(n)]
    return Case(defined("def f(x, values):\n    return x + sum(values)\n"), (torch.ones(4), values), size=n)


def modules(n: int) -> Case:
    return Case(Stack(n), (torch.ones(2, 4),), size=n)


def nested_calls(n: int) -> Case:
    """`n` calls of an inlined function."""
    source = f"def g(x, k):\n    return k + 1\ndef f(x):\n    k = 0\n    for _ in range({n}):\n        k = g(x, k)\n    return x + k\n"
    return Case(defined(source), (torch.ones(4),), size=n)


FAMILIES: dict[str, tuple[Callable[[int], Case], tuple[int, ...]]] = {
    "operators": (operators, SIZES),
    "unrolled iterations": (iterations, SIZES),
    "guards": (guards, SIZES),
    "modules": (modules, SIZES),
    "nested calls": (nested_calls, SIZES),
}


def sized(family: str, make: Callable[[int], Case], size: int) -> Case:
    return replace(make(size), peer=size in PEER.get(family, ()))


for family, (make, sizes) in FAMILIES.items():
    for size in sizes:
        add(
            "scaling",
            f"{size} {family}",
            lambda family=family, make=make, size=size: sized(family, make, size),
            quick=size <= 300,
            family=family,
        )
