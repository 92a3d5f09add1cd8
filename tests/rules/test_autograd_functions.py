"""`apply` of the user's autograd functions: one node where forward and backward do nothing but compute, plain Python else."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from tests.eager import Module, check, watching

FUNCTIONS = """
    seen = []
    scale = 3.0
    weight = torch.full((3,), 2.0)

    def function(forward, backward, setup_context=None):
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        if setup_context:
            members["setup_context"] = staticmethod(setup_context)
        return type("Made", (torch.autograd.Function,), members)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x + 1000

    class Power(torch.autograd.Function):
        @staticmethod
        def forward(x, n, unused=None):
            return x ** n
        @staticmethod
        def setup_context(ctx, inputs, output):
            x, n, _ = inputs
            ctx.n = n
            ctx.save_for_backward(x, output)
        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * ctx.n * y / x + 1, None, None

    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.sign(x)
        @staticmethod
        def backward(ctx, g):
            return g.clamp(-1, 1) * scale

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            z = x.clone()
            z.mul_(y)
            where = x.argsort()
            ctx.mark_non_differentiable(where)
            return z, x + y, where
        @staticmethod
        def backward(ctx, a, b, _):
            x, y = ctx.saved_tensors
            dx = a * y + b if ctx.needs_input_grad[0] else None
            dy = a * x + b if ctx.needs_input_grad[1] else None
            return dx, dy

    class Reversal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.alpha = alpha
            return x.view_as(x)
        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return -g * ctx.alpha, None

    class Noise(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = torch.rand_like(x)
            ctx.save_for_backward(mask)
            return x * mask
        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    class Layer(torch.nn.Module):
        def forward(self, x):
            return Cube.apply(x) + Straight.apply(x)

    layer = Layer()

    def grads(result, *inputs):
        leaves = [x for x in inputs if x.requires_grad]
        parts = result if isinstance(result, tuple) else (result,)
        total = sum((p * p.detach().cos()).sum() for p in parts if p.requires_grad)
        return [p.detach() for p in parts], torch.autograd.grad(total, leaves, allow_unused=True) if leaves else ()

    def run(*inputs):
        return grads(f(*inputs), *inputs)

    def leaf(*shape):
        return (T(*shape) / 3).requires_grad_()
"""

CAPTURED: dict[str, tuple[str, tuple[str, ...]]] = {
    "saved tensors": (
        "def f(x): return Cube.apply(x + 1) * 2",
        ("run(leaf(3))", "run(leaf(3))", "run(T(3))"),
    ),
    "setup_context": (
        "def f(x): return Power.apply(x, 3) + Power.apply(x, 2.0, None)",
        ("run(leaf(3))", "run(T(3))"),
    ),
    "nothing saved": ("def f(x): return Straight.apply(x * 2)", ("run(leaf(3))",)),
    "several tensors": (
        "def f(x, y): return Two.apply(x, y)",
        ("run(leaf(3), leaf(3))", "run(leaf(3), T(3))", "run(T(3), leaf(3))", "run(T(3), T(3))"),
    ),
    "a view": ("def f(x): return Reversal.apply(x * 1, 0.5) + 1", ("run(leaf(3))",)),
    "in a module": ("def f(x): return layer(x).sum(dim=0)", ("run(leaf(3))", "run(T(3))")),
    "without gradients": (
        "def f(x):\n    with torch.no_grad():\n        y = Cube.apply(x)\n    return y + Cube.apply(x)",
        ("run(leaf(3))",),
    ),
    "random": ("def f(x): return Noise.apply(x) + torch.rand(3)", ("run(leaf(3))", "run(leaf(3))")),
}


def program(body: str) -> str:
    return "\n".join([FUNCTIONS, *(f"    {line}" for line in body.splitlines())])


@pytest.mark.parametrize("name", CAPTURED)
def test_captured(name):
    body, calls = CAPTURED[name]
    seen = check(program(body), *calls)
    assert seen.graphs and not seen.breaks and "MD304" not in seen.skips, (seen.breaks, seen.skips)


@pytest.mark.parametrize("name", ["saved tensors", "setup_context", "several tensors"])
def test_captured_with_aot(name):
    """AOTAutograd traces forward and backward: numbers are eager's."""
    body, calls = CAPTURED[name]
    sides = []
    for backend in (None, "aot_eager"):
        module = Module(program(body))
        if backend is not None:
            module.names["f"] = minidynamo.optimize(backend, nopython=True)(module.names["f"])
        sides.append([eval(call, module.names) for call in calls])
    for (left, left_grads), (right, right_grads) in zip(*sides, strict=True):
        torch.testing.assert_close(left, right)
        torch.testing.assert_close(left_grads, right_grads)


G = "lambda ctx, g: g"
LEFT: dict[str, str] = {
    "forward prints": f"F1 = function(lambda ctx, x: print('forward') or x * 2, {G})",
    "backward prints": "F1 = function(lambda ctx, x: x * 2, lambda ctx, g: print('backward') or g)",
    "forward counts": f"F1 = function(lambda ctx, x: seen.append(1) or x * 2, {G})",
    "backward counts": "F1 = function(lambda ctx, x: x * 2, lambda ctx, g: seen.append(1) or g)",
    "forward gives its argument": f"F1 = function(lambda ctx, x: x, {G})",
    "forward writes its argument": f"F1 = function(lambda ctx, x: ctx.mark_dirty(x) or x.add_(1), {G})",
    "forward writes a view of it": f"F1 = function(lambda ctx, x: x[:1].zero_() + x * 2, {G})",
    "forward reads a number of it": f"F1 = function(lambda ctx, x: x * x.sum().item(), {G})",
    "forward branches on it": f"F1 = function(lambda ctx, x: x * 2 if x.sum() > 0 else x * 3, {G})",
    "forward reads another tensor": f"F1 = function(lambda ctx, x: x * weight, {G})",
    "forward gives a number too": "F1 = function(lambda ctx, x: (x * 2, 3), lambda ctx, g, h: g)",
    "forward gives a list": "F1 = function(lambda ctx, x: [x * 2], lambda ctx, g: g)",
    "backward gives too much": "F1 = function(lambda ctx, x: x * 2, lambda ctx, g: (g, g))",
    "gradients are not made": "F1 = function(lambda ctx, x: ctx.set_materialize_grads(False) or x * 2, lambda ctx, g: g)",
    "backward records": "def back(ctx, g):\n    with torch.enable_grad():\n        return g * 1\n"
    "F1 = function(lambda ctx, x: x * 2, back)",
    "no forward": "F1 = type('F1', (torch.autograd.Function,), {})",
}


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.filterwarnings("ignore")
def test_left_to_plain_python(name):
    body = (
        LEFT[name]
        + "\ndef f(x):\n    y = x * 2\n    z = F1.apply(y)\n    return z[0] if type(z) is tuple else z"
    )
    seen = check(program(body), "run(leaf(3))", "len(seen)", "run(T(3))", "len(seen)")
    assert len(seen.breaks) >= 1


def test_not_after_changes_that_the_graph_is_before():
    body = "def f(x):\n    global scale\n    scale = 5.0\n    return Straight.apply(x)"
    seen = check(program(body), "run(leaf(3))", "run(leaf(3))")
    assert seen.reasons


BETWEEN = {
    "another forward": "setattr(Cube, 'forward', staticmethod(lambda ctx, x: ctx.save_for_backward(x) or x * 7))",
    "another backward": "setattr(Cube, 'backward', staticmethod(lambda ctx, g: g * 50))",
    "a constant that backward reads": "globals().__setitem__('scale', 8.0)",
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", BETWEEN)
def test_changes_between_calls_are_seen(name, backend):
    results = []
    for optimized in (False, True):
        module = Module(program("def f(x): return Cube.apply(x) + Straight.apply(x)"))
        if optimized:
            module.names["f"] = minidynamo.optimize(backend)(module.names["f"])
        for call in ("run(leaf(3))", BETWEEN[name], "run(leaf(3))"):
            made = eval(call, module.names)
            results.append(None if made is None else (made[0][0].tolist(), made[1][0].tolist()))
    assert results[:3] == results[3:]


@pytest.mark.slow
def test_classes_that_are_made_in_each_call():
    """The graph does not keep a class alive, and another class is not taken for it."""
    import gc
    import weakref

    def make(factor):
        class Times(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * factor

            @staticmethod
            def backward(ctx, g):
                return g * factor

        return Times

    @minidynamo.optimize("eager")
    def f(x, function):
        return function.apply(x) + 1

    with watching() as seen:
        for factor in (2.0, 3.0):
            times = make(factor)
            x = torch.ones(2, requires_grad=True)
            y = f(x, times)
            y.sum().backward()
            assert y.tolist() == [factor + 1] * 2 and x.grad.tolist() == [factor] * 2
            gone = weakref.ref(times)
            del times, y
            gc.collect()
            assert gone() is None
    assert seen.graphs == 2
