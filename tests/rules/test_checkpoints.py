"""`torch.utils.checkpoint` without reentry: one node whose inner graph runs again in backward; results, gradients, random numbers and what
autograd keeps are eager's."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import minidynamo
from minidynamo.graph import regions
from tests.eager import check, programs

SETUP = r"""
import functools
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
a, b = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5))
norm = nn.BatchNorm1d(4)
layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g

def run(n=0):
    x = T(2, 4, requires_grad=True)
    y = f(x)
    tensors = [t for t in (y if isinstance(y, tuple) else [y]) if isinstance(t, torch.Tensor)]
    sum(t.sum() for t in tensors if t.requires_grad).backward()
    parameters = [*a.parameters(), *b.parameters(), *layers.parameters()]
    grads = [x.grad, *(p.grad for p in parameters)]
    for p in parameters:
        p.grad = None
    return y, grads, torch.get_rng_state(), [t.clone() for t in norm.buffers()]
"""
CAPTURED = programs(
    r"""
# dropout draws the same numbers again:
#   run()
#   run()
def f(x):
    return checkpoint(b, checkpoint(b, a(x), use_reentrant=False) * 2, use_reentrant=False)

# options:
#   run()
def f(x):
    return checkpoint(b, x.sin(), use_reentrant=False, preserve_rng_state=False, early_stop=False, determinism_check="none")

# several results, some no tensors:
#   run()
def f(x):
    def g(x, y, k=1.0):
        return x * y * k, None, 3, x, (x - y).sum()
    return checkpoint(g, x.exp(), x + 1, k=2.0, use_reentrant=False)

# closures, keywords, partials:
#   run()
def f(x):
    w = x.exp()
    def g(t, mask=None, **kw):
        return (t * w).sin() * mask + kw["z"]
    mask, kw = torch.ones(4), {"z": w * 2}
    return functools.partial(checkpoint, use_reentrant=False)(functools.partial(g, mask=mask, **kw), x.cos()) + w

# layers in a loop:
#   run()
def f(x):
    seen = ()
    for layer in layers:
        seen += (x,)
        x = checkpoint(layer.__call__, x, use_reentrant=False)
    return x, *seen

# in place in its own tensors, and a view that is changed later:
#   run()
def f(x):
    y = x * 2
    z = checkpoint(lambda t: t.view(8), y, use_reentrant=False)
    z.mul_(2)
    return checkpoint(lambda t: F.relu(a(t), inplace=True) * 2, y, use_reentrant=False)

# a custom autograd function, and nothing at all:
#   run()
def f(x):
    y = checkpoint(lambda t: Square.apply(t.sin()).exp(), x, use_reentrant=False)
    z = checkpoint(lambda t: t, y, use_reentrant=False)
    return z, z is y

# grad modes inside:
#   (run(), torch.is_grad_enabled())
#   (run(), torch.is_grad_enabled())
def f(x):
    def g(t):
        with torch.no_grad():
            y = b(t).exp()
            with torch.enable_grad():
                z = t.sin()
        return (t * y).sin() + z.exp()
    return checkpoint(g, x * 1, use_reentrant=False)

# changes before and after:
#   run()
#   count, a.seen
count = 0
def f(x):
    global count
    count += 1
    a.seen = [count]
    y = checkpoint(lambda t: t.sin() * count, x * 1, use_reentrant=False)
    a.seen.append(count)
    return y

