"""Captured functions against plain Python: results, devices, random states, what is current afterwards."""

from __future__ import annotations

import torch

import minidynamo

D = "openreg"


def snapshot(value):
    if isinstance(value, torch.Tensor):
        return str(value.device), value.dtype, value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return [snapshot(each) for each in value]
    return value


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


def outcome(fn, calls):
    """Results of the calls, then all random states and the current device."""
    torch.manual_seed(5)
    torch.openreg.set_device(0)
    results = [snapshot(fn(*make())) for make in calls]
    states = [torch.get_rng_state(), *torch.openreg.get_rng_state_all()]
    current = torch.openreg.current_device(), torch.openreg.current_stream().stream_id
    torch.openreg.set_device(0)
    torch.openreg.set_stream(torch.openreg.default_stream(0))
    return results, states, current


def check(fn, *calls, nopython=False):
    """Compare two rounds of calls with eager, under two backends; the compile counter that was the first."""
    from minidynamo.testing import CompileCounter

    counter = CompileCounter()
    calls = calls or (lambda: (x0(),),)
    for backend in (counter, "aot_eager"):
        minidynamo.reset()
        captured = minidynamo.optimize(backend, nopython=nopython)(fn)
        for _ in range(2):
            expected, got = outcome(fn, calls), outcome(captured, calls)
            for name, a, b in zip(("results", "random states", "current device and stream"), expected, got):
                assert same(a, b), f"{name} with {backend}: {a} in eager, {b} captured"
    return counter


def x0():
    return torch.arange(16.0, device=D).view(4, 4) / 10


def x1():
    return x0().to("openreg:1")


def one_graph(fn, *calls):
    counter = check(fn, *calls, nopython=True)
    assert counter.frame_count == 1
    return counter
