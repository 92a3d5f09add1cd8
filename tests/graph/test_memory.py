"""Which tensors of a graph may have the memory of an input."""

from __future__ import annotations

import pytest
import torch

from minidynamo.graph import undo
from minidynamo.graph.memory import always_fresh
from minidynamo.graph.undo import saved
from tests.eager import check


def test_operators_that_always_give_new_memory():
    fresh = [torch.relu, torch.nn.functional.linear, "clone", "sum", torch.cat, torch.add]
    others = ["view", "reshape", "contiguous", "to", "flatten", torch.einsum, "type_as", "detach", "no such"]
    assert [always_fresh(each) for each in fresh] == [True] * len(fresh)
    assert [always_fresh(each) for each in others] == [False] * len(others)


WRITES = {
    "a tensor that the graph makes": ("y = x * 2; y.add_(1)", 0),
    "zeros": ("y = x.new_zeros(3); y[1:] = x[1:]", 0),
    "a view of one": ("y = (x + 1)[1:]; y.mul_(2)", 0),
    "an argument": ("y = x; y.add_(1)", 1),
    "a view of an argument": ("y = x[1:]; y.add_(1)", 1),
    "perhaps an argument": ("y = x.contiguous(); y.add_(1)", 1),
}


@pytest.mark.parametrize("name", WRITES)
def test_in_a_try_block_what_may_be_an_input_is_kept_before_it_is_written(name, monkeypatch):
    """A graph that fails is to be run again by plain Python, which needs the inputs as they were."""
    write, copies = WRITES[name]
    kept = []
    monkeypatch.setattr(undo, "saved", lambda tensor: kept.append(saved(tensor)) or kept[-1])
    seen = check(
        f"""
        def f(x):
            try:
                {write}
                z = y + 1
            finally:
                n = 1
            return z * n, x
        """,
        "f(T(3))",
        "f(T(3))",
    )
    assert seen.graphs == 1 and not seen.skips and len(kept) == 2 * copies


def test_a_graph_that_fails_after_a_write_to_new_memory_runs_again():
    seen = check(
        """
        def f(x, i):
            try:
                y = x * 2
                y.add_(1)
                return y[i] + x
            except IndexError as error:
                return x, str(error)
        """,
        "f(T(3), torch.tensor([0, 1, 2]))",
        "f(T(3), torch.tensor([0, 1, 7]))",
        "f(T(3), torch.tensor([0, 1, 2]))",
    )
    assert seen.graphs == 1