# without gradients, and under autocast:
#   run()
def f(x):
    with torch.no_grad():
        y = checkpoint(b, x, use_reentrant=False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return checkpoint(a, x * y, use_reentrant=False)
"""
)
BROKEN = programs(
    r"""
# what fn changes:
#   run()
def f(x):
    seen, n = [], 0
    def g(t):
        nonlocal n
        n += 1
        seen.append(t.sin())
        return t.cos()
    return checkpoint(g, x * 1, use_reentrant=False), n, len(seen)

# a list that was stored before:
#   run()
#   len(a.seen)
def f(x):
    a.seen = []
    def g(t):
        a.seen.append(1)
        return t.cos()
    return checkpoint(g, x * 1, use_reentrant=False)

# a number outside:
#   run()
#   count
count = 0
def f(x):
    def g(t):
        global count
        count += 1
        return t.cos()
    return checkpoint(g, x * 1, use_reentrant=False)

# a tensor that is given, and running statistics:
#   run()
def f(x):
    y = x * 1
    return checkpoint(lambda t: t.add_(1) * 2, y, use_reentrant=False) + checkpoint(norm, y, use_reentrant=False)

# torch's state:
#   run()
def f(x):
    def g(t):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return a(t)
    return checkpoint(g, x * 1, use_reentrant=False)

# fn raises:
#   run()
def f(x):
    y = x * 1
    def g(t):
        raise ValueError("no")
    try:
        return checkpoint(g, y, use_reentrant=False)
    except ValueError as error:
        return y * len(str(error))

# one inside another, a number read, an iterator:
#   run()
def f(x):
    y = x * 1
    it = iter((2, 3))
    y = checkpoint(lambda t: checkpoint(torch.sin, t, use_reentrant=False) * 2, y, use_reentrant=False)
    y = checkpoint(lambda t: t * t.sum().item(), y, use_reentrant=False)
    return checkpoint(lambda t, it: t * next(it), y, it, use_reentrant=False), next(it)

# with reentry, with contexts:
#   run()
import contextlib
def f(x):
    y = checkpoint(a, x * 1, use_reentrant=True)
    contexts = lambda: (contextlib.nullcontext(), contextlib.nullcontext())
    return checkpoint(a, y, use_reentrant=False, context_fn=contexts)

# fn prints, twice:
#   run()
def f(x):
    def g(t):
        y = t.sin()
        print("in")
        return y.exp()
    return checkpoint(g, x * 1, use_reentrant=False) * 2
"""
)


@pytest.mark.parametrize("program", CAPTURED)
def test_captured(program):
    assert check(SETUP + program.source, *program.calls).reasons == []


@pytest.mark.parametrize("program", BROKEN)
def test_left_to_plain_python(program):
    assert check(SETUP + program.source, *program.calls).breaks


def test_backends_that_compile_break():
    program = (
        SETUP.replace("return y,", "return y.detach(),")
        + "def f(x):\n    return checkpoint(b, x * 2, use_reentrant=False)\n"
    )
    assert check(program, "run()", backend="aot_eager").reasons == ["MD220"]


@pytest.mark.slow
def test_nothing_is_kept_but_what_goes_in():
    """Between forward and backward no tensor that `fn` computed lives."""
    made = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                made.append(weakref.ref(result.untyped_storage()))
            return result

    def watched(module, inputs):
        def run(*args):
            with Watch():
                return module.forward(*args)

        return run

    def chain(t):
        return t.sin().exp().tanh().sigmoid().sum()

    backend = minidynamo.backends.registry.Backend("watched", watched, needs_meta=False)
    living = []
    for block in (chain, lambda x: checkpoint(chain, x, use_reentrant=False)):
        made.clear()
        y = minidynamo.optimize(backend, nopython=True)(block)(torch.ones(3, requires_grad=True))
        gc.collect()
        assert len(made) >= 5
        living.append(sum(ref() is not None for ref in made))
        y.backward()
    assert living[1] == 1 < living[0]


def test_the_inner_graph_dies_with_its_entry():
    fn = minidynamo.optimize("eager", nopython=True)(
        lambda x: checkpoint(lambda t: t.sin().exp(), x, use_reentrant=False)
    )
    fn(torch.ones(3, requires_grad=True)).sum().backward()
    inner = [each for each in gc.get_objects() if type(each) is regions.Checkpoint]
    assert inner
    refs = [weakref.ref(each.module) for each in inner]
    del inner, fn
    minidynamo.reset()
    gc.collect()
    assert not any(ref() is not None for ref in refs)


def test_backward_inside_of_a_captured_function():
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def step(x):
        y = checkpoint(layer, x * 2, use_reentrant=False)
        y.sum().backward()
        return y.detach() + 1

    results = []
    for fn in (step, minidynamo.optimize("eager")(step)):
        for _ in range(2):
            torch.manual_seed(1)
            layer.zero_grad()
            results.append((fn(torch.ones(2, 4)), [p.grad.clone() for p in layer.parameters()]))
    for result, grads in results[1:]:
        assert torch.equal(result, results[0][0])
        assert all(map(torch.equal, grads, results[0][1]))
