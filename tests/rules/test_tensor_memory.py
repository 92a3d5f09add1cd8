"""Tensors over one memory: `data`, and writes that no compiler would refuse though the operator does."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from tests.eager import check

DATA: dict[str, str] = {
    "read": "def f(x): return x.data + 1, x.data.requires_grad, x.data is x, x * x",
    "written": "def f(x):\n    y = x * 2\n    x.data.add_(1)\n    x.data[0] = 7\n    return y, x * x",
    "of a result": "def f(x):\n    y = x * 2\n    y.data.mul_(3)\n    return y, y.sum()",
    "returned": "def f(x):\n    d = x.data\n    d.sub_(1)\n    return d, x + d",
}


@pytest.mark.parametrize("name", DATA)
def test_data(name):
    seen = check(DATA[name], "f(T(3))", "f(T(3, requires_grad=True))", "f(torch.nn.Parameter(T(3)))")
    assert seen.graphs and not seen.breaks, seen.reasons


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_do_not_see_data(backend):
    def f(x, w):
        y = x * w
        x.data.mul_(2)
        return (y + x.data * w + x * 3).sum()

    sides = []
    for fn in (f, minidynamo.optimize(backend, nopython=True)(f)):
        x, w = torch.arange(3.0).requires_grad_(), torch.ones(3, requires_grad=True)
        try:
            loss = fn(x, w)
            grads = torch.autograd.grad(loss, (x, w))
            sides.append([loss.item(), x.tolist(), [g.tolist() for g in grads]])
        finally:
            torch.set_grad_enabled(True)
    assert sides[0] == sides[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("write", ["y.add_(1)", "y.copy_(torch.ones(2, 3))", "y.mul_(y)"])
def test_elements_in_one_place_are_not_written(write, backend):
    """The operator raises, with whatever backend."""
    source = f"def f(x):\n    y = (x + 1).expand(2, 3)\n    {write}\n    return y"
    seen = check(source, "f(T(3))", "f(T(3))", backend=backend)
    assert [outcome.error[0] for outcome in seen.outcomes] == ["RuntimeError"] * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_tensor_twice_among_those_that_are_written(backend):
    """A graph that runs as it is does what plain Python does; compilers take the two for different tensors."""
    source = "def f(a, b):\n    torch._foreach_add_([a, b], 1)\n    return a * 2, b.clone()"
    seen = check(source, "f(T(2), T(2))", "(lambda t: f(t, t))(T(2))", "f(T(2), T(2))", backend=backend)
    assert ("MD227" in seen.reasons) == (backend != "eager") and seen.graphs >= 2
