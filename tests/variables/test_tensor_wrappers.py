"""Tensors that wrap other tensors: classes with `__tensor_flatten__`, `__tensor_unflatten__` and `__torch_dispatch__`."""

import sys

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

import minidynamo
from minidynamo.graph.dispatch_code import reads_of
from tests.eager import check

HEAD = """
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils import _pytree as pytree

def two(*shape, **options):
    return TwoTensor(T(*shape, **options), T(*shape, **options) * 10)

def grad(t):
    return t.requires_grad_()

class Scaled(torch.Tensor):
    "Stores numbers divided by a scale; operators give plain tensors, but for those of FOLLOWED."
    @staticmethod
    def __new__(cls, stored, scale, kind, outer_size=None):
        made = torch.Tensor._make_wrapper_subclass(
            cls, stored.shape, dtype=torch.float32, device=stored.device, requires_grad=False)
        made.stored = stored
        made.scale = scale
        made.kind = kind
        return made
    def __tensor_flatten__(self):
        return ["stored"], {"scale": self.scale, "kind": self.kind}
    @classmethod
    def __tensor_unflatten__(cls, inner, context, outer_size, outer_stride):
        return cls(inner["stored"], context["scale"], context["kind"])
    def dequantize(self):
        return self.stored.to(torch.float32) * self.scale
    def __repr__(self):
        return f"Scaled({self.scale})"
    @property
    def levels(self):
        return int(1 / self.scale)
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default, torch.ops.aten.t.default,
                    torch.ops.aten.view.default, torch.ops.aten.alias.default):
            made = cls(func(args[0].stored, *args[1:], **(kwargs or {})), args[0].scale, args[0].kind)
            return return_and_correct_aliasing(func, args, kwargs or {}, made)
        plain = pytree.tree_map_only(cls, lambda x: x.dequantize(), (args, kwargs or {}))
        return func(*plain[0], **plain[1])
    __torch_function__ = torch._C._disabled_torch_function_impl

def scaled(*shape, scale=0.5, kind="int8"):
    return Scaled(T(*shape).to(torch.int8), scale, kind)

class Model(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=weight.requires_grad)
        self.bias = torch.nn.Parameter(T(2))
    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias).relu()
"""

