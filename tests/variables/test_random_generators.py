"""`torch.Generator` objects: inputs of graphs that run as they are; numbers and states are those of plain Python."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.exc import Unsupported

FIXED = torch.Generator()


def draws(x, g):
    y = x + torch.randn(3, generator=g)
    y = y + torch.empty_like(y).normal_(generator=g)
    return y * torch.bernoulli(torch.sigmoid(y), generator=g), torch.randperm(4, generator=g)


def draws_from_a_global(x):
    return x + torch.rand(3, generator=FIXED)


def seeds_between(x, g):
    y = x + torch.rand(3, generator=g)
    g.manual_seed(9)
    return y + torch.rand(3, generator=g)


def in_turn(x, g):
    a, b = g
    return x + torch.rand(3, generator=a) * torch.rand(3, generator=b) + torch.rand(3, generator=a)


def compare(fn, compiled, make):
    """Two calls, each from two seeds: results, states afterwards, and nothing drawn from the default generator."""
    for seed in (1, 2, 1):
        ours, theirs = make(seed), make(seed)
        default = torch.get_rng_state()
        for _ in range(2):
            torch.testing.assert_close(
                compiled(torch.ones(3), ours), fn(torch.ones(3), theirs), rtol=0, atol=0
            )
        pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
        assert all(torch.equal(a.get_state(), b.get_state()) for a, b in pairs)
        assert torch.equal(default, torch.get_rng_state())


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def test_an_argument_is_an_input_of_the_graph():
    compiled = minidynamo.optimize("eager", nopython=True)(draws)
    compare(draws, compiled, seeded)
    assert len(minidynamo.cache_entries(draws)) == 1


def test_compilers_are_given_none():
    """The graph ends there, and numbers are those of plain Python."""
    compare(draws, minidynamo.optimize("aot_eager")(draws), seeded)
    with pytest.raises(Unsupported):
        minidynamo.optimize("aot_eager", nopython=True)(draws)(torch.ones(3), torch.Generator())


def test_a_global():
    compiled = minidynamo.optimize("eager", nopython=True)(draws_from_a_global)
    for seed in (1, 2):
        FIXED.manual_seed(seed)
        got = compiled(torch.ones(3))
        FIXED.manual_seed(seed)
        torch.testing.assert_close(got, draws_from_a_global(torch.ones(3)), rtol=0, atol=0)


def test_another_generator_between_calls():
    """The one that is there at the call is drawn from."""
    scope = {"torch": torch, "g": seeded(1)}
    exec("def f(x):\n    return x + torch.rand(3, generator=g)\n", scope)
    compiled = minidynamo.optimize("eager", nopython=True)(scope["f"])
    compiled(torch.ones(3))
    scope["g"] = seeded(7)
    got = compiled(torch.ones(3))
    torch.testing.assert_close(got, torch.ones(3) + torch.rand(3, generator=seeded(7)), rtol=0, atol=0)
    scope["g"] = None
    assert compiled(torch.ones(3)).shape == (3,)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_seeding_between_operators(backend):
    compare(seeds_between, minidynamo.optimize(backend)(seeds_between), seeded)


def test_several_and_one_twice():
    def same(seed):
        return (one := seeded(seed), one)

    compiled = minidynamo.optimize("eager", nopython=True)(in_turn)
    compare(in_turn, compiled, lambda seed: (seeded(seed), seeded(seed + 1)))
    compare(in_turn, compiled, same)


def test_the_graph_draws_from_its_input(capsys):
    minidynamo.optimize("debug")(draws)(torch.ones(3), seeded(1))
    shown = capsys.readouterr().out
    assert "placeholder" in shown and "generator" in shown.lower()


def test_errors_are_those_of_plain_python():
    def f(x, g):
        return x + torch.rand(3, generator=g)

    compiled = minidynamo.optimize("eager")(f)
    compiled(torch.ones(3), torch.Generator())
    with pytest.raises(TypeError, match="generator=int"):
        compiled(torch.ones(3), 3)
    assert compiled(torch.ones(3), None).shape == (3,)
