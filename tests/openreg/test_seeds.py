"""Levels 1, 2 and 6: a seed makes a device deterministic, and its numbers are the CPU's for the same seed."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

D = "openreg"
X = torch.rand(4, 5).add(0.1)


def cpu_numbers(seed: int, count: int = 3) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


def test_the_seed_of_the_document():
    torch.openreg.manual_seed(42)
    first = torch.randn(3, device=D)
    torch.openreg.manual_seed(42)
    assert first.device == torch.device("openreg:0")
    assert torch.equal(first.cpu(), torch.randn(3, device=D).cpu())
    assert torch.equal(first.cpu(), cpu_numbers(42))


def test_manual_seed_is_of_the_current_device_only():
    torch.openreg.manual_seed_all(1)
    with torch.openreg.device(1):
        torch.openreg.manual_seed(42)
    assert torch.equal(torch.randn(3, device="openreg:0").cpu(), cpu_numbers(1))
    assert torch.equal(torch.randn(3, device="openreg:1").cpu(), cpu_numbers(42))


def test_drawing_on_one_device_leaves_the_others_and_the_cpu_alone():
    torch.manual_seed(5)
    cpu, other = torch.get_rng_state(), torch.openreg.get_rng_state(1)
    torch.randn(100, device="openreg:0")
    F.dropout(torch.ones(100, device="openreg:0"))
    torch.openreg.manual_seed(9)
    assert torch.equal(cpu, torch.get_rng_state())
    assert torch.equal(other, torch.openreg.get_rng_state(1))


def test_torch_manual_seed_seeds_every_device():
    torch.manual_seed(3)
    assert torch.openreg.initial_seed() == 3
    for index in range(2):
        assert torch.equal(torch.randn(3, device=f"openreg:{index}").cpu(), cpu_numbers(3))


def test_seed_and_seed_all_draw_new_seeds():
    first, second = torch.openreg.seed(), torch.openreg.seed()
    assert first != second and torch.openreg.initial_seed() == second
    number = torch.openreg.seed_all()
    assert [g.initial_seed() for g in torch.openreg.default_generators()] == [number, number]


@pytest.mark.parametrize("as_device", [str, torch.device, lambda name: torch.device(name).index])
@pytest.mark.parametrize("device", ["openreg:0", "openreg:1"])
def test_states_come_and_go(device, as_device):
    index = as_device(device)
    state = torch.openreg.get_rng_state(index)
    assert state.dtype == torch.uint8 and state.is_cpu
    first = torch.rand(4, device=device)
    torch.openreg.set_rng_state(state, index)
    assert torch.equal(first.cpu(), torch.rand(4, device=device).cpu())


def test_states_of_all_devices():
    states = torch.openreg.get_rng_state_all()
    drawn = [torch.rand(2, device=f"openreg:{i}").cpu() for i in range(2)]
    torch.openreg.set_rng_state_all(states)
    assert all(torch.equal(drawn[i], torch.rand(2, device=f"openreg:{i}").cpu()) for i in range(2))


def test_generators_of_the_user():
    generator = torch.Generator(device="openreg:1")
    assert generator.device == torch.device("openreg:1")
    generator.manual_seed(5)
    before = torch.openreg.get_rng_state(1)
    drawn = torch.randn(3, device="openreg:1", generator=generator)
    assert torch.equal(drawn.cpu(), cpu_numbers(5))
    assert torch.equal(before, torch.openreg.get_rng_state(1))
    assert torch.Generator(device=D).device.index == 0


def test_clones_of_a_generator():
    generator = torch.Generator(device=D).manual_seed(5)
    copy, shared = generator.clone_state(), torch.Generator(device=D)
    shared.graphsafe_set_state(generator.graphsafe_get_state())
    assert torch.equal(torch.randn(3, device=D, generator=generator).cpu(), cpu_numbers(5))
    assert torch.equal(torch.randn(3, device=D, generator=copy).cpu(), cpu_numbers(5))
    assert torch.equal(torch.randn(3, device=D, generator=shared).cpu(), cpu_numbers(5, 6)[3:])
    with pytest.raises(RuntimeError, match="no offset"):
        generator.set_offset(4)
    assert generator.get_offset() == 0


@pytest.mark.parametrize(
    ("device", "generator"), [("openreg:0", "cpu"), ("openreg:0", "openreg:1"), ("cpu", "openreg:0")]
)
@pytest.mark.parametrize("draw", [torch.randn, torch.rand, torch.randperm], ids=lambda f: f.__name__)
def test_a_generator_of_another_device_is_refused(draw, device, generator):
    with pytest.raises(RuntimeError, match="generator"):
        draw(3, device=device, generator=torch.Generator(device=generator))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)), torch.Generator.clone_state]
)
def test_a_generator_is_copied_with_its_state(copied):
    generator = torch.Generator(device="openreg:1").manual_seed(5)
    torch.randn(7, device="openreg:1", generator=generator)
    other = copied(generator)
    assert other.device == generator.device and other.initial_seed() == 5
    drawn = [torch.randn(3, device="openreg:1", generator=g).cpu() for g in (generator, other)]
    assert torch.equal(*drawn)


def test_fork_rng_keeps_the_devices_numbers():
    torch.openreg.manual_seed(1)
    with torch.random.fork_rng(devices=[0], device_type=D):
        torch.randn(3, device=D)
    assert torch.equal(torch.randn(3, device=D).cpu(), cpu_numbers(1))


RANDOM = {
    "alpha_dropout": lambda d: F.alpha_dropout(X.to(d), 0.5, training=True),
    "bernoulli": lambda d: torch.bernoulli(X.to(d).clamp(0, 1)),
    "bernoulli_": lambda d: torch.empty(9, device=d).bernoulli_(0.5),
    "binomial": lambda d: torch.binomial(torch.full((3,), 5.0, device=d), torch.full((3,), 0.5, device=d)),
    "cauchy_": lambda d: torch.empty(4, device=d).cauchy_(),
    "dirichlet": lambda d: torch._sample_dirichlet(X.to(d)),
    "dropout": lambda d: F.dropout(X.to(d), 0.5),
    "dropout1": lambda d: F.dropout(X.to(d), 1.0),
    "dropout2d": lambda d: F.dropout2d(X.to(d)[None, :, :, None], 0.5),
    "exponential_": lambda d: torch.empty(4, device=d).exponential_(),
    "feature_alpha_dropout": lambda d: F.feature_alpha_dropout(X.to(d)[None], 0.5, training=True),
    "fractional_max_pool2d": lambda d: F.fractional_max_pool2d(
        torch.ones(1, 1, 6, 6, device=d), 2, output_size=3
    ),
    "geometric_": lambda d: torch.empty(4, device=d).geometric_(0.3),
    "gumbel_softmax": lambda d: F.gumbel_softmax(X.to(d)),
    "log_normal_": lambda d: torch.empty(4, device=d).log_normal_(),
    "lstm": lambda d: nn.LSTM(5, 3, 2, dropout=0.5, device=d)(X.to(d)[None])[0].detach(),
    "multinomial": lambda d: torch.multinomial(X.to(d), 3),
    "normal": lambda d: torch.normal(X.to(d), 1.0),
    "normal_": lambda d: torch.empty(4, device=d).normal_(),
    "normal_tensors": lambda d: torch.normal(X.to(d), X.to(d)),
    "poisson": lambda d: torch.poisson(X.to(d)),
    "rand": lambda d: torch.rand(5, device=d),
    "rand_like": lambda d: torch.rand_like(X.to(d)),
    "randint": lambda d: torch.randint(0, 9, (5,), device=d),
    "randint_like": lambda d: torch.randint_like(X.to(d), 0, 9),
    "randn_complex": lambda d: torch.randn(3, dtype=torch.complex64, device=d),
    "randn_like": lambda d: torch.randn_like(X.to(d)),
    "random_": lambda d: torch.empty(4, device=d).random_(0, 7),
    "randperm": lambda d: torch.randperm(9, device=d),
    "rrelu": lambda d: F.rrelu(X.to(d), training=True),
    "sdpa": lambda d: F.scaled_dot_product_attention(*[X.to(d)[None, None]] * 3, dropout_p=0.5),
    "standard_gamma": lambda d: torch._standard_gamma(X.to(d)),
    "svd_lowrank": lambda d: torch.svd_lowrank(X.to(d), q=2)[1],
    "trunc_normal_": lambda d: nn.init.trunc_normal_(torch.empty(5, device=d)),
    "uniform_": lambda d: torch.empty(4, device=d).uniform_(1, 2),
    "xavier_uniform_": lambda d: nn.init.xavier_uniform_(torch.empty(3, 3, device=d)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_every_random_operator_equals_the_cpu(name):
    draw = RANDOM[name]
    torch.manual_seed(11)
    expected = draw("cpu")
    torch.manual_seed(11)
    cpu, other = torch.get_rng_state(), torch.openreg.get_rng_state(1)
    first = draw(D)
    assert first.device.type == D
    torch.testing.assert_close(first.cpu(), expected)
    assert torch.equal(cpu, torch.get_rng_state()), "it drew from the CPU's generator"
    assert torch.equal(other, torch.openreg.get_rng_state(1))
    torch.manual_seed(11)
    assert torch.equal(draw(D).cpu(), first.cpu())


def test_no_random_operator_draws_from_the_cpu_by_falling_back():
    """The tag says which operators are random; those that take no generator are the dangerous ones."""
    without = set()
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        space, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, space[6:]), overload or "default")
        takes = any("Generator" in str(argument.type) for argument in op._schema.arguments)
        if torch.Tag.nondeterministic_seeded in op.tags and not takes:
            without.add(space[6:])
    assert "native_dropout" in without
    torch.manual_seed(11)
    cpu = torch.get_rng_state()
    x = torch.ones(1, 1, 8, 8, device=D)
    torch.ops.aten.native_dropout(x, 0.5, True)
    torch.ops.aten._scaled_dot_product_attention_math(x, x, x, dropout_p=0.5)
    torch.ops.aten.rrelu_with_noise_functional(x, torch.ones_like(x), 0.1, 0.3, True)
    assert torch.equal(cpu, torch.get_rng_state())
