"""The grad mode inside captured code: results, what they require, and the mode after the call are eager's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import minidynamo
from tests.eager import watching

W = torch.ones(3, requires_grad=True)
X = torch.arange(3.0)
CTX = torch.no_grad()
SET = torch.set_grad_enabled(True)


@pytest.fixture(autouse=True)
def mode() -> Iterator[None]:
    before = torch.is_grad_enabled()
    yield
    torch.set_grad_enabled(before)


def block(x):
    with torch.no_grad():
        y = x * W
    return y + W, y


def nested(x):
    with torch.enable_grad():
        with torch.no_grad():
            y = x * W
        z = W * 2
    return y + z, y, z


def by_value(x):
    with torch.set_grad_enabled(not torch.is_grad_enabled()) as nothing:
        y = x * W
    return y, nothing, torch.is_grad_enabled()


def left_set(x):
    y = x * W
    torch.set_grad_enabled(mode=False)
    return y, x * W


@torch.no_grad()
def without(x):
    return x * W


@torch.enable_grad()
def with_it(x):
    return x * W


@torch.set_grad_enabled(False)
def never(x):
    return x * W


def decorated(x):
    return without(x), with_it(x), never(x), x * W


def in_a_loop(x):
    for i in range(3):
        with torch.no_grad():
            x = x * W
            if i == 1:
                continue
        x = x + W
    return x


def returning(x):
    with torch.no_grad():
        return x * W


def outside_managers(x):
    with CTX:
        y = x * W
    with SET:
        z = x * W
    return y, z, CTX.prev


def random_and_in_place(x):
    with torch.no_grad():
        y = torch.dropout(x * W, 0.0, True)
        y.add_(1)
    return y * W


def raises_and_handles(x):
    try:
        with torch.no_grad():
            y = x * W
            raise ValueError
    except ValueError:
        return y, x * W


def breaks_inside(x):
    with torch.no_grad():
        y = x * W
        minidynamo.graph_break()
        z = y * W
    return y, z, x * W


def breaks_between(x):
    manager = torch.set_grad_enabled(False)
    y = x * W
    minidynamo.graph_break()
    with manager:
        z = x * W
    return y, z, x * W


def kept(x):
    manager = torch.no_grad()
    with manager:
        y = x * W
    return y, manager.prev


def raised_by_an_operator(x):
    with torch.no_grad():
        y = x * W
        return y @ torch.ones(7)


def raised_by_the_graph(x):
    with torch.no_grad():
        y = x.clone().add_(1)
        return y[torch.tensor([1, 99])]


ONE_GRAPH: list[Callable[..., Any]] = [
    block,
    nested,
    by_value,
    left_set,
    decorated,
    in_a_loop,
    returning,
    outside_managers,
    random_and_in_place,
    kept,
]
BREAKING: list[Callable[..., Any]] = [
    raises_and_handles,
    breaks_inside,
    breaks_between,
    raised_by_an_operator,
    raised_by_the_graph,
]


def outcome(fn: Callable[..., Any], start: bool) -> Any:
    torch.set_grad_enabled(start)
    torch.manual_seed(0)
    try:
        result = fn(X)
    except (RuntimeError, IndexError) as error:
        return type(error), str(error), torch.is_grad_enabled()
    values = [
        (v.tolist(), v.requires_grad) if isinstance(v, torch.Tensor) else v
        for v in (result if type(result) is tuple else (result,))
    ]
    return values, torch.is_grad_enabled()


@pytest.mark.parametrize("fn", [*ONE_GRAPH, *BREAKING], ids=lambda fn: fn.__name__)
def test_as_eager(fn):
    captured = minidynamo.optimize("eager", nopython=fn in ONE_GRAPH)(fn)
    with watching() as seen:
        for start in (True, False, True):
            assert outcome(captured, start) == outcome(fn, start)
    assert seen.graphs >= 2  # the mode at the beginning is guarded


def test_the_mode_is_part_of_the_graph(trace):
    assert trace(block, X).graph.startswith("_set_grad_enabled(False); ")


def test_a_graph_that_raises_leaves_the_mode_as_it_was():
    def f(x, index):
        with torch.no_grad():
            x.add_(1)
            return x[index]

    captured = minidynamo.optimize("eager", nopython=True)(f)
    captured(X.clone(), torch.tensor([0, 1, 2]))
    with pytest.raises(IndexError):
        captured(X.clone(), torch.tensor([0, 1, 9]))
    assert torch.is_grad_enabled()


def test_managers_can_be_returned():
    def f(x):
        used, unused = torch.no_grad(), torch.enable_grad()
        with used:
            y = x * W
        return y, used, unused

    _, used, unused = minidynamo.optimize("eager", nopython=True)(f)(X)
    assert (type(used), type(unused), used.prev) == (torch.no_grad, torch.enable_grad, True)
    with used:
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
