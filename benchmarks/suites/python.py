"""Pure Python inside a compiled region and outside of it: neutrality."""

from __future__ import annotations

import torch

from benchmarks.workloads import Case, workload


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@workload("python", cold=False)
def fib_of_16_in_a_compiled_region() -> Case:
    """The function has nothing to capture: it is skipped, and so are the frames below it."""
    return Case(lambda: fib(16), accuracy=False)


@workload("python", cold=False, quick=False)
def dictionary_work_in_a_compiled_region() -> Case:
    def work():
        counts: dict[str, int] = {}
        for word in ("a b c d e f g " * 40).split():
            counts[word] = counts.get(word, 0) + 1
        return sorted(counts.items(), key=lambda item: (item[1], item[0]))

    return Case(work, accuracy=False)


@workload("python")
def python_heavy_model_code() -> Case:
    """What a compiler evaluates away: configuration, dispatch, loops over small containers."""
    config = {"layers": 6, "act": "relu", "scale": [1.0, 2.0, 0.5], "flags": {"bias", "norm"}}
    table = {"relu": torch.relu, "tanh": torch.tanh}

    def forward(x):
        for index in range(config["layers"]):
            scale = config["scale"][index % len(config["scale"])]
            act = table[config.get("act", "tanh")]
            x = act(x * scale)
            if "norm" in config["flags"] and index % 2:
                x = x - 0.5
        return x

    return Case(forward, (torch.ones(4),))
