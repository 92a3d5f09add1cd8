"""Training: gradients, optimizers, in-place operations, tensor data in Python, random numbers. All as plain Python does it."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

import minidynamo
from tests.eager import T, check, programs

PROGRAMS = """
# backward outside:
#   run()
#   run()
def f(w, x):
    return torch.relu(x @ w).mean()

def run():
    w = T(3, 2, requires_grad=True)
    f(w, T(4, 3)).backward()
    return w.grad

# backward inside:
#   run()
#   run()
def f(w, x):
    loss = (x @ w).pow(2).mean()
    loss.backward()
    return loss.detach() * 2, w.grad + 1

def run():
    w = T(3, 2, requires_grad=True)
    return f(w, T(4, 3)), w.grad

# gradients accumulate:
#   run()
def f(w, x):
    for i in range(3):
        (w * x * (i + 1)).sum().backward()
    return w.grad * 1

def run():
    w = T(3, requires_grad=True)
    return f(w, T(3)), f(w, T(3)), w.grad

# zero_grad and set to none:
#   run(True)
#   run(False)
def f(model, optimizer, x, none):
    optimizer.zero_grad(set_to_none=none)
    model(x).sum().backward()
    return x * 2

def run(none):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    f(model, optimizer, T(2, 3), none)
    f(model, optimizer, T(2, 3) + 1, none)
    return [p.grad for p in model.parameters()]

# SGD with momentum inside:
#   run()
def f(model, optimizer, x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()

def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=0.1)
    return [f(model, optimizer, T(2, 3) * i) for i in range(4)], [p.detach() for p in model.parameters()]

# AdamW inside:
#   run()
def f(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()

def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    return [f(model, optimizer, T(2, 3) * i) for i in range(4)], [p.detach() for p in model.parameters()]

# clipping inside:
#   run()
def f(model, x):
    loss = model(x).square().sum()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
    return norm * 1

def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    return f(model, T(4, 3)), [p.grad for p in model.parameters()]

# a scheduler:
#   run()
def f(model, optimizer, scheduler, x):
    model(x).sum().backward()
    optimizer.step()
    scheduler.step()
    return x * scheduler.get_last_lr()[0]

def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    return [f(model, optimizer, scheduler, T(2, 3)) for _ in range(3)], [p.detach() for p in model.parameters()]

# grad inside:
#   f(T(3, requires_grad=True))
#   f(T(3, requires_grad=True))
def f(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x)
    return g * 2

# double backward:
#   run()
def f(x):
    return (x ** 3).sum()

def run():
    x = T(3, requires_grad=True)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h

# gradient penalty inside:
#   run()
def f(w, x):
    y = (w * x).sin().sum()
    (g,) = torch.autograd.grad(y, w, create_graph=True)
    loss = y + g.square().sum()
    loss.backward()
    return loss.detach() + 1

def run():
    w = T(3, requires_grad=True)
    return f(w, T(3)), w.grad

# an autograd function:
#   run()
#   run()
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x + 1000

def f(x):
    y = x + 1
    return (Cube.apply(y) * 2).sum()

def run():
    x = T(3, requires_grad=True)
    y = f(x)
    y.backward()
    return y, x.grad

# in place on an input:
#   run(False)
#   run(True)
def f(x, w):
    x.add_(1)
    x[0] = 7
    x[1:].mul_(2)
    return (x * w).sum()

def run(grad):
    x, w = T(4), T(4, requires_grad=grad)
    before = x._version
    y = f(x, w)
    if grad:
        y.backward()
    return y, x, w.grad, x._version - before

# in place on a view of an input:
#   run()
def f(x):
    v = x.view(2, 2)[0]
    v.add_(1)
    v *= 3
    return x * 2, v

def run():
    x = T(4)
    y, v = f(x)
    v.add_(100)
    return x, y, x._version, v._base is x

# in place gains a history:
#   run()
def f(x, w):
    x.mul_(w)
    return x.sum() + 1

def run():
    x, w = T(3), T(3, requires_grad=True)
    y = f(x, w)
    y.backward()
    return x, x.requires_grad, x.is_leaf, w.grad

# in place on a view gains a history:
#   run()
def f(w):
    out = torch.zeros(4)
    v = out[1:3]
    v.copy_(w)
    out[0] = w.sum()
    return out * 2, v

def run():
    w = T(2, requires_grad=True)
    out, v = f(w)
    out.sum().backward()
    return out, v, w.grad

# in place on a leaf fails:
#   f(T(3, requires_grad=True))
#   g(T(3, requires_grad=True))
def f(w):
    y = w + 1
    w.add_(1)
    return y

def g(w):
    with torch.no_grad():
        w.add_(1)
    return f(w)

# what backward needs was changed in place:
#   run()
def f(x):
    y = x.exp()
    z = y * 2
    y.add_(1)
    return z.sum()

def run():
    x = T(3, requires_grad=True)
    try:
        f(x).backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error), x.grad

