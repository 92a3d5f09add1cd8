"""What modules are made of, under capture: parametrizations, containers of their own class, walks over submodules, tracebacks."""

from __future__ import annotations

import traceback

import pytest
import torch

import minidynamo


def weight_norm():
    return torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3))


def orthogonal():
    return torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))


class Symmetric(torch.nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


def symmetric():
    layer = torch.nn.Linear(3, 3)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


@pytest.mark.parametrize("build", [weight_norm, orthogonal, symmetric], ids=lambda fn: fn.__name__)
def test_parametrizations_are_part_of_the_graph(build):
    torch.manual_seed(0)
    layer, x = build(), torch.randn(2, 3)
    compiled = minidynamo.optimize("eager", nopython=True)(layer)
    assert torch.equal(compiled(x), layer(x))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(0.5)
    assert torch.equal(compiled(x), layer(x))


def test_a_container_of_its_own_class_is_indexed():
    class Layers(torch.nn.ModuleList):
        def forward(self, x):
            return self[-1](self[0](x))

    layers, x = Layers([torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)]), torch.randn(2, 3)
    assert torch.equal(minidynamo.optimize("eager", nopython=True)(layers)(x), layers(x))


def test_walks_over_modules_are_traced_and_shared_ones_counted_once():
    class Walks(torch.nn.Module):
        def __init__(self, shared):
            super().__init__()
            self.first = torch.nn.Linear(3, 3)
            self.second = self.first if shared else torch.nn.Linear(3, 3)

        def forward(self, x):
            names = []
            for name, child in self.named_children():
                names.append(name)
                x = child(x)
            self.apply(lambda module: names.append(len(names)))
            self.eval()
            return x, names, self.training, self.get_submodule("second")(x)

    x = torch.randn(2, 3)
    separate, shared = Walks(False), Walks(True)
    compiled = [minidynamo.optimize("eager", nopython=True)(module) for module in (separate, shared)]
    for module, captured in zip((separate, shared), compiled, strict=True):
        expected = module(x)
        module.train()
        got = captured(x)
        assert not module.first.training
        assert got[1:3] == expected[1:3] and torch.equal(got[3], expected[3])
    separate.second = separate.first  # tied later: the walk meets one module less
    assert compiled[0](x)[1] == separate(x)[1]


def test_the_frame_that_stands_in_for_a_module_shows_in_no_traceback():
    class Fails(torch.nn.Module):
        def forward(self, x):
            return x + torch.ones(7)

    def lines(call):
        with pytest.raises(RuntimeError) as caught:
            call(torch.ones(2, 3))
        return [(f.name, f.lineno) for f in traceback.extract_tb(caught.tb) if f.name == "forward"]

    module = Fails()
    captured = minidynamo.optimize("eager")(module)
    assert lines(captured) == lines(module) == lines(captured)
    assert len(lines(captured)) == 1
