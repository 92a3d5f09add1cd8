"""Tensors of the user's classes with `__torch_function__` (decision 19): inlined, with eager's results, types and attributes."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from tests.eager import check

CLASSES = """
    calls = []

    class Plus(torch.Tensor):
        '''Adds one to what mul gives.'''
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            return result + 1 if func in (torch.mul, torch.Tensor.mul) else result

    class Bare(torch.Tensor):
        pass

    class Noting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((func.__name__, [t.__name__ for t in types], len(args), sorted(kwargs or {})))
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    class Tagged(torch.Tensor):
        scale = 3
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs)
            tags = [getattr(a, "tag", None) for a in args if isinstance(a, Tagged)]
            if isinstance(result, Tagged):
                result.tag = "+".join(t for t in tags if t)
            return result
        def scaled(self):
            return self * self.scale
        @property
        def half(self):
            return self / 2

    HANDLED = {}
    def implements(fn):
        def mark(made):
            HANDLED[fn] = made
            return made
        return mark

    class Handled(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in HANDLED:
                return super().__torch_function__(func, types, args, kwargs)
            return HANDLED[func](*args, **(kwargs or {}))

    @implements(torch.sum)
    def handled_sum(x, dim=None):
        return x.as_subclass(torch.Tensor).sum() + 100

    @implements(F.relu)
    def handled_relu(x, inplace=False):
        return x.as_subclass(torch.Tensor).clamp(min=-1)

    class Loud(torch.Tensor):
        '''Has operators of its own.'''
        def __add__(self, other):
            return super().__add__(other) * 10
        def __radd__(self, other):
            return super().__add__(other) * 100
        def __neg__(self):
            return self
        def __getitem__(self, key):
            return super().__getitem__(key) + 5
        def __len__(self):
            return 77
        def sum(self, *args, **kwargs):
            return super().sum(*args, **kwargs) + 1

    class Switched(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Weight(torch.nn.Parameter):
        kind = "weight"

    class Duck:
        '''No tensor, but torch asks it.'''
        def __init__(self, x):
            self.x = x
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            plain = [a.x if isinstance(a, Duck) else a for a in args]
            return Duck(func(*plain, **(kwargs or {})))

    def one(cls, *shape, grad=False):
        return T(*shape, requires_grad=grad).as_subclass(cls)
"""

# name -> (the body of f, the calls). All are captured as one graph.
PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "functions and methods": (
        "def f(t, x): return torch.mul(t, 2), t.mul(x), t.sum(dim=0), F.relu(t), t.shape, t.dtype, t.T, len(t)",
        ("f(one(Plus, 2, 3), T(2, 3))", "f(one(Plus, 2, 3), T(2, 3))", "f(T(2, 3), T(2, 3))"),
    ),
    "operators": (
        "def f(t, x): return t + 1, 1 + t, 2 - t, t - x, x - t, t / 2, 2 / t, t ** 2, 2 ** t, t @ x, x @ t, -t, abs(t), "
        "t < 2, 2 < t, t == x, x != t, ~(t > 1), t // 2, t % 2, 5 // t, 5 % t",
        ("f(one(Plus, 2, 2), T(2, 2))", "f(one(Bare, 2, 2), T(2, 2))", "f(one(Noting, 2, 2), T(2, 2))"),
    ),
    "what is asked": (
        "def f(t, x):\n    return torch.cat([x, t], dim=0), F.max_pool2d(t[None], 2), torch.split(t, 1), t[0], t[:, 1], "
        "F.linear(x, t), F.softmax(t, dim=0), torch.einsum('ij->ji', t), torch.zeros_like(t), t.is_floating_point(), "
        "t.numel(), t.size(0), t.requires_grad, F.layer_norm(t, (2,))",
        ("f(one(Noting, 2, 2), T(2, 2))", "f(one(Noting, 2, 2), T(2, 2))"),
    ),
    "default wrapping": (
        "def f(t): return t.max(dim=0), t.split(1), t.shape, torch.max(t, 0).values, list(t), t.contiguous() is t, "
        "t.add(1) is t, t.float() is t, F.dropout(t, training=False) is t",
        ("f(one(Bare, 2, 2))", "f(one(Plus, 2, 2))", "f(one(Tagged, 2, 2))"),
    ),
    "attributes and methods": (
        "def f(t):\n    t.tag = 'a'\n    y = t.scaled() + t.half\n    y.more = 5\n    return y, y.tag, t.scale, hasattr(t, 'none'), "
        "getattr(t, 'none', 3), isinstance(t, Tagged), isinstance(y, torch.Tensor), type(y) is Tagged, issubclass(type(t), Tagged)",
        ("f(one(Tagged, 3))", "f(one(Tagged, 3))"),
    ),
    "attributes read": (
        "def f(t): return t + len(t.tag), t.tag",
        ("f(tagged('a'))", "f(tagged('a'))", "f(tagged('bc'))"),
    ),
    "a table of functions": (
        "def f(t): return torch.sum(t), F.relu(-t), torch.mul(t, 2)",
        ("f(one(Handled, 3))", "f(one(Handled, 3))", "HANDLED.pop(torch.sum) is None", "f(one(Handled, 3))"),
    ),
    "operators of its own": (
        "def f(t, x): return t + 1, 1 + t, x + t, t + x, -t, t[0], len(t), t.sum(), torch.sum(t), t - x",
        ("f(one(Loud, 3), T(3))", "f(one(Loud, 3), T(3))"),
    ),
    "switched off": (
        "def f(t, x): return t + 1, torch.mul(t, x), type(t).__name__, t.shape",
        (
            "f(one(Switched, 3), T(3))",
            "f(Weight(T(3)), T(3))",
            "f(Weight(T(3), False), T(3))",
            "f(one(Switched, 3), T(3))",
        ),
    ),
    "two classes": (
        "def f(a, b):\n    class_of = type(a * b).__name__\n    return class_of, b * a, torch.cat([a, b])",
        ("f(one(Sub, 3), one(Plus, 3))", "f(one(Plus, 3), one(Sub, 3))", "f(one(Plus, 3), one(Plus, 3))"),
    ),
    "made inside": (
        "def f(x):\n    t = x.as_subclass(Plus)\n    y = t * 2\n    return y, t, y.as_subclass(torch.Tensor), "
        "x.as_subclass(torch.Tensor) is x",
        ("f(T(3))", "f(T(3, requires_grad=True))"),
    ),
    "in place": (
        "def f(t, x):\n    t += 1\n    t.mul_(2)\n    t[0] = 5\n    x.add_(t)\n    torch.add(x, 1, out=None)\n    return t, x",
        ("f(one(Bare, 3), T(3))", "f(one(Plus, 3), T(3))"),
    ),
    "switched off by the program": (
        "def f(t):\n    with torch._C.DisableTorchFunctionSubclass():\n        y = t * 2\n    return y, t * 2",
        ("f(one(Plus, 3))", "f(one(Plus, 3))"),
    ),
    "called where it is switched off": (
        "def f(t): return t * 2, type(t + 1).__name__",
        ("f(one(Plus, 3))", "off(one(Plus, 3))", "f(one(Plus, 3))", "off(one(Plus, 3))"),
    ),
    "no tensor": (
        "def f(d, x): return torch.add(d, x).x, torch.sum(torch.mul(x, d), dim=0).x, F.relu(d).x",
        ("f(Duck(T(3)), T(3))", "f(Duck(T(3)), T(3))"),
    ),
    "grad modes": (
        "def f(t, x):\n    with torch.no_grad():\n        a = t * 2\n        b = x.as_subclass(Plus)\n    c = t * x\n"
        "    return a, b, c, c.sum()",
        (
            "f(one(Plus, 3, grad=True), T(3, requires_grad=True))",
            "no_grad(one(Plus, 3, grad=True), T(3, requires_grad=True))",
        ),
    ),
}
TAIL = """
    class Sub(Plus):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            return result - 7 if func is torch.Tensor.mul else result

    def tagged(text):
        t = one(Tagged, 3)
        t.tag = text
        return t

    def off(t):
        with torch._C.DisableTorchFunctionSubclass():
            return f(t)

    def no_grad(*args):
        with torch.no_grad():
            return f(*args)
"""


WITH_AOT = ("default wrapping", "made inside", "in place", "no tensor")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backend"),
    [*((name, "eager") for name in PROGRAMS), *((name, "aot_eager") for name in WITH_AOT)],
)
@pytest.mark.filterwarnings("ignore")
def test_as_eager(name, backend):
    body, calls = PROGRAMS[name]
    seen = check(program(body), *calls, backend=backend)
    assert seen.graphs and not seen.breaks and not seen.skips, (seen.breaks, seen.skipped)


def program(body: str) -> str:
    return "\n".join([CLASSES, TAIL, *(f"    {line}" for line in body.splitlines())])


SPOKEN = """class P(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(func.__name__, len(types))
        if func is torch.sub:
            raise ValueError("no sub")
        return super().__torch_function__(func, types, args, kwargs or {})
"""
# What ends or splits a graph: the rest runs as plain Python, with eager's prints and exceptions.
BREAKING = {
    "prints": SPOKEN + "def f(t): return len((t + 1) * 2)",
    "raises": SPOKEN + "def f(t):\n    y = t + 1\n    return torch.sub(y, 1)",
    "raises in a try": SPOKEN
    + "def f(t):\n    try:\n        return torch.sub(t, 1)\n    except ValueError as e:\n        return str(e)",
    "breaks outside": "P = Tagged\ndef f(t):\n    y = t * 2\n    y.tag = 'q'\n    print('hi')\n    return y * 1, y.tag, (y * 1).tag",
    "branches": "P = Plus\ndef f(t):\n    if t.sum() > 3:\n        return t * 2\n    return t - 1",
    "is shown": "P = Plus\ndef f(t): return str(t), repr(t * 1)",
    "is constructed": "class P(torch.Tensor): pass\ndef f(t): return P(t) * 2, torch.Tensor._make_subclass(P, t)",
    "is copied": "import copy\nP = Bare\ndef f(t): return copy.copy(t) * 1, copy.deepcopy(t)",
    "its dictionary is read": "P = Plus\ndef f(t):\n    y = t * 2\n    return vars(t), y",
    "takes out": "P = Plus\ndef f(t):\n    y = t * 1\n    torch.add(t, 1, out=y)\n    return y",
}


@pytest.mark.parametrize("name", BREAKING)
@pytest.mark.filterwarnings("ignore")
def test_breaks(name):
    seen = check(program(BREAKING[name]), "f(one(P, 3)), None", "(f(one(P, 3)), None)[1]", "f(one(P, 1))")
    assert seen.breaks or seen.skips


STEP = "def f(t): return t * 2 + t.sin()"
# What happens between two calls of `f(t)`, all of which a captured function must see.
BETWEEN = {
    "its class has another __torch_function__": "setattr(Plus, '__torch_function__', Noting.__torch_function__)",
    "its class has a method of its own": "setattr(Plus, 'sin', lambda self: self.cos())",
    "its class has an operator of its own": "setattr(Plus, '__mul__', lambda self, other: self - other)",
    "the instance has an attribute of that name": "setattr(t, 'sin', lambda: 100)",
    "its class has one attribute that was looked for": "setattr(Plus, 'looked_for', 5)",
    "the instance has one attribute that was looked for": "setattr(t, 'looked_for', 6)",
}


@pytest.mark.parametrize("name", BETWEEN)
def test_changes_between_calls_are_seen(name):
    body = STEP + ", getattr(t, 'looked_for', 0)\nt = one(Plus, 3)"
    seen = check(program(body), "f(t)", "f(t)", BETWEEN[name], "f(t)")
    assert seen.graphs >= 2


def test_it_is_not_asked_again_by_what_the_graph_runs():
    """Methods of the class with names of operators are called when the program calls them, and not by the graph."""
    body = "def f(t): return t.sum() + 1, torch.sum(t), t.sub(1)"
    patch = "setattr(Loud, 'sub', lambda self, other: calls.append('sub') or torch.sub(self, other))"
    seen = check(program(body), patch, "f(one(Loud, 3))", "f(one(Loud, 3))", "len(calls)")
    assert (
        seen.graphs == 2 and not seen.breaks
    )  # (the length of the list that it appends to is part of the second)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    class Doubling(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            return result * 2 if func is torch.Tensor.sin else result

    def f(w, t):
        return (w * t.sin()).sum(), t

    grads = []
    for fn in (f, minidynamo.optimize(backend)(f)):
        w, leaf = torch.arange(3.0).requires_grad_(), torch.ones(3, requires_grad=True)
        for t in (leaf.as_subclass(Doubling), leaf.detach().as_subclass(Doubling).requires_grad_()):
            loss, same = fn(w, t)
            assert type(loss) is Doubling and same is t
            loss.as_subclass(torch.Tensor).backward()
            grads.append([w.grad.tolist(), leaf.grad.tolist(), None if t.grad is None else t.grad.tolist()])
    assert grads[:2] == grads[2:]


LEFT = {
    "with __torch_dispatch__": "class C(torch.Tensor):\n    @classmethod\n    def __torch_dispatch__(cls, func, types, args=(), "
    "kwargs=None):\n        return 5\n    __torch_function__ = torch._C._disabled_torch_function_impl",
    "no class method": "class C(torch.Tensor):\n    __torch_function__ = Duck(3)",
    "attribute access of its own": "class C(torch.Tensor):\n    def __getattribute__(self, name):\n"
    "        return torch.Tensor.__getattribute__(self, name)",
    "declines": "class C(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    "        return NotImplemented",
}


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.filterwarnings("ignore")
def test_left_to_plain_python(name):
    body = LEFT[name] + "\ndef f(t, x):\n    y = x + 1\n    return y, t * 2"
    seen = check(program(body), "f(one(C, 3), T(3))", "f(one(C, 3), T(3))")
    assert "MD236" in seen.reasons


RAGGED = """
class Ragged:
    scale = 2
    def __init__(self, v):
        self.v = v
    def sin(self):
        return torch.sin(self)
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return Ragged(func(args[0].v) * args[0].scale) if func is torch.sin else NotImplemented
"""


@pytest.mark.parametrize(
    "body", ["r.sin().v", "r.v * r.scale", "r.v * len(vars(r))", "r.v * ('scale' in r.__dict__)"]
)
def test_the_dictionary_of_an_object_with_torch_function(body):
    """It is read and guarded as any other object's: what is put in front of the class's attributes is seen."""
    source = f"{RAGGED}\ndef f(r):\n    return {body}\nR = Ragged(T(3))\n"
    shadow = "(lambda: (setattr(R, 'scale', 5), f(R))[1])()"
    seen = check(source, "f(R)", "f(R)", "f(Ragged(T(3)))", shadow, "f(Ragged(T(3)))")
    assert seen.reasons == [] and len(seen.compiled) <= 2