# what backward needs was changed outside:
#   run()
def f(x, w):
    return (x * w).sum()

def run():
    x, w = T(3), T(3, requires_grad=True)
    y = f(x, w)
    x.add_(1)
    try:
        y.backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error), w.grad

# detach:
#   run()
def f(x):
    y = x.detach()
    y2 = (x * 2).detach()
    return y * 3, y, (x * y2).sum()

def run():
    x = T(3, requires_grad=True)
    a, y, s = f(x)
    s.backward()
    y.add_(1)
    return a, y, s, x, x.grad, y._base is None

# requires_grad_ inside:
#   run()
def f(x):
    y = (x * 2).requires_grad_()
    z = (y * y).sum()
    return y, z, y.is_leaf, z.requires_grad

def run():
    y, z, leaf, needs = f(T(3))
    z.backward()
    return y, leaf, needs, y.grad

# requires_grad_ on an input:
#   run()
def f(x):
    x.requires_grad_(True)
    return (x * x).sum()

def run():
    x = T(3)
    f(x).backward()
    return x.grad, x.requires_grad

# data:
#   run()
def f(x):
    x.data.mul_(2)
    x.data[0] = 9
    y = x.data + 1
    return y, x * 1

def run():
    x = T(3, requires_grad=True)
    y, z = f(x)
    z.sum().backward()
    return y, z, x, x.grad, x._version

# data is exchanged:
#   run()
def f(x, y):
    z = x + 1
    x.data = y
    return z, x * 2

def run():
    x = T(3)
    return f(x, T(2)), x

# grad is assigned:
#   run()
def f(w, g):
    y = w * 2
    w.grad = g * 3
    return y.sum()

def run():
    w = T(3, requires_grad=True)
    f(w, T(3)).backward()
    return w.grad

# hooks on tensors:
#   run()
log = []
def f(x):
    y = x * 2
    y.register_hook(lambda g: log.append(g.sum().item()) or g * 10)
    return (y * y).sum()

def run():
    x = T(3, requires_grad=True)
    f(x).backward()
    return x.grad

# hooks on inputs:
#   run()
log = []
def f(x):
    y = x * 2
    return (y * y).sum()

def run():
    x = T(3, requires_grad=True)
    x.register_hook(lambda g: log.append(float(g.sum())) or g * 10)
    x.register_post_accumulate_grad_hook(lambda p: log.append(float(p.grad.sum())))
    f(x).backward()
    return x.grad

# checkpoint:
#   run(True)
#   run(False)
from torch.utils.checkpoint import checkpoint

def block(x, w):
    return torch.relu(x @ w).sin()

def f(x, w, reentrant):
    y = checkpoint(block, x, w, use_reentrant=reentrant)
    return (y * 2).sum()

def run(reentrant):
    x, w = T(2, 3, requires_grad=True), T(3, 3, requires_grad=True)
    f(x, w, reentrant).backward()
    return x.grad, w.grad

# retain_grad:
#   run()
def f(x):
    y = x * 2
    y.retain_grad()
    return y, (y * y).sum()

