"""Which frames C runs without bytecode, and that modules are among them: the guards hand over parameters and buffers."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.cache import stats

SCALE = torch.full((2,), 3.0)


def direct_calls(run, *args):
    before = stats()["graphs_direct"]
    result = run(*args)
    return result, stats()["graphs_direct"] - before


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + self.shift
        return x, [x.sum()]


@pytest.mark.parametrize("guards", ["native", "both"])
def test_modules_run_without_bytecode(guards):
    with minidynamo.config.patch(guards=guards):
        net = Net()
        run = minidynamo.optimize("eager")(net)
        x = torch.randn(2, 3)
        run(x)
        (out, (total,)), count = direct_calls(run, x)
        assert count == 1
        want, (want_total,) = net(x)
        assert torch.equal(out, want) and torch.equal(total, want_total)
        out.sum().backward()
        assert net.layers[0].weight.grad is not None


def changed(net):
    """(what is changed, whether the entry still serves)."""
    yield "the data of a parameter", lambda: net.layers[0].weight.data.mul_(2), True
    yield "a parameter of the same kind", lambda: net.layers[0].register_parameter("weight", new(3, 3)), True
    yield "an optimizer's step", lambda: net.layers[1].bias.data.add_(1), True
    yield "another layer", lambda: net.layers.__setitem__(1, torch.nn.Linear(3, 3)), True
    yield "a buffer", lambda: setattr(net, "shift", torch.zeros(3)), True
    yield "load_state_dict", lambda: net.load_state_dict(Net().state_dict()), True
    yield "the mode", lambda: net.eval(), True
    yield "a frozen parameter", lambda: net.layers[2].weight.requires_grad_(False), False
    yield "no bias", lambda: net.layers[0].register_parameter("bias", None), False
    yield "a hook", lambda: net.layers[0].register_forward_hook(lambda m, i, o: o * 2), False
    yield "a function in place of a layer", lambda: net.layers.__setitem__(0, torch.nn.Tanh()), False


def new(*shape):
    return torch.nn.Parameter(torch.randn(*shape))


@pytest.mark.parametrize("change", range(11))
def test_what_is_handed_over_is_what_is_there_now(change):
    net = Net()
    run = minidynamo.optimize("eager")(net)
    x = torch.randn(2, 3)
    for _ in range(3):
        run(x)
    _, apply, serves = list(changed(net))[change]
    apply()
    (out, _), count = direct_calls(run, x)
    assert torch.equal(out, net(x)[0])
    assert count == serves
    assert torch.equal(run(x)[0], net(x)[0])


def test_globals_closures_and_attributes():
    bias = torch.ones(2)

    def f(x):
        return x * SCALE + bias

    run = minidynamo.optimize("eager")(f)
    x = torch.randn(2)
    run(x)
    result, count = direct_calls(run, x)
    assert count == 1 and torch.equal(result, f(x))
    bias = torch.zeros(2)
    result, count = direct_calls(run, x)
    assert count == 1 and torch.equal(result, f(x))


def test_text_alone_hands_nothing_over():
    with minidynamo.config.patch(guards="text"):
        net = Net()
        run = minidynamo.optimize("eager")(net)
        x = torch.randn(2, 3)
        run(x)
        (out, _), count = direct_calls(run, x)
        assert count == 0 and torch.equal(out, net(x)[0])