BODIES = {
    "operators": ("return x * 2 + 1, x.sin(), -x, x > 2, 3 / x", 1),
    "with a plain tensor": ("y = torch.ones(1, 3)\n    return x + y, y + x, torch.cat([x, x])", 1),
    "results of several kinds": ("return x.chunk(3, 1), x.max(dim=0), x[0], x[:, 1:], x.sum(), x.mean(0)", 1),
    "in place": ("x.add_(1)\n    x.mul_(x)\n    x += 2\n    return x, x * 2", 1),
    "views": ("v = x.view(-1)\n    v.add_(1)\n    return v, x.t(), x.unsqueeze(0), x.unsqueeze(0).expand(2, -1, 3), x * 1", 1),
    "items": ("x[0] = 5\n    x[:, 1] += 1\n    return x", 1),
    "no_grad": ("with torch.no_grad():\n        y = x * 2\n    return y, x * y", 1),
    "detach clone to": ("return x.detach(), x.clone(), x.to(torch.float64), x.to(torch.float32), x.double()", 1),
    "itself": ("return x, x.contiguous(), x * 1, x.to(torch.float32)", 1),
    "of its type": ("return type(x), isinstance(x, TwoTensor), isinstance(x, torch.Tensor), type(x * 2) is TwoTensor", 1),
    "metadata": ("return x.shape, x.dtype, x.ndim, x.size(0), x.requires_grad, len(x), x.stride(), x * x.shape[1]", 1),
    "functions": ("return F.softmax(x, 1), F.linear(x, x), torch.where(x > 2, x, -x), F.gelu(x), torch.stack([x, x])", 1),
    "a loop": ("y = x\n    for row in x:\n        y = y + row\n    return y", 1),
    "made like it": ("return torch.ones_like(x) + x, x.new_zeros(2), torch.empty_like(x).fill_(3)", 1),
    "in a list": ("d = {'x': [x, x + 1]}\n    return d, d['x'][1] - 1", 1),
    "parameter": ("return isinstance(x, torch.nn.Parameter), x * 2", 1),
    "hidden by a break": ("y = x + 1\n    print('now')\n    return y * x", 2),
    "data": ("return (x * 2).sum().item(), x + 1", None),
    "branch on data": ("return x * 2 if x.sum() > 1 else x", None),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", BODIES)
def test_programs(name, backend):
    """Every result has the class, the metadata, the aliasing and the contents that plain Python gives it."""
    body, graphs = BODIES[name]
    calls, kinds = ["f(two(2, 3))", "f(two(2, 3))", "f(two(4, 3))"], 2
    if backend == "eager" and name not in (
        "in place",
        "views",
        "items",
    ):  # (the other has other names in histories)
        calls += ["f(grad(two(2, 3)))", "f(torch.nn.Parameter(two(2, 3)))", "f(grad(two(2, 3)) * 1)"]
        kinds = 4  # (a leaf is guarded like what has a history)
    seen = check(f"{HEAD}\ndef f(x):\n    {body}\n", *calls, backend=backend)
    if graphs is not None:
        assert seen.graphs == graphs * kinds, (seen.graphs, seen.reasons)
        assert name == "hidden by a break" or not seen.breaks, seen.reasons


SCALED = {
    "a linear layer": ("return F.linear(torch.ones(2, 3), x), x @ torch.ones(3, 1)", True),
    "wrapped results": ("return x.t(), x.clone(), x.detach().view(-1), x.view(-1) + 1", False),
    "its method": ("return x.dequantize() + 1, x.t().dequantize()", False),
    "its attributes": ("return x.stored + 1, x.scale * 2, x.kind, x.t().scale, x.levels", False),
    "its class": ("return type(x) is Scaled, x.__class__, isinstance(x.clone(), Scaled)", True),
    "inner tensors in place": ("x.stored.add_(1)\n    return x + 1", False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_wrapper_with_constants(name, backend):
    body, for_compilers = SCALED[name]
    calls = (
        "f(scaled(2, 3))",
        "f(scaled(2, 3))",
        "f(scaled(2, 3, scale=0.25))",
        "f(scaled(2, 3, kind='int4'))",
    )
    seen = check(f"{HEAD}\ndef f(x):\n    {body}\n", *calls, backend=backend, warns=not for_compilers)
    if backend == "eager" or for_compilers:
        assert not seen.breaks and len(seen.compiled) == 3, seen.reasons


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_wrapper_in_a_wrapper(backend):
    body = "def f(x):\n    y = x * 2\n    y.add_(1)\n    return y, y.t() @ x"
    outer = "f(TwoTensor(two(2, 3), two(2, 3) * 2))"
    seen = check(
        HEAD + body, outer, outer, "f(two(2, 3))", "f(TwoTensor(two(3, 2), two(3, 2)))", backend=backend
    )
    assert seen.graphs == 3 and not seen.breaks


PLACES = {
    "argument": "def f(x): return x * 2",
    "attribute": "class A: pass\na = A()\ndef f(x):\n    a.x = x\n    return g()\ndef g(): return a.x * 2",
    "global": "w = two(2, 3)\ndef f(x): return x * w + w",
    "closure": "def outer():\n    w = two(2, 3)\n    return lambda x: x * w + w\nf = outer()",
    "list": "held = [two(2, 3)]\ndef f(x): return x * held[0]",
    "module": "m = Model(two(2, 3)).requires_grad_(False)\ndef f(x): return m(x)",
    "default": "def f(x, w=two(2, 3)): return x * w",
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PLACES)
def test_places(name, backend):
    seen = check(HEAD + PLACES[name], "f(two(2, 3))", "f(two(2, 3))", backend=backend)
    assert seen.graphs == 1 and not seen.breaks, seen.reasons


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    """Of leaves, of parameters that are wrappers, through results in the middle."""
    # (what is compared are numbers: the other backend has other names in histories)
    body = """
m = Model(two(2, 3).requires_grad_())
def f(x, w): return (m(x).sin() * w).sum()
def step(x, w):
    loss = f(x, w)
    loss.backward()
    return [numbers(t) for t in (loss.detach(), x.grad, w.grad, m.weight.grad, m.bias.grad)]
def numbers(t):
    return (type(t).__name__, t.a.tolist(), t.b.tolist()) if isinstance(t, TwoTensor) else t.tolist()
"""
    call = "step(grad(two(4, 3)), grad(two(4, 2)))"
    seen = check(HEAD + body, call, call, "step(grad(T(4, 3)), grad(two(4, 2)))", backend=backend)
    assert seen.graphs == 2 and not seen.breaks


SHARED = {
    "a wrapper of one tensor twice": "f(*(lambda a: (TwoTensor(a, a), a))(T(2, 3)))",
    "a tensor and a wrapper of it": "f(*(lambda x: (x, x.b))(two(2, 3)))",
    "nothing": "f(two(2, 3), T(2, 3))",
    "a view": "f(*(lambda x: (x, x.view(-1)))(two(2, 3)))",
    "one object": "f(*(lambda x: (x, x))(two(2, 3)))",
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("call", SHARED.values(), ids=SHARED.keys())
def test_memory_that_is_shared(call, backend):
    """What is written through one input is seen through the others, whatever a compiler knows of them."""
    body = "def f(x, y):\n    x.add_(1)\n    return x * 2, y * 3, x + y.sum()"
    check(HEAD + body, call, call, "f(two(2, 3), T(2, 3))", call, backend=backend)


# Each changes one thing that decides about what operators give.
MUTATIONS = {
    "inner dtype": "Scaled(T(2, 3).to(torch.int16), 0.5, 'int8')",
    "outer shape": "scaled(3, 2)",
    "inner stride": "Scaled(T(3, 2).to(torch.int8).t(), 0.5, 'int8')",
    "context: a number": "scaled(2, 3, scale=0.25)",
    "context: its type": "scaled(2, 3, scale=1)",
    "context: a text": "scaled(2, 3, kind='int4')",
    "a new attribute": "setattr(x, 'more', 1) or x",
    "another class": "two(2, 3)",
    "a subclass": "Narrow(T(2, 3).to(torch.int8), 0.5, 'int8')",
    "a plain tensor": "T(2, 3)",
    "an inner wrapper": "Scaled(two(2, 3).to(torch.int8), 0.5, 'int8')",
    "inner tensor requires a gradient": "Scaled(T(2, 3, requires_grad=True), 0.5, 'int8')",
    "requires a gradient": "grad(scaled(2, 3))",
    "code of the class": "setattr(Scaled, 'dequantize', lambda self: self.stored * 7) or x",
    "dispatch": "setattr(Scaled, '__torch_dispatch__', classmethod(lambda cls, func, types, args=(), kwargs=None: "
    "func(*[a.stored if isinstance(a, Scaled) else a for a in args]))) or x",
    "flatten": "setattr(Scaled, '__tensor_flatten__', lambda self: (['stored'], {'scale': 2.0, 'kind': ''})) or x",
    "a global that its code reads": "globals().__setitem__('pytree', torch.utils._pytree) or globals().__setitem__("
    "'return_and_correct_aliasing', lambda f, a, k, made: made) or x",
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_guard_tells(name):
    """What fits no more is compiled again, or left to plain Python, with its result."""
    body = """
class Narrow(Scaled):
    pass
x = scaled(2, 3)
def f(x): return x * 2, x.dtype
"""
    seen = check(HEAD + body, "f(x)", "f(x)", f"f({MUTATIONS[name]})", "f(x)")
    assert len(seen.recompiles) >= 1 and len(seen.compiled) >= 2, seen


CHANGES = {
    "a constant": "setattr(w, 'scale', 0.25)",
    "an inner tensor": "setattr(w, 'stored', T(2, 3).to(torch.int16))",
    "an inner tensor of other data": "setattr(w, 'stored', (T(2, 3) * 2).to(torch.int8))",
    "a new attribute": "setattr(w, 'more', 1)",
    "an attribute of an inner tensor": "setattr(w.stored, 'mark', 1)",
    "code": "setattr(Scaled, 'dequantize', lambda self: self.stored * 7)",
    "code in place": "setattr(Scaled.dequantize, '__code__', (lambda self: self.stored * 7).__code__)",
    "a global": "globals().__setitem__('return_and_correct_aliasing', lambda f, a, k, made: made)",
    "a gradient": "w.requires_grad_()",
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_was_there_for_many_calls(name):
    body = """
w = scaled(2, 3)
m = torch.nn.Module()
m.w = torch.nn.Parameter(scaled(2, 3), requires_grad=False)
def f(x): return x * w, w.clone().scale, m.w + 1, m.w.scale
"""
    warm = ["f(torch.ones(3))"] * 4
    again = CHANGES[name].replace("(w", "(m.w") if "(w" in CHANGES[name] else CHANGES[name]
    check(HEAD + body, *warm, CHANGES[name], *warm[:2], again, *warm[:2])


EFFECTS = {
    "prints": "print(func)",
    "counts in a global": "global calls\n        calls += 1",
    "counts in its class": "cls.count += 1",
    "appends to a global": "log.append(str(func))",
    "appends to what its class has": "cls.log.append(1)",
    "stores an item": "table['last'] = 1",
    "stores into its argument": "args[0].seen = 1",
    "setattr": "setattr(cls, 'count', cls.count + 1)",
    "calls what does": "note(func)",
    "calls a closure that does": "helper()",
    "changes torch's state": "torch.manual_seed(5)",
    "reads the clock": "import time\n        time.perf_counter()",
    "calls an object": "counter()",
    "nested": "(lambda: log.append(1))()",
    "adds to a table in place": "d = table\n        d |= {str(func): 1}",
    "by operator": "operator.setitem(table, 'last', 1)",
    "by a name in a text": "getattr(log, 'append')(1)",
    "by a name of torch's in a text": "getattr(torch, 'manual_seed')(5)",
    "by its class's attribute in a text": "getattr(cls, 'lo' + 'g').append(1)",
    "in what formats it": "f'{args[0]}'",
    "in an operator of its own": "args[0] @ 1",
    "in a default": "note_in()",
    "in a comprehension": "[log.append(1) for _ in range(2)]",
}


@pytest.mark.parametrize("name", EFFECTS)
def test_code_with_effects_is_not_run_for_a_look(name):
    """The trace runs a wrapper's code on fakes. Where that could be noticed the graph ends, and plain Python runs the operator."""
    body = f"""
import operator
calls, log, table = 0, [], {{}}
def note_in(seen=log): seen.append(1)
def note(func): log.append(str(func))
def make():
    count = 0
    def helper():
        nonlocal count
        count += 1
        log.append(count)
    return helper
helper = make()
class Counter:
    n = 0
    def __call__(self): Counter.n += 1
counter = Counter()
class Loud(Scaled):
    count = 0
    log = []
    if "{name}" == "in what formats it":
        def __repr__(self): log.append(1); return "loud"
    if "{name}" == "in an operator of its own":
        def __matmul__(self, other): log.append(1)
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        {EFFECTS[name]}
        plain = pytree.tree_map_only(cls, lambda x: x.dequantize(), (args, kwargs or {{}}))
        return func(*plain[0], **plain[1])
def f(x, t): return t + 1, x * 2
"""
    call = "f(Loud(T(2, 3), 0.5, 'a'), T(2, 3))"
    seen = check(HEAD + body, call, call, "(calls, log, table, Loud.count, Loud.log, Counter.n)")
    assert "MD236" in seen.reasons


def test_a_method_that_torch_calls():
    """Torch's Python functions call methods of their arguments, the class's own too."""
    body = """
log = []
class Loud(Scaled):
    def softmax(self, *args):
        log.append(1)
        return self.stored
def f(x, t): return t + 1, F.softmax(x, 1)
"""
    call = "f(Loud(T(2, 3), 0.5, 'a'), T(2, 3))"
    assert "MD236" in check(HEAD + body, call, call, "len(log)").reasons


STORED = {
    "a global": ("factor * 1", "global factor\n    factor += 1"),
    "a member of the class": ("cls.factor", "Grown.factor += 1"),
    "an item of a table": ("table['factor']", "table['factor'] += 1"),
    "a method of a table": ("table['factor']", "table.update(factor=5)"),
    "a variable of a function around": ("inner()", "add()"),
    "by setattr": ("cls.factor", "setattr(Grown, 'factor', 9)"),
    "by the globals": ("factor * 1", "globals()['factor'] = 4"),
    "something else": ("cls.factor", "seen.append(1)\n    other['factory'] = 1"),
}


@pytest.mark.parametrize("name", STORED)
def test_what_is_stored_before_an_operator_counts(name):
    """The graph runs before what the frame stores; its operators must not depend on that."""
    read, store = STORED[name]
    body = f"""
factor, table, seen, other = 2, {{'factor': 2}}, [], {{}}
def outer():
    n = 3
    def inner(): return n
    def add():
        nonlocal n
        n += 1
    return inner, add
inner, add = outer()
class Grown(Scaled):
    factor = 3
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*[a.stored * {read} if isinstance(a, cls) else a for a in args])
def f(x):
    y = x * 2
    {store}
    return y, x * 2
"""
    call = "f(Grown(T(2, 3), 0.5, 'a'))"
    seen = check(HEAD + body, call, call, call)
    assert not seen.breaks or name != "something else"


def test_an_attribute_stored_into_a_wrapper():
    body = "def f(x):\n    y = x * 2\n    x.scale = 4.0\n    return y, x * 2, x.scale\nx = scaled(2, 3)\n"
    check(HEAD + body, "f(x)", "f(x)", "f(scaled(2, 3))")


def test_a_table_of_functions_is_followed():
    body = """
TABLE = {}
def implements(op):
    def register(fn):
        TABLE[op] = fn
        return fn
    return register
class Dispatched(Scaled):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return TABLE[func](*args) if func in TABLE else func(*[a.stored if isinstance(a, cls) else a for a in args])
@implements(torch.ops.aten.mul.Tensor)
def mul(x, y): return x.stored * y * x.scale
def f(x): return x * 2, x + 1
def again():
    @implements(torch.ops.aten.mul.Tensor)
    def mul(x, y): return (x.stored * y).sum()
"""
    call = "f(Dispatched(T(2, 3), 0.5, 'a'))"
    seen = check(HEAD + body, call, call, "again()", call)
    assert seen.graphs == 2 and not seen.breaks


LEFT = {
    "no flatten": "class C(Scaled):\n    __tensor_flatten__ = None",
    "sizes of its own": "class C(Scaled):\n    @staticmethod\n    def __new__(cls, a, b, c):\n        made = "
    "torch.Tensor._make_wrapper_subclass(cls, a.shape, dispatch_sizes_strides_policy='sizes')\n        made.stored, "
    "made.scale, made.kind = a, b, c\n        return made",
    "a list in it": "class C(Scaled):\n    @staticmethod\n    def __new__(cls, a, b, c):\n        made = "
    "Scaled.__new__(cls, a, b, c)\n        made.kind = [1]\n        return made",
    "__torch_function__": "class C(Scaled):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    "        return super().__torch_function__(func, types, args, kwargs or {})",
}


@pytest.mark.parametrize("name", LEFT)
def test_left_to_plain_python(name):
    result = "t.stored" if name == "sizes of its own" else "t * 2"
    body = f"{LEFT[name]}\ndef f(t, x):\n    y = x + 1\n    return y, {result}\n"
    seen = check(HEAD + body, "f(C(T(3), 0.5, 'a'), T(3))")
    assert "MD236" in seen.reasons


def test_no_code_of_the_class_runs_in_a_guard():
    """A warm call runs only what the graph runs."""
    ran = []

    class Watched(TwoTensor):
        def __tensor_flatten__(self):
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner, context, outer_size, outer_stride):
            return Watched(inner["a"], inner["b"], outer_size, outer_stride)

    def f(x):
        return x * 2

    def profile(frame, event, arg):
        if event == "call" and "tensor" in frame.f_code.co_filename and frame.f_code.co_name.startswith("__"):
            ran.append(frame.f_code.co_name)

    assert not isinstance(reads_of(Watched), str)
    optimized = minidynamo.optimize("eager")(f)
    value = Watched(torch.ones(2), torch.ones(2))
    optimized(value)
    sys.setprofile(profile)
    try:
        optimized(value)
    finally:
        sys.setprofile(None)
    assert (
        "__torch_dispatch__" in ran and "__tensor_flatten__" not in ran and "__tensor_unflatten__" not in ran
    )
    assert len(minidynamo.cache_entries(f)) == 1