def run():
    x = T(3, requires_grad=True)
    y, z = f(x)
    z.backward()
    return y.grad, x.grad

# grad of an input is read:
#   run()
def f(x):
    if x.grad is None:
        return x * 2
    return x * x.grad

def run():
    x = T(3, requires_grad=True)
    f(x).sum().backward()
    return f(x), x.grad

# saved tensors hooks (plain):
#   run()
log = []
def f(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: log.append("pack") or t, lambda t: t):
        y = x.exp()
    return y.sum()

def run():
    x = T(3, requires_grad=True)
    f(x).backward()
    return x.grad

# item:
#   f(T(3))
#   f(T(3) + 1)
def f(x):
    n = x.sum().item()
    return x * n, n

# float, int, bool, index:
#   f(T(1))
#   f(T(1) * 0)
def f(x):
    y = x * 2
    a = float(y), int(y), complex(y)
    if y:
        y = y + 1
    return y, a, [10, 20, 30][(y * 0).long()], not y

# tolist:
#   f(T(2, 2))
def f(x):
    y = x * 2
    return y.tolist(), sum(y[0].tolist()) + x

# numpy:
#   f(T(3))
import numpy as np
def f(x):
    y = x * 2
    a = y.numpy()
    a[0] = 5
    b = np.asarray(x + 1)
    return y + 1, a.sum(), torch.from_numpy(b) * 2, np.array(y).tolist()

# numpy of one that needs a gradient:
#   f(T(3, requires_grad=True))
def f(x):
    y = x * 2
    try:
        y.numpy()
    except RuntimeError as error:
        return y.detach().numpy().tolist(), "requires grad" in str(error)

# printing and formatting:
#   f(T(2))
def f(x):
    y = x * 2
    return f"{y.sum():.2f} {y.shape}", str(y), y + 1

# data decides:
#   f(T(3))
#   f(-T(3))
def f(x):
    y = x * 2
    while y.sum() > 1:
        y = y / 2
    assert torch.isfinite(y).all()
    return y if y.any() else None

# random numbers:
#   f(T(100))
#   f(T(100))
def f(x):
    a = torch.rand(3) + torch.randn(3) * x[:3]
    b = torch.nn.functional.dropout(x, 0.5)
    c = torch.bernoulli(torch.full((4,), 0.5))
    d = torch.randperm(5), torch.randint(0, 10, (3,)), torch.multinomial(x, 2)
    e = torch.rand_like(x), torch.empty(3).normal_(), torch.zeros(2).uniform_(1, 2), torch.empty(2).exponential_()
    return a, b, c, d, e, torch.rand(2)

# random numbers with a generator:
#   f(T(3))
def f(x):
    g = torch.Generator().manual_seed(3)
    return x + torch.rand(3, generator=g), torch.randn(2, generator=g)

# the seed is set inside:
#   f(T(3))
def f(x):
    torch.manual_seed(7)
    a = torch.rand(3) + x
    state = torch.get_rng_state()
    b = torch.rand(3)
    torch.set_rng_state(state)
    return a, b, torch.rand(3)

# random numbers of Python and numpy:
#   run()
import random
import numpy as np
def f(x):
    return x * random.random() + float(np.random.rand()) + torch.rand(1)

def run():
    random.seed(0)
    np.random.seed(0)
    return f(T(3)), f(T(3)), random.random(), np.random.rand()

# outputs that are inputs:
#   run()
def f(x, y):
    z = x + y
    return x, z, z, [y, (z, x)], {"x": x}

def run():
    x, y = T(3), T(3) + 1
    a, z, z2, (y2, (z3, x2)), d = f(x, y)
    return a is x, z is z2, z3 is z, y2 is y, x2 is x, d["x"] is x

# outputs that alias inputs:
#   run()
def f(x):
    return x.view(-1), x[0], x.t(), x.detach(), x.expand(2, 2, 2), x.reshape(4), x.contiguous(), x.to(torch.float32)

