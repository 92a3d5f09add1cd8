"""Graphs that write into their inputs or draw random numbers inside try and with blocks: one that raises leaves no trace, and plain
Python runs the frame again, so that the exception comes up where the program handles it."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo.graph import undo
from tests.eager import T, check, programs, watching

GOOD, BAD = "torch.tensor([1])", "torch.tensor([9])"  # an index that the data of a graph decides about
PROGRAMS = r"""
# batch norm in training:
bn = torch.nn.BatchNorm1d(3)
def f(x, k):
    try:
        y = bn(x.expand(4, 3) * x)
        return y[k] * 2, bn.running_mean.clone()
    except IndexError as e:
        return str(e)[:5], bn.running_mean.clone(), bn.num_batches_tracked.clone()

# an input between what fails:
def f(x, k):
    y = x * 2
    try:
        x.add_(1)
        z = y[k]
        x.add_(1)
    except IndexError:
        z = x + 5
    finally:
        x.mul_(2)
    return z, x, y

# a view of an input:
def f(x, k):
    v = x[1:]
    try:
        v.add_(1)
        z = x[k]
        v.add_(1)
    except IndexError:
        z = x + 5
    return z, x

# a parameter and the version that autograd sees:
p = torch.nn.Parameter(torch.ones(3))
def f(x, k):
    loss = (p * x).sum()
    kept = p._version
    try:
        with torch.no_grad():
            p.add_(1)
            z = p[k]
    except IndexError:
        return loss, p._version - kept, p
    return z, p._version - kept, p

# random numbers too:
def f(x, k):
    y = x * 2
    try:
        y = F.dropout(y, 0.5, True)
        x.add_(y)
        z = x[k]
    except IndexError:
        z = torch.rand(3)
    return z, x, torch.rand(1)

# inference mode:
def f(x, k):
    y = x * 2
    with torch.inference_mode():
        try:
            x.add_(y)
            z = x[k]
        except IndexError:
            z = y * 2
    return z, x

# an inference tensor:
def f(x, k):
    with torch.inference_mode():
        x = x * 1
        minidynamo.graph_break()
        try:
            x.add_(1)
            z = x[k]
        except IndexError:
            z = x * 2
    return z

# a list of a module's own, and a lock:
import threading
lock = threading.RLock()
held = []
class Manager:
    def __enter__(self): held.append(1)
    def __exit__(self, kind, *rest): held.append(kind); return kind is IndexError
def f(x, k):
    with Manager():
        x.mul_(2)
        z = x[k]
    return x, len(held)

# elements that data chooses:
def f(x, k):
    y = x[x > 1] * 2
    try:
        y.mul_(y)
        x.add_(y.sum())
        z = x[k]
    except IndexError:
        z = x - 1
    return z, x, y

# the grad mode of the frame that is run again:
def f(x, k):
    y = x * 2
    torch.set_grad_enabled(False)
    try:
        x.add_(F.dropout(y, 0.5, True))
        z = x[k]
    except IndexError:
        z = y * 2
    finally:
        torch.set_grad_enabled(True)
    return z, x, torch.is_grad_enabled()
"""


@pytest.mark.parametrize("program", programs(PROGRAMS))
def test_a_graph_that_raises_leaves_no_trace(program):
    calls = [f"f(T(3), {k})" for k in (GOOD, BAD, GOOD, BAD)]
    seen = check(program.source, *calls)
    assert seen.graphs and "MD232" not in seen.reasons and "MD306" not in seen.skips


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_gradients_through_batch_norm_in_a_try_block(backend):
    def step(module, x, k):
        try:
            y = module(x)
            return (y[k] * x).sum()
        except IndexError:
            return None

    results = []
    for compiled in (False, True):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
        run = minidynamo.optimize(backend)(step) if compiled else step
        x = torch.randn(4, 3)
        with watching() as seen:
            for index in (1, 9, 2):
                loss = run(module, x, torch.tensor([index]))
                if loss is not None:
                    loss.backward()
        results.append([*(p.grad for p in module.parameters()), *module.buffers()])
        assert bool(seen.graphs) is compiled and "MD232" not in seen.reasons
    for want, got in zip(*results, strict=True):
        assert torch.equal(want, got)


def test_a_tensor_that_a_graph_saved_before_is_still_good():
    """The version is put back: what is written and undone does not count as changed for `backward`."""
    stop = []

    def backend(module, inputs):
        def run(*values):
            made = module.forward(*values)
            if stop:
                raise RuntimeError("stopped")
            return made

        return run

    @minidynamo.optimize(backend)
    def f(x):
        try:
            with torch.no_grad():
                return x.add_(1)
        finally:
            stop.append(2)

    w = torch.ones(2, requires_grad=True)
    x = torch.ones(2)
    f(x)
    y = (w * x).sum()
    version = x._version
    stop.append(1)
    z = x[:1]
    f(x)  # the graph raises behind its write; plain Python adds one
    assert x._version == version + 1 == z._version and torch.equal(x, torch.full((2,), 3.0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_in_such_a_graph(error):
    stop = []

    def backend(module, inputs):
        def run(*values):
            made = module.forward(*values)
            if stop and len(values) == 1:
                stop.clear()
                raise error
            return made

        return run

    seen = []

    @minidynamo.optimize(backend)
    def f(x):
        try:
            minidynamo.graph_break()
            return x.add_(1) * 2
        except KeyboardInterrupt:
            seen.append(x.tolist())
            return x

    f(torch.ones(2))
    stop.append(1)
    x = torch.ones(2)
    f(x)
    assert seen == ([[1.0, 1.0]] if error is KeyboardInterrupt else [])
    assert x.tolist() == ([1.0, 1.0] if error is KeyboardInterrupt else [2.0, 2.0])


def test_what_autograd_knows_of_a_tensor_is_not_undone():
    source = """
    def f(x, k):
        y = x * 2
        try:
            y.mul_(x)
            return y[k]
        except IndexError:
            return y
    def g(y, k):
        z = y + 1
        try:
            y.mul_(y)
            return z[k]
        except IndexError:
            return y, z
    """
    leaf = "T(3, requires_grad=True)"
    fresh = check(source, *[f"f({leaf}, {k})" for k in (GOOD, BAD)])
    assert fresh.reasons == []  # what the graph makes dies with it
    given = check(
        source.replace("g(y", "f(y").replace("f(x", "h(x"), *[f"f({leaf} * 1, {k})" for k in (GOOD, BAD)]
    )
    assert "MD232" in given.reasons


def test_outside_of_blocks_nothing_is_copied():
    copied = []

    def f(x):
        return x.add_(1)

    def backend(module, inputs):
        return module.forward

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(undo, "saved", lambda tensor: copied.append(tensor) or (tensor, tensor.clone(), None))
        minidynamo.optimize(backend)(f)(T(2))
        assert not copied

        def g(x):
            try:
                return x.add_(1)
            finally:
                pass

        minidynamo.optimize(backend)(g)(T(2))
    assert len(copied) == 1
