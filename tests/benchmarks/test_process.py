"""What an entry costs and what a reset leaves: exact counts, so that growth is seen."""

from __future__ import annotations

import gc
import re
import weakref

import pytest
import torch

import minidynamo
from benchmarks import process
from minidynamo.backends.eager import eager

PROGRAMS = """
def one_operator(x):
    return x + {n}

def a_break(x):
    y = x + {n}
    minidynamo.graph_break()
    return y * 2

def a_loop_of_breaks(x):
    for k in range(3):
        x = x + k
        minidynamo.graph_break()
    return x

def a_branch(x):
    if x.sum() > {n}:
        return x + 1
    return x - 1

def an_effect(x, seen=[]):
    seen.append({n})
    return x + len(seen)

def a_module(x):
    return layers(x) + {n}

def a_closure(x):
    total = x + {n}
    def add(y):
        nonlocal total
        total = total + y
        return total
    return add(x)

def a_handler(x):
    try:
        raise ValueError({n})
    except ValueError as error:
        return x + 1, str(error)

def skipped(x):
    return [{n}]
"""
NAMES = re.findall(r"^def (\w+)", PROGRAMS, re.MULTILINE)


@pytest.fixture(autouse=True)
def as_users_run_it():
    with minidynamo.config.patch(guards="native", verify=False):
        yield


@pytest.mark.slow
def test_an_entry_is_small():
    spent = process.memory("minidynamo", 25)
    assert spent["objects a frame"] <= 80 and spent["KiB a frame"] <= 15, spent
    assert spent["objects a further entry"] <= 75 and spent["KiB a further entry"] <= 15, spent


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [20, 200])
def test_rounds_of_compile_and_reset_leave_nothing(rounds):
    """In a process of its own, where nothing else makes or drops objects."""
    assert process.in_fresh_process("leak", "minidynamo", rounds)["objects"] <= 0


def _forward(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]):
    return gm.forward


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", _forward], ids=["eager", "own"])
@pytest.mark.parametrize("name", NAMES)
def test_no_kind_of_program_leaves_anything(name, backend):
    layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    inputs = [torch.ones(n, 2) for n in (2, 3)]

    def rounds(count: int) -> int:
        for n in range(count):
            scope = {"torch": torch, "minidynamo": minidynamo, "layers": layers}
            exec(PROGRAMS.format(n=n % 7), scope)
            fn = minidynamo.optimize(backend)(scope[name])
            for x in inputs:
                fn(x)
            minidynamo.reset()
            del fn
            scope.clear()
        gc.collect()
        return len(gc.get_objects())

    rounds(4)
    before = rounds(4)
    assert rounds(4) - before < 4  # not one a round


def test_the_eager_backend_keeps_no_graph():
    graphs: list[weakref.ref[torch.fx.GraphModule]] = []

    def backend(gm, example_inputs):
        graphs.append(weakref.ref(gm))
        return eager(gm, example_inputs)

    f = minidynamo.optimize(backend)(lambda x: x + 1)
    assert f(torch.ones(2)).tolist() == f(torch.ones(2)).tolist() == [2, 2]
    gc.collect()
    assert graphs[0]() is None
