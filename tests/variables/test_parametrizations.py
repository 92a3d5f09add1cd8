"""torch.nn.utils.parametrizations, the older hooks of that kind, and `cached()`: one graph, and results, gradients, buffers and the cache
are eager's, in training and in evaluation."""

from __future__ import annotations

import types

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

import minidynamo
from tests.graph.op_db_cases import described, same


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


def symmetric():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return nn.Sequential(layer, layer)


def orthogonal(**options):
    return lambda: parametrizations.orthogonal(nn.Linear(3, 3), **options)


MODULES = {
    "weight_norm": lambda: nn.Sequential(
        parametrizations.weight_norm(nn.Linear(3, 4)), parametrizations.weight_norm(nn.Linear(4, 3), dim=1)
    ),
    "weight_norm, convolution": lambda: parametrizations.weight_norm(nn.Conv1d(2, 2, 1)),
    "spectral_norm": lambda: nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(3, 4)),
        parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=2),
    ),
    "spectral_norm, vector": lambda: parametrizations.spectral_norm(nn.Linear(3, 3), name="bias"),
    "orthogonal": orthogonal(),
    "cayley": orthogonal(orthogonal_map="cayley"),
    "householder": orthogonal(orthogonal_map="householder"),
    "matrix_exp": orthogonal(orthogonal_map="matrix_exp", use_trivialization=False),
    "of the user's, shared": symmetric,
    "older weight_norm": lambda: nn.utils.weight_norm(nn.Linear(3, 3)),
    "older weight_norm, all": lambda: nn.utils.weight_norm(nn.Linear(3, 3), dim=None),
    "older spectral_norm": lambda: nn.utils.spectral_norm(nn.Linear(3, 3)),
}


def called(module, x):
    return module(x)


def called_cached(module, x):
    with parametrize.cached():
        return module(x)


def called_twice(module, x):
    with parametrize.cached():
        x = module(x)
        return module(x)


def own_code(fn):
    return types.FunctionType(fn.__code__.replace(), fn.__globals__, fn.__name__)


def behaviour(fn, make, training):
    """Three calls with their gradients, in changing modes."""
    torch.manual_seed(0)
    module, seen = make().train(training), []
    for _ in range(3):
        x = torch.linspace(-1, 1, 6).reshape(2, 3)
        result = fn(module, x)
        result.sum().backward()
        state = [(name, p.grad) for name, p in module.named_parameters()]
        cache = (parametrize._cache_enabled, len(parametrize._cache))
        seen.append(described((result, state, [b.clone() for b in module.buffers()], cache)))
        module.zero_grad()
        module.train(not module.training)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", MODULES)
def test_one_graph(name, training):
    fn = minidynamo.optimize("eager", nopython=True)(own_code(called))
    assert same(behaviour(fn, MODULES[name], training), behaviour(called, MODULES[name], training))


@pytest.mark.slow
@pytest.mark.parametrize("plain", [called_cached, called_twice])
@pytest.mark.parametrize("name", MODULES)
def test_cached(name, plain):
    fn = minidynamo.optimize("eager", nopython=True)(own_code(plain))
    assert same(behaviour(fn, MODULES[name], True), behaviour(plain, MODULES[name], True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm", "of the user's, shared"])
def test_compiled(name):
    fn = minidynamo.optimize("aot_eager", nopython=True)(own_code(called))
    torch.manual_seed(0)
    module, x = MODULES[name](), torch.linspace(-1, 1, 6).reshape(2, 3)
    torch.manual_seed(0)
    again = MODULES[name]()
    for _ in range(2):
        torch.testing.assert_close(fn(module, x), again(x))
    module(x).sum().backward()
    again(x).sum().backward()
    for one, two in zip(module.parameters(), again.parameters()):
        torch.testing.assert_close(one.grad, two.grad)
