"""Functions that use the device, under capture: the numbers, devices and random states of eager, in eager's order."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import minidynamo
from tests.openreg.comparing import check, one_graph, same, snapshot, x0, x1

D = "openreg"

ONE_GRAPH = {
    "operators": lambda x: (x @ x + 1, x.device.type, x.is_openreg),
    "dropout": lambda x: F.dropout(x, 0.5),
    "random": lambda x: (torch.randn(3, device=D), torch.rand_like(x), torch.bernoulli(x.sigmoid())),
    "random in place": lambda x: torch.empty(4, device=D).normal_() + torch.empty(4, device=D).uniform_(),
    "cpu and device": lambda x: (torch.randn(3), torch.randn(3, device=D), x + 1),
    "the other device": lambda x: torch.randn(3, device="openreg:1"),
    "transfers": lambda x: (x.cpu().to(D) + 1, x.to("openreg:1") * 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph(name):
    one_graph(ONE_GRAPH[name])


def seeded(x):
    torch.openreg.manual_seed(42)
    return torch.randn(3, device=D) + x[0, :3]


def seeded_everywhere(x):
    torch.manual_seed(42)
    return torch.randn(3, device=D), torch.randn(3, device="openreg:1"), torch.randn(3)


def seeded_all(x):
    torch.openreg.manual_seed_all(42)
    return torch.randn(3, device=D), torch.randn(3, device="openreg:1")


def states(x):
    state = torch.openreg.get_rng_state()
    first = torch.randn(3, device=D)
    torch.openreg.set_rng_state(state)
    return first, torch.randn(3, device=D)


def generator_inside(x):
    generator = torch.Generator(device=D)
    generator.manual_seed(3)
    return torch.randn(3, device=D, generator=generator) + x[0, :3]


def device_context(x):
    with torch.openreg.device(1):
        y = torch.ones(2, device=D)
    return y, torch.ones(2, device=D)


def accelerator_context(x):
    with torch.accelerator.device_index(1):
        y = torch.ones(2, device=D)
    return y, torch.ones(2, device=D)


def mode(x):
    with torch.device("openreg:1"):
        y = torch.ones(2)
    return y, torch.ones(2)


def set_device(x):
    torch.openreg.set_device(1)
    return torch.ones(2, device=D) + 1


def set_index(x):
    torch.accelerator.set_device_index(1)
    return torch.ones(2, device=D) + 1


def counts(x):
    return x + torch.openreg.device_count() + int(
        torch.openreg.is_available()
    ), torch.openreg.current_device()


def autocast(x):
    with torch.autocast(D, dtype=torch.float16):
        return x @ x


def synchronized(x):
    y = x + 1
    torch.accelerator.synchronize()
    return y


def stream_inside(x):
    stream = torch.Stream(device=D)
    with stream:
        y = x + 1
    torch.accelerator.current_stream().wait_stream(stream)
    return y * 2


def events(x):
    event = torch.Event(D)
    y = x + 1
    event.record()
    event.synchronize()
    return y * 2


RIGHT = [
    *(
        seeded,
        seeded_everywhere,
        seeded_all,
        states,
        generator_inside,
        device_context,
        accelerator_context,
        mode,
    ),
    *(set_device, set_index, counts, autocast, synchronized, stream_inside, events),
]


@pytest.mark.parametrize("fn", RIGHT, ids=lambda f: f.__name__)
def test_right(fn):
    check(fn)


@pytest.mark.parametrize(
    "make", [lambda: torch.Generator(device=D), lambda: torch.Generator(device="openreg:0")]
)
def test_a_generator_as_argument(make):
    generator = make()
    check(
        lambda x, g: torch.randn(3, device=D, generator=g.manual_seed(3)) + x[0, :3],
        lambda: (x0(), generator),
    )


def test_a_generator_as_closure():
    generator = torch.Generator(device=D)

    def fn(x):
        return torch.randn(3, device=D, generator=generator) + x[0, :3]

    def again():
        generator.manual_seed(3)
        return (x0(),)

    check(fn, again, again)


@pytest.mark.parametrize("place", [D, "openreg:1"])
def test_a_generator_is_an_input_of_the_graph(place):
    """Under a backend that runs graphs as they are; what is drawn from it is what plain Python draws."""

    def fn(x, g):
        y = x[0, :3].to(place) + torch.randn(3, device=place, generator=g)
        return y + torch.empty_like(y).normal_(generator=g)

    captured = minidynamo.optimize("eager", nopython=True)(fn)
    for seed in (1, 2):
        ours, theirs = (torch.Generator(place).manual_seed(seed) for _ in range(2))
        for _ in range(2):
            assert torch.equal(captured(x0(), ours).cpu(), fn(x0(), theirs).cpu())
        assert torch.equal(ours.get_state(), theirs.get_state())
    assert len(minidynamo.cache_entries(fn)) == 1


def test_a_stream_from_outside():
    stream = torch.Stream(device=D)

    def fn(x):
        with stream:
            y = x + 1
            inside = torch.accelerator.current_stream().stream_id
        return y, inside, torch.accelerator.current_stream().stream_id

    check(fn)


def test_operators_see_the_stream():
    stream, seen = torch.Stream(device=D), []

    @torch.library.custom_op("openreg_test::stream", mutates_args=())
    def current(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.accelerator.current_stream().stream_id)
        return x.clone()

    current.register_fake(torch.empty_like)

    def fn(x):
        with torch.openreg.stream(stream):
            y = current(x)
        return current(y)

    with minidynamo.config.patch(verify=False):  # which runs a first call twice, to compare
        check(fn)
    assert set(seen[::2]) == {stream.stream_id} and set(seen[1::2]) == {0}


def test_guards_on_the_device():
    def fn(x):
        return x + torch.ones(4, 4, device=x.device)

    counter = check(fn, lambda: (x0(),), lambda: (x1(),), lambda: (x0().cpu(),))
    assert counter.frame_count == 3


# Each gives a tensor on the current device, though no argument has an index.
ON_THE_CURRENT_DEVICE = {
    "ones": lambda x: torch.ones(2, device=D),
    "zeros, torch.device": lambda x: torch.zeros(2, device=torch.device(D)) * 2,
    "full": lambda x: torch.full((2,), 3.0, device=D),
    "tensor": lambda x: torch.tensor([1.0, 2.0], device=D),
    "as_tensor": lambda x: torch.as_tensor(x, device=D),
    "arange": lambda x: torch.arange(3, device=D),
    "eye": lambda x: torch.eye(2, device=D),
    "linspace": lambda x: torch.linspace(0, 1, 3, device=D),
    "tril_indices": lambda x: torch.tril_indices(3, 3, device=D),
    "new_ones": lambda x: x.new_ones(2, device=D),
    "zeros_like": lambda x: torch.zeros_like(x, device=D),
    "rand_like": lambda x: torch.rand_like(x, device=D) < 2,
    "to": lambda x: x.to(D),
    "to, from the CPU": lambda x: x.cpu().to(D, torch.float64),
    "to, keyword": lambda x: x.to(device=D),
    "openreg()": lambda x: x.openreg(),
    "openreg(), from the CPU": lambda x: x.cpu().openreg(),
    "type": lambda x: x.cpu().type("torch.openreg.DoubleTensor"),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn", [counts, *ON_THE_CURRENT_DEVICE.values()], ids=["counts", *ON_THE_CURRENT_DEVICE]
)
def test_the_current_device_changes(fn, backend):
    def told(x):
        y = fn(x)
        y = y[0] if isinstance(y, tuple) else y
        return y, y.device.index, y.device, y.get_device(), str(y.device)

    captured = minidynamo.optimize(backend)(told)
    for index in (0, 1, 0, 1):
        torch.openreg.set_device(index)
        assert same(snapshot(captured(x0())), snapshot(told(x0())))


@pytest.mark.parametrize(
    "fn", [lambda x: x + 1, lambda x: torch.ones(2, device="openreg:1"), lambda x: x.cpu()]
)
def test_the_current_device_is_guarded_only_where_it_matters(fn):
    from minidynamo.testing import CompileCounter

    counter = CompileCounter()
    captured = minidynamo.optimize(counter)(fn)
    for index in (0, 1):
        torch.openreg.set_device(index)
        captured(torch.ones(2, device="openreg:0"))
    assert counter.frame_count == 1


def test_the_device_changes_inside():
    def fn(x):
        indices = [torch.ones(2, device=D).device.index]
        torch.openreg.set_device(1)
        indices.append(torch.ones(2, device=D).device.index)
        with torch.openreg.device(0):
            indices.append(torch.ones(2, device=D).device.index)
        with torch.accelerator.device_index(0):
            indices.append(torch.ones(2, device=D).device.index)
        indices.append(torch.ones(2, device=D).device.index)
        return indices, x + 1

    check(fn)


def test_guards_and_recompiles_print_the_index():
    def fn(x):
        return x + torch.ones(4, 4, device=x.device), torch.ones(2, device=D)

    def failures(x):
        (again,) = minidynamo.explain(captured)(x).recompiles
        return [tuple(map(str, failure[2:])) for failure in again.failures]

    captured = minidynamo.optimize("eager")(fn)
    (first,) = minidynamo.explain(captured)(x1()).compiled
    assert any("'openreg:1'" in guard for guard in first.guards)
    assert failures(x0()) == [("device openreg:1", "device openreg:0")]
    torch.openreg.set_device(1)
    assert ("current device (openreg) 0", "current device (openreg) 1") in failures(x0())


def test_the_default_device_changes():
    def fn(x):
        y = torch.ones(2) + 1
        return y, y.device.index

    captured = minidynamo.optimize("eager")(fn)
    try:
        for index, device in enumerate(("openreg:1", "openreg:0", None, "openreg:1", D, D, D, None)):
            torch.openreg.set_device(index % 2)
            torch.set_default_device(device)
            assert same(snapshot(captured(x0())), snapshot(fn(x0())))
    finally:
        torch.set_default_device(None)


def test_training_with_dropout():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1)).to(D)

    def gradients(fn):
        torch.manual_seed(1)
        x = x0().requires_grad_()
        loss = fn(x).sum()
        return [loss.detach(), *torch.autograd.grad(loss, [x, *model.parameters()])]

    captured = minidynamo.optimize("eager")(model)
    for _ in range(2):
        assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(gradients(model), gradients(captured)))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_with_dropout(reentrant):
    def fn(x):
        return checkpoint(lambda t: F.dropout(t.sin(), 0.5), x, use_reentrant=reentrant)

    def gradients(f):
        torch.manual_seed(1)
        x = x0().requires_grad_()
        y = f(x)
        y.sum().backward()
        return y.detach().cpu(), x.grad.cpu()

    for backend in ("eager", "aot_eager"):
        minidynamo.reset()
        captured = minidynamo.optimize(backend)(fn)
        for _ in range(2):
            assert all(torch.equal(a, b) for a, b in zip(gradients(fn), gradients(captured)))


def test_compiling_draws_no_number():
    before = torch.openreg.get_rng_state_all()
    captured = minidynamo.optimize("eager")(lambda x: x + 1 if x.dim() else torch.randn(3, device=D))
    captured(x0())
    assert all(torch.equal(a, b) for a, b in zip(before, torch.openreg.get_rng_state_all()))


def test_contexts_that_end_by_an_exception():
    def fn(x):
        try:
            with torch.openreg.device(1):
                raise KeyError
        except KeyError:
            return torch.ones(2, device=D), x + 1

    check(fn)
