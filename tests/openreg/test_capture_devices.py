"""The current device under capture: asking for it, changing it, contexts, each in one graph; effects in the program's order."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import minidynamo
from tests.openreg.comparing import check, one_graph, same, snapshot, x0

D = "openreg"


def ones(device=D):
    return torch.ones(2, device=device)


def set_device(x):
    before = ones()
    torch.openreg.set_device(1)
    return before + 1, ones() + 1, x + 1, torch.openreg.current_device()


def set_twice(x):
    results = []
    for index in (1, 0, 1, torch.device("openreg:0"), "openreg:1"):
        torch.openreg.set_device(index)
        results.append(ones() * 2)
    return results


def set_to_the_same(x):
    torch.openreg.set_device(0)
    return ones() + 1


def set_by_a_value(x):
    torch.openreg.set_device(x.dim() - 1)
    return ones() + 1, torch.openreg.current_device()


def set_index(x):
    torch.accelerator.set_device_index(1)
    return ones() + 1, torch.accelerator.current_device_index(), x * 2


def exchange(x):
    before = torch.openreg._exchange_device(1)
    y = ones()
    return (
        y + 1,
        before,
        torch.openreg._maybe_exchange_device(before),
        torch.openreg._maybe_exchange_device(7),
    )


def context(x):
    with torch.openreg.device(1):
        y = ones() + 1
        index = torch.openreg.current_device()
    return y, ones(), index, torch.openreg.current_device()


def accelerator_context(x):
    with torch.accelerator.device_index(1):
        y = ones() + 1
        index = torch.accelerator.current_device_index()
    return y, ones(), index


def contexts_in_contexts(x):
    with torch.openreg.device("openreg:1"):
        a = ones()
        with (
            torch.accelerator.device_index(0),
            torch.openreg.device(None),
            torch.accelerator.device_index(None),
        ):
            b = ones()
            with torch.openreg.device(torch.device("openreg:1")):
                c = ones()
            d = ones()
        e = ones()
    return a, b, c, d, e, ones()


def set_in_a_context(x):
    with torch.openreg.device(1):
        torch.openreg.set_device(0)
        a = ones()
    b = ones()
    with torch.accelerator.device_index(0):
        torch.accelerator.set_device_index(1)
        c = ones()
    return a, b, c, ones()


def device_of(x):
    y = x.to("openreg:1")
    with torch.openreg.device_of(y):
        z = ones()
    with torch.openreg.device_of(y.cpu()):
        return z, ones()


def context_that_is_kept(x):
    manager = torch.openreg.device(1)
    manager.__enter__()
    y = ones()
    manager.__exit__(None, None, None)
    return y, ones(), manager.idx, manager.prev_idx


def left_by_return(x):
    with torch.openreg.device(1):
        return ones() + 1


def in_a_loop(x):
    results = []
    for index in range(4):
        with torch.openreg.device(index % torch.openreg.device_count()):
            results.append(ones() + index)
            if index == 2:
                continue
        results.append(ones())
    return results


def counts(x):
    return (
        x + torch.openreg.device_count() + int(torch.openreg.is_available()),
        x * torch.accelerator.device_count() * int(torch.accelerator.is_available()),
        torch.openreg.current_device(),
        torch.accelerator.current_accelerator(),
        torch.accelerator.current_accelerator(check_available=True),
    )


def on_the_accelerator(x):
    return torch.ones(2, device=torch.accelerator.current_accelerator()) + 1, x.cpu().to(
        torch.accelerator.current_accelerator()
    )


def mode(x):
    with torch.device("openreg:1"):
        y = torch.ones(2) + 1
    return y, torch.ones(2)


def mode_without_index(x):
    with torch.device(D):
        y = torch.ones(2) + 1
    return y, torch.ones(2)


def transfers(x):
    with torch.openreg.device(1):
        return (
            x.to(D),
            x.cpu().to(D),
            torch.zeros_like(x, device=D),
            x.new_ones(2, device=D),
            torch.tensor([1.0], device=D),
        )


def random(x):
    with torch.openreg.device(1):
        y = torch.randn(3, device=D)
    return y, torch.randn(3, device=D), F.dropout(x)


def autocast(x):
    with torch.autocast(D, dtype=torch.float16):
        y = x @ x
    with torch.autocast(D, enabled=False), torch.openreg.device(1):
        return y, x @ x, x.to(D) @ x.to(D)


@torch.no_grad()
def without_gradients(x):
    with torch.openreg.device(1):
        return ones() + x.to(D)[0, :2]


def decorated(x):
    return without_gradients(x), ones()


CAPTURED = [
    *(set_device, set_twice, set_to_the_same, set_by_a_value, set_index, exchange),
    *(context, accelerator_context, contexts_in_contexts, set_in_a_context, device_of, context_that_is_kept),
    *(left_by_return, in_a_loop, counts, on_the_accelerator, mode, mode_without_index, transfers, random),
    *(autocast, decorated),
]


@pytest.mark.slow
@pytest.mark.parametrize("fn", CAPTURED, ids=lambda f: f.__name__)
def test_one_graph(fn):
    one_graph(fn)


@pytest.mark.slow
@pytest.mark.parametrize("fn", CAPTURED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_from_either_device(fn, backend):
    captured = minidynamo.optimize(backend, nopython=True)(fn)
    for index in (0, 1, 0, 1):
        found = []
        for call in (fn, captured):
            torch.manual_seed(index)
            torch.openreg.set_device(index)
            found.append((snapshot(call(x0())), torch.openreg.current_device()))
        assert same(*found)


def broken_inside(x):
    with torch.openreg.device(1):
        y = ones()
        minidynamo.graph_break()
        z = ones()
        torch.openreg.set_device(0)
        minidynamo.graph_break()
        a = ones()
    return y, z, a, ones()


def broken_after_a_change(x):
    a = ones()
    torch.openreg.set_device(1)
    minidynamo.graph_break()
    b = ones()
    torch.accelerator.set_device_index(0)
    minidynamo.graph_break()
    return a, b, ones()


def exception_in_a_context(x):
    a = x + 1
    try:
        with torch.openreg.device(1):
            a = ones()
            raise KeyError
    except KeyError:
        return a, ones(), torch.openreg.current_device()


def no_such_device(x):
    a = ones()
    for call in (torch.openreg.set_device, torch.accelerator.set_device_index):
        try:
            call(5)
        except RuntimeError as error:
            a = a + len(type(error).__name__)
    return a, ones()


def no_device(x):
    try:
        torch.openreg.set_device("cpu")
    except ValueError as error:
        return x + 1, str(error)


def default_device_and_a_change(x):
    with torch.device(D):
        a = torch.ones(2)
        torch.openreg.set_device(1)
        b = torch.ones(2)
    return a, b, x.openreg(), x.cpu().openreg()


def method_before_a_change(x):
    a = x.cpu().openreg()
    torch.openreg.set_device(1)
    return a, x.cpu().openreg()


def drawn_between_changes(x):
    a = torch.randn(2, device=D)
    torch.openreg.set_device(1)
    b = torch.randn(2, device=D)
    torch.openreg.set_device(0)
    return a, b, torch.randn(2, device=D), x.is_openreg


def wrong_shapes_in_a_context(x):
    try:
        with torch.openreg.device(1):
            return x @ torch.ones(3, 3, device=D)
    except RuntimeError:
        return ones(), torch.openreg.current_device()


def kernel_that_fails(x):
    torch.openreg.set_device(1)
    try:
        return torch.linalg.cholesky(x - 100)
    except RuntimeError as error:
        return type(error).__name__, torch.openreg.current_device(), ones()


RIGHT = [
    *(broken_inside, broken_after_a_change, exception_in_a_context, no_such_device, no_device),
    drawn_between_changes,
    *(default_device_and_a_change, method_before_a_change, wrong_shapes_in_a_context, kernel_that_fails),
]


@pytest.mark.parametrize("fn", RIGHT, ids=lambda f: f.__name__)
def test_right(fn):
    check(fn)


def test_a_failure_leaves_the_device_as_eager():
    def fn(x):
        torch.openreg.set_device(1)
        return torch.linalg.cholesky(x - 100)

    for backend in ("eager", "aot_eager"):
        captured = minidynamo.optimize(backend)(fn)
        for _ in range(2):
            torch.openreg.set_device(0)
            with pytest.raises(RuntimeError, match="cholesky"):
                captured(x0())
            assert torch.openreg.current_device() == 1


def test_a_failure_of_a_frame_that_draws():
    def fn(x):
        y = torch.randn(4, device=D)
        torch.openreg.set_device(1)
        x = torch.linalg.cholesky(x - 100) + y
        torch.openreg.set_device(0)
        return x

    for backend in ("eager", "aot_eager"):
        captured = minidynamo.optimize(backend)(fn)
        for _ in range(2):
            found = []
            for call in (fn, captured):
                torch.openreg.set_device(0)
                torch.manual_seed(0)
                with pytest.raises(RuntimeError, match="cholesky"):
                    call(x0())
                found.append((torch.openreg.current_device(), torch.openreg.get_rng_state(0)))
            assert same(*found)


def test_a_manager_from_outside():
    manager = torch.openreg.device(1)

    def fn(x):
        with manager:
            return ones(), x + 1

    one_graph(fn)
    assert manager.prev_idx == 0


def test_an_operator_sees_the_device():
    seen = []

    @torch.library.custom_op("openreg_test::device", mutates_args=())
    def current(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.openreg.current_device())
        return x.clone()

    current.register_fake(torch.empty_like)

    def fn(x):
        with torch.openreg.device(1):
            y = current(x)
        return current(y)

    check(fn)
    assert set(seen[::2]) == {1} and set(seen[1::2]) == {0}


def test_gradients():
    def fn(x):
        with torch.openreg.device(1):
            y = (x.to(D) * 2 + torch.ones(4, 4, device=D)).square()
        torch.openreg.set_device(1)
        return y.to("openreg:0") + x

    for backend in ("eager", "aot_eager"):
        captured = minidynamo.optimize(backend, nopython=True)(fn)
        for _ in range(2):
            found = []
            for call in (fn, captured):
                torch.openreg.set_device(0)
                x = x0().requires_grad_()
                y = call(x)
                y.sum().backward()
                found.append((snapshot(y), snapshot(x.grad), torch.openreg.current_device()))
            assert same(*found)


def test_the_current_device_is_guarded_by_what_asks_or_changes():
    from minidynamo.testing import CompileCounter

    def asks(x):
        return x + torch.openreg.current_device()

    def changes(x):
        torch.openreg.set_device(1)
        return x + 1

    for fn in (asks, changes):
        counter = CompileCounter()
        captured = minidynamo.optimize(counter)(fn)
        for index in (0, 1, 0, 1):
            torch.openreg.set_device(index)
            captured(x0())
        assert counter.frame_count == 2
