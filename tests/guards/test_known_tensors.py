"""Tensors that a snapshot knows are checked in one go, each as if it were alone."""

from __future__ import annotations

import pytest
import torch

import minidynamo

LAYERS = 7


@pytest.fixture
def settled():
    """(modules, function, entry), after enough calls for a snapshot."""
    layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(LAYERS))

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    fn = minidynamo.optimize("eager")(f)
    for _ in range(6):
        fn(torch.ones(2, 3))
    (entry,) = minidynamo.cache_entries(fn)
    assert entry.check_fn.snapshot["tensors"] == 2 * LAYERS
    return layers, fn, entry


CHANGES = {
    "a transposed view": lambda p: setattr(p, "data", p.data.t()),
    "another dtype": lambda p: setattr(p, "data", p.data.double()),
    "another size": lambda p: setattr(p, "data", torch.ones(4, 4)),
    "no gradient": lambda p: p.requires_grad_(False),
    "more dimensions": lambda p: setattr(p, "data", torch.ones(1, 1, 1, 3, 3, 3, 3)),
}


@pytest.mark.parametrize("layer", [0, 1, LAYERS // 2, LAYERS - 1])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_any_of_them_is_seen(settled, layer, change):
    layers, _, entry = settled
    values = (torch.ones(2, 3), *_scope(settled))
    assert entry.check_fn(*values)
    weight = layers[layer].weight
    data = weight.data
    change(weight)
    assert not entry.check_fn(*values)
    weight.data = data
    weight.requires_grad_(True)
    assert entry.check_fn(*values)


def test_values_may_change(settled):
    layers, fn, entry = settled
    for layer in layers:
        with torch.no_grad():
            layer.weight.fill_(0.5)
    x = torch.ones(2, 3)
    assert torch.equal(fn(x), fn.__wrapped__(x))
    assert minidynamo.cache_entries(fn) == [entry]


@pytest.mark.parametrize("layer", [0, LAYERS - 1])
def test_a_parameter_that_is_replaced_and_dies(settled, layer):
    layers, fn, entry = settled
    layers[layer].weight = torch.nn.Parameter(torch.ones(3, 3, dtype=torch.float32))
    x = torch.ones(2, 3)
    assert torch.equal(fn(x), fn.__wrapped__(x))
    layers[layer].weight = torch.nn.Parameter(torch.ones(3, 3, dtype=torch.float64).t())
    assert not entry.check_fn(x, *_scope(settled))


def test_grad_mode_is_asked_for_once_and_holds_for_all(settled):
    _, _, entry = settled
    values = (torch.ones(2, 3), *_scope(settled))
    with torch.no_grad():
        assert not entry.check_fn(*values)
    assert entry.check_fn(*values)


def _scope(settled):
    fn = settled[1].__wrapped__
    return fn.__globals__, fn.__closure__