def run():
    x = T(2, 2)
    made = f(x)
    made[0].add_(1)
    return x, made, [m.data_ptr() == x.data_ptr() for m in made], [m._base is x for m in made], made[6] is x

# out= and copies:
#   run()
def f(x, out):
    torch.add(x, 1, out=out)
    out2 = torch.empty(3)
    out2.copy_(x)
    return out2 * out

def run():
    out = torch.zeros(3)
    return f(T(3), out), out

# grad modes:
#   run()
def f(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    c = x * 4
    return a, b, c, torch.is_grad_enabled()

@torch.no_grad()
def g(x):
    return f(x)

def run():
    x = T(3, requires_grad=True)
    return f(x), g(x), [t.requires_grad for t in (*f(x)[:3], *g(x)[:3])]

# averaging of weights:
#   run()
def f(model, average, x):
    y = model(x).sum()
    y.backward()
    with torch.no_grad():
        for p, a in zip(model.parameters(), average.parameters()):
            p.sub_(p.grad, alpha=0.1)
            a.lerp_(p, 0.5)
            p.grad = None
    return y.detach()

def run():
    torch.manual_seed(0)
    model, average = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    out = [f(model, average, T(2, 3)) for _ in range(3)]
    return out, [p.detach() for p in (*model.parameters(), *average.parameters())]

# frozen parameters:
#   run()
def f(model, x):
    return model(x).sum()

def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    f(model, T(2, 3)).backward()
    for p in model[0].parameters():
        p.requires_grad_(False)
        p.grad = None
    f(model, T(2, 3)).backward()
    return [p.grad for p in model.parameters()]
"""


@pytest.mark.parametrize("program", programs(PROGRAMS))
def test_programs(program):
    program.check()


# --- the same under both backends -------------------------------------------------------------------------------------------

BACKENDS = ["eager", "aot_eager"]
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.05),
    "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
    "Adam, foreach": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True, foreach=True),
}


class Net(torch.nn.Module):
    """Convolution, normalisation with running statistics, dropout, weights that are used twice."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 3, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(3)
        self.drop = torch.nn.Dropout(0.25)
        self.out = torch.nn.Linear(12, 12)

    def forward(self, x):
        x = torch.relu_(self.norm(self.conv(x)))
        x = self.drop(x.flatten(1))
        return self.out(torch.nn.functional.gelu(self.out(x)))


def pair():
    torch.manual_seed(0)
    net = Net()
    return net, deepcopy(net)


def same_state(left, right):
    for (name, mine), other in zip(left.state_dict().items(), right.state_dict().values()):
        torch.testing.assert_close(mine, other, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_training_loop_with_the_optimizer_outside(backend, make):
    net, plain = pair()
    captured = minidynamo.optimize(backend, nopython=True)(net)
    for model, call in ((net, captured), (plain, plain)):
        torch.manual_seed(1)
        optimizer = make(model.parameters())
        for step in range(4):
            call.train(step != 2)
            loss = torch.nn.functional.mse_loss(call(torch.randn(5, 1, 2, 2)), torch.ones(5, 12))
            loss.backward()
            if step % 2:  # gradients of two steps
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
    same_state(net, plain)
    assert sum(entry.hits for _, entry in minidynamo.compiled_frames(captured)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_training_step_with_the_optimizer_inside(backend, make):
    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = []
    models = pair()
    for model, fn in zip(models, (minidynamo.optimize(backend)(step), step)):
        torch.manual_seed(1)
        optimizer = make(model.parameters())
        losses.append([fn(model, optimizer, torch.randn(5, 1, 2, 2)) for _ in range(3)])
        state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
        losses.append(state)
    torch.testing.assert_close(losses[0], losses[2])
    torch.testing.assert_close(losses[1], losses[3])
    same_state(*models)


def draws(x):
    a = torch.rand(3) + torch.randn(3) + x[:3]
    b = torch.nn.functional.dropout(x, 0.3)
    c = torch.bernoulli(torch.full((6,), 0.5)), torch.randperm(7), torch.randint(0, 9, (4,))
    d = torch.rand_like(x), torch.zeros(3).uniform_(), torch.empty(3).normal_(), torch.normal(0.0, 1.0, (2,))
    return a, b, c, d, torch.nn.functional.rrelu(x, training=True), torch.rand(1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_numbers_and_what_is_left_of_the_generator(backend):
    """Compiling takes no random numbers; captured code takes those of plain Python, in its order."""
    captured = minidynamo.optimize(backend, nopython=True)(draws)
    for seed in (0, 1):
        results = []
        for fn in (captured, draws):
            torch.manual_seed(seed)
            results.append((fn(T(8) - 3), torch.get_rng_state()))
        torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_in_the_backward_pass(backend):
    def f(x):
        return (torch.nn.functional.dropout(x, 0.5) * x).sum()

    captured, grads = minidynamo.optimize(backend)(f), []
    for fn in (captured, f):
        torch.manual_seed(3)
        x = T(50, requires_grad=True)
        fn(x).backward()
        grads.append((x.grad, torch.get_rng_state()))
    torch.testing.assert_close(*grads, rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_version_counters_of_written_inputs(backend):
    def f(x, y):
        x.add_(1)
        y[0] = 3
        return x * y

    captured = minidynamo.optimize(backend)(f)
    x, y = T(3), T(3)
    before = x._version, y._version
    captured(x, y)
    assert x._version > before[0] and y._version > before[1]
    saved = T(3, requires_grad=True)
    loss = (saved * x).sum()
    captured(x, y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_frame_with_and_without_gradients(backend):
    def f(x):
        return (x * x).sum()

    captured = minidynamo.optimize(backend)(f)
    for _ in range(2):
        assert not captured(T(3)).requires_grad
        x = T(3, requires_grad=True)
        captured(x).backward()
        assert torch.equal(x.grad, 2 * T(3))
        with torch.no_grad():
            assert not captured(x).requires_grad
    assert len(minidynamo.cache_entries(captured)) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_hooks_and_checkpoints_around_captured_functions(backend):
    from torch.utils.checkpoint import checkpoint

    def block(x, w):
        return torch.relu(x @ w).sin()

    results = []
    for fn in (minidynamo.optimize(backend)(block), block):
        x, w = T(2, 3, requires_grad=True), T(3, 3, requires_grad=True)
        seen = []
        y = checkpoint(fn, x, w, use_reentrant=False)
        y.register_hook(lambda g, seen=seen: seen.append(g.clone()))
        w.register_hook(lambda g: g * 2)
        fn(y, w).sum().backward()
        results.append((x.grad, w.grad, seen))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("backend", BACKENDS)
def test_identity_of_outputs(backend):
    def f(x, y):
        z = x * y
        return x, z, z, y, z.view(-1), (x,)

    captured = minidynamo.optimize(backend, nopython=True)(f)
    for grad in (False, True):
        x, y = T(2, 2, requires_grad=grad), T(2, 2)
        a, z, z2, b, v, (a2,) = captured(x, y)
        assert a is x and a2 is x and b is y and z is z2
        assert v.data_ptr() == z.data_ptr()
        if not grad:
            z.add_(1)
            assert torch.equal(v, z.view(-1))


def test_an_autograd_function_under_aot_eager():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x + 1000

    def f(x):
        return (Cube.apply(x + 1) * 2).sum()

    grads = []
    for fn in (minidynamo.optimize("aot_eager")(f), f):
        x = T(3, requires_grad=True)
        fn(x).backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_hooks_on_saved_tensors_see_the_programs_tensors_only():
    """Neither metadata nor verification runs them."""
    check(
        """
        log = []
        def g(x):
            return (torch.special.i0e(x) * x.erf()).cosh()
        f = g
        def run():
            x = T(3, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: log.append(tuple(t.shape)) or t, lambda t: t):
                y = f(x)
            y.sum().backward()
            return x.grad
        """,
        "run()",
        "run()",
    )
