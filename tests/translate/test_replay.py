"""A recompilation for other sizes or other numbers replays the earlier trace, unless the trace looked at one of them.

The tests run with MINIDYNAMO_VERIFY=1: each replayed compilation is compared with a trace of the same frame.
"""

from __future__ import annotations

import gc
import operator
import weakref

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

import minidynamo
from minidynamo import backends, config, events, markers
from tests.eager import Module, check


def ways(source: str, *calls: str) -> str:
    """The calls behave as in plain Python. Gives per compilation `t` (traced) or `r` (replayed)."""
    found = []

    def note(event: events.Event) -> None:
        if isinstance(event, events.StageDone) and event.stage == "translate":
            found.append("t" if event.facts["steps"] else "r")

    with events.listen(note):
        check(source, *calls)
    return "".join(found)


REPLAYED = {
    "a batch": ("def f(x): return (x * 2).relu().sum(1)", "f(T(2, 3))", "f(T(4, 3))", "f(T(7, 3))"),
    "sizes in a view": (
        "def f(x):\n b, t, c = x.size()\n return x.view(b, t, 2, c // 2).transpose(1, 2).reshape(b * t, -1)",
        "f(T(2, 3, 4))",
        "f(T(3, 5, 4))",
        "f(T(3, 5, 8))",
    ),
    "a shape as it is": ("def f(x, y): return y.expand(x.shape) + x", "f(T(2, 3), T(3))", "f(T(4, 3), T(3))"),
    "slices": ("def f(x, n): return x[:, : x.shape[1] - n]", "f(T(2, 5), 1)", "f(T(2, 6), 1)", "f(T(2, 6), 2)"),
    "a factory": ("def f(x): return torch.arange(0, x.size(0)) + x", "f(T(3))", "f(T(5))"),
    "an int": ("def f(x, n): return x + n", "f(T(3), 1)", "f(T(3), 2)", "f(T(3), -7)", "f(T(4), 1 << 40)"),
    "a float": ("def f(x, s): return x * s + s / 2", "f(T(3), 0.5)", "f(T(3), 1e-30)", "f(T(3), 2.0)"),
    "an attribute": (
        "class A: pass\na = A()\ndef g(x, n):\n a.n = n\n return f(x)\ndef f(x): return x - a.n",
        "g(T(2), 3)",
        "g(T(2), 4)",
    ),
    "a global": (
        "N = 1\ndef g(x, n):\n global N\n N = n\n return f(x)\ndef f(x): return x - N",
        "g(T(2), 3)",
        "g(T(2), 4)",
    ),
    "a cell": (
        "def make():\n n = 1\n def h(x): return x - n\n def put(v):\n  nonlocal n\n  n = v\n return h, put\n"
        "h, put = make()\ndef f(x): return h(x)\ndef g(x, n):\n put(n)\n return f(x)",
        "g(T(2), 3)",
        "g(T(2), 4)",
    ),
    "a default": ("def h(x, n=1): return x + n\ndef f(x, n): return h(x, n=n) + h(x)", "f(T(2), 3)", "f(T(2), 4)"),
    "a list of numbers": ("def f(x, ns): return x * ns[0] + ns[1]", "f(T(2), [1, 2.0])", "f(T(2), [3, 4.0])"),
    "a comparison that stays": (
        "def f(x, n): return x + n if x.shape[0] > 2 and n else x - n",
        "f(T(3), 1)",
        "f(T(4), 1)",
        "f(T(4), 2)",
    ),
    "a module": (
        "m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()\n"
        "for p in m.parameters(): p.data.fill_(0.5)\ndef f(x): return m(x)",
        "f(T(2, 3))",
        "f(T(5, 3))",
    ),
    "a convolution": (
        "m = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.AdaptiveAvgPool2d(1)).eval()\n"
        "for p in m.parameters(): p.data.fill_(0.5)\ndef f(x): return m(x).flatten(1)",
        "f(T(1, 1, 4, 5))",
        "f(T(2, 1, 6, 6))",
    ),
    "statistics in training": (
        "m = torch.nn.BatchNorm1d(3)\ndef f(x): return m(x), m.running_mean.clone(), m.num_batches_tracked.clone()",
        "f(T(4, 3))",
        "f(T(5, 3))",
        "f(T(6, 3))",
    ),
    "a write into the argument": ("def f(x, n):\n x.add_(n)\n return x * 2", "f(T(3), 1)", "f(T(4), 1)", "f(T(4), 5)"),
    "random numbers": (
        "def f(x): return F.dropout(x, 0.5)",
        "(torch.manual_seed(3), f(T(40)))[1]",
        "(torch.manual_seed(4), f(T(50)))[1]",
    ),
    "a gradient": (
        "def f(x, s): return (x * s).sum()\ndef g(n, s):\n x = T(n, requires_grad=True)\n f(x, s).backward()\n return x.grad",
        "g(3, 2.0)",
        "g(4, 2.0)",
        "g(4, 3.0)",
    ),
    "what is returned beside": ("def f(x, n): return [x + 1, (n, x * 2)], {'a': x - n}", "f(T(2), 1)", "f(T(3), 1)", "f(T(3), 2)"),
    "a break": (
        "def f(x, n):\n y = x * n\n minidynamo.graph_break()\n return y.view(y.shape[0], 1) + n",
        "f(T(3), 2)",
        "f(T(4), 2)",
        "f(T(4), 3)",
    ),
    "effects": (
        "class A: pass\na = A()\na.y = 0\ndef f(x):\n a.y = x * 2\n return a.y",
        "(setattr(a, 'y', None), f(T(2)))",
        "(setattr(a, 'y', None), f(T(3)))",
    ),
    "one tensor twice": ("def f(x, y): return x + y, x * y", "f(T(2), T(2))", "(lambda z: f(z, z))(T(3))"),
    "an input that is asked about only": (
        "def f(x, y): return x.view(y.shape[0], -1)",
        "f(T(6), T(2, 1))",
        "f(T(6), T(3, 1))",
    ),
    "several results": ("def f(x): return x.split(1)[0] + x.max(1)[0]", "f(T(2, 2))", "f(T(2, 2) * 2)", "f(T(2, 2).t())"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLAYED)
def test_replayed(name):
    source, *calls = REPLAYED[name]
    found = ways(source, *calls)
    assert found.count("r") >= 1 and found.count("t") <= (2 if "break" in name else 1), found


TRACED = {
    "a branch that changes": ("def f(x): return x + 1 if x.shape[0] > 2 else x - 1", "f(T(2))", "f(T(3))"),
    "a truth that changes": ("def f(x, n): return x + 1 if n else x - 1", "f(T(2), 0)", "f(T(2), 3)"),
    "a loop": ("def f(x):\n for i in range(x.size(0)): x = x + i\n return x", "f(T(2))", "f(T(3))"),
    "a number that is returned": ("def f(x): return x + 1, x.shape[0]", "f(T(2))", "f(T(3))"),
    "a shape that is returned": ("def f(x): return x + 1, x.shape", "f(T(2, 3))", "f(T(3, 3))"),
    "an index": ("def f(x, n): return x + (10, 20, 30)[n]", "f(T(2), 0)", "f(T(2), 2)"),
    "a key": ("D = {1: 10, 2: 20}\ndef f(x, n): return x + D[n]", "f(T(2), 1)", "f(T(2), 2)"),
    "text": ("def f(x, n): return x + len(f'{n}')", "f(T(2), 9)", "f(T(2), 10)"),
    "iteration over a tensor": ("def f(x): return [r + 1 for r in x]", "f(T(2, 2))", "f(T(3, 2))"),
    "the length of a tensor": ("def f(x): return x + 1 if len(x) == 2 else x - 1", "f(T(2))", "f(T(3))"),
    "number of dimensions": ("def f(x): return x.squeeze(0).dim() + x", "f(T(1, 2))", "f(T(2, 2))"),
    "contiguity": ("def f(x): return x + 1 if x.is_contiguous() else x - 1", "f(T(3, 3))", "f(T(3, 3).t())"),
    "another type of elements": ("def f(x): return x + 1", "f(T(2))", "f(T(2).to(torch.float64))"),
    "another type of number": ("def f(x, n): return x + n", "f(T(2), 1)", "f(T(2), 1.0)", "f(T(2), True)"),
    "a gradient that is wanted": ("def f(x): return (x + 1).requires_grad", "f(T(2))", "f(T(2, requires_grad=True))"),
    "a division by zero": ("def f(x, n):\n try: return x + 1 // n\n except ZeroDivisionError: return x - 1", "f(T(2), 1)", "f(T(2), 0)"),
    "a size that fits no longer": (
        "def f(x):\n try: return x.view(2, -1) + 1\n except RuntimeError: return x - 1",
        "f(T(4))",
        "f(T(5))",
    ),
    "a size that fits again": (
        "def f(x):\n try: return x.view(2, -1) + 1\n except RuntimeError: return x - 1",
        "f(T(5))",
        "f(T(4))",
    ),
    "an operator that fails no longer": ("def f(x):\n y = x * 2\n return y.view(2, -1)", "f(T(5))", "f(T(4))"),
    "a division that nobody uses": (
        "def f(x, n, m):\n k = n // (m // n)\n return x + n",
        "f(T(2), -2, 3)",
        "f(T(2), -1, 0)",
        "f(T(2), 1, 0)",
    ),
    "fewer results": ("def f(x, n): return x.chunk(n)[-1] * n", "f(T(4), 4)", "f(T(4), 3)", "f(T(5), 4)"),
    "an element": ("def f(x): return (x * 2).item()", "f(T(3))", "f(T(1))"),
    "the room of a deque": (
        "from collections import deque\ndef f(x, d):\n d.append(5)\n return x * d[0] + len(d)",
        "f(T(2), deque([1, 2], 3))",
        "f(T(2), deque([1, 2], 2))",
    ),
    "elements in one place": (
        "def f(x):\n y = x.expand(2, 3)\n y.add_(1) if x.shape[0] == 2 else None\n return x * 2",
        "f(T(2, 3))",
        "f(T(1, 3))",
    ),
    "inputs that may become one": (
        "def f(x, y):\n x.add_(1)\n return x + y.sum()",
        "f(T(2), T(3))",
        "(lambda z: f(z, z))(T(4))",
        "f(T(4), T(4))",
    ),
    "identity": ("def f(x, y): return x + 1 if x is y else x - 1", "f(T(2), T(2))", "(lambda z: f(z, z))(T(3))"),
    "another global too": (
        "M = 1\ndef g(x, m):\n global M\n M = m\n return f(x)\ndef f(x): return x + 1 if M == 1 else x - 1",
        "g(T(2), 1)",
        "g(T(3), 2)",
    ),
    "a dtype that is decided by a number": (
        "def f(x, n): return x.to(torch.float64 if n > 1 else torch.float32)",
        "f(T(2), 1)",
        "f(T(2), 2)",
    ),
    "another rank": ("def f(x): return x + 1", "f(T(2))", "f(T(2, 2))"),
    "grad mode": ("def f(x): return x * 2\ndef g(x):\n with torch.no_grad(): return f(x)", "f(T(2))", "g(T(3))"),
    "what is inside of a block": ("def f(x):\n with torch.no_grad(): return x * 2", "f(T(2))", "f(T(3))"),
    "a number of a tensor": ("def f(x): return x * x.sum().item()", "f(T(2))", "f(T(3))"),
    "a view that changes in place": ("def f(x):\n y = x * 2\n y.unsqueeze_(0)\n return y + x", "f(T(2))", "f(T(3))"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_traced(name):
    source, *calls = TRACED[name]
    assert set(ways(source, *calls)) == {"t"}


def test_either_entry_serves_its_own():
    """A replayed entry is one like any other: the earlier ones serve what they served, and each may be the base of the next."""
    source = "def f(x, n): return (x + n).view(x.shape[0], -1)"
    calls = [
        f"f(T({k}, 2), {n})" for k, n in ((2, 1), (3, 1), (2, 1), (3, 2), (3, 1), (2, 1), (4, 7), (3, 2))
    ]
    assert ways(source, *calls) == "trrr"


def test_signs_of_zero_and_nan():
    numbers = ("1.0", "-0.0", "0.0", "5e-324", "float('nan')", "float('-inf')")
    source = "def f(x, s): return x * s, torch.copysign(x, s)"
    assert ways(source, *(f"f(T(2), {number})" for number in numbers)) == "ttrrrr"


def test_two_kinds_of_entries_in_turn():
    source = """
        m = torch.nn.Dropout(0.5)
        def f(x): return m(x) * 0 + x
        def g(x, training):
            m.train(training)
            return f(x)
    """
    calls = [f"g(T({k}), {k % 2 == 0})" for k in range(2, 8)]
    assert ways(source, *calls) == "ttrrrr"


def test_graph_and_code_of_a_replayed_entry_are_told():
    fn = minidynamo.optimize("eager")(Module("def f(x, n): return x.view(n, x.shape[1]) * n").names["f"])
    told = []
    with events.listen(lambda event: told.append(event) if isinstance(event, events.Compiled) else None):
        fn(torch.ones(2, 3), 2)
        fn(torch.ones(4, 3), 4)
    first, second = told
    assert "(%x, 2, 3)" in first.graph and "(%x, 4, 3)" in second.graph
    assert first.output.count("EntryHandle") == second.output.count("EntryHandle") == 1
    assert any("(2, 3)" in guard for guard in first.guards) and any(
        "(4, 3)" in guard for guard in second.guards
    )


def test_output_code_does_not_die_with_the_entry_it_comes_from():
    fn = minidynamo.optimize("eager")(Module("def f(x, n): return {'a': x + n}").names["f"])
    for n in range(3):
        fn(torch.ones(2), n)
    (*_, last) = (entry for _, entry in minidynamo.compiled_frames(fn))
    assert "dropped" not in last.guarded.output_text
    assert fn(torch.ones(2), 2)["a"].tolist() == [3.0, 3.0]


@pytest.fixture
def registry(monkeypatch):
    """What is registered is gone afterwards."""
    monkeypatch.setattr("minidynamo.backends.registry._REGISTRY", dict(backends.registry._REGISTRY))


@pytest.mark.usefixtures("registry")
def test_a_backend_gets_the_graph_and_the_tensors_of_this_call():
    got = []

    def backend(module, inputs):
        got.append(([tuple(one.shape) for one in inputs], module.code))
        return module.forward

    minidynamo.register_backend(backend, "replayed_backend", needs_meta=False)
    fn = minidynamo.optimize("replayed_backend")(lambda x, n: x + n)
    for size, number in ((2, 1), (3, 1), (3, 5)):
        fn(torch.ones(size), number)
    assert [shapes for shapes, _ in got] == [[(2,)], [(3,)], [(3,)]]
    assert "+ 5" in got[2][1] and "+ 5" not in got[1][1]


@pytest.mark.usefixtures("registry")
def test_a_backend_that_changes_the_graph_does_not_change_the_next_one():
    seen = []

    def backend(module, inputs):
        seen.append(module.code)
        plain = module.forward
        for node in module.graph.find_nodes(op="call_function", target=operator.add):
            node.args = (node.args[0], 100)
        module.recompile()
        return plain

    minidynamo.register_backend(backend, "spoiling_backend", needs_meta=False)
    with config.patch(verify=False):
        fn = minidynamo.optimize("spoiling_backend")(lambda x: x + 1)
        fn(torch.ones(2))
        fn(torch.ones(3))
    assert len(seen) == 2 and all("+ 1" in code for code in seen)


def test_an_entry_keeps_no_tensor_and_no_module():
    module = torch.nn.Linear(3, 2)
    fn = minidynamo.optimize("eager")(lambda m, x: m(x))
    for size in (2, 4):
        x = torch.ones(size, 3)
        fn(module, x)
    refs = [weakref.ref(one) for one in (module, module.weight, x)]
    del module, x
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3


def test_text_guards():
    with config.patch(guards="text"):
        assert ways("def f(x, n): return x + n", "f(T(2), 1)", "f(T(3), 1)", "f(T(3), 2)") == "trr"


def test_guards_on_modules_that_are_switched_on_are_not_missing_in_the_next_entry():
    module = torch.nn.Dropout(0.5)
    fn = minidynamo.optimize("eager")(lambda x: module(x))
    with config.patch(guard_nn_modules=False):
        fn(torch.ones(2))
    fn(torch.ones(3))
    module.eval()
    assert torch.equal(fn(torch.ones(3)), torch.ones(3))


def test_a_mark_on_a_tensor_is_told(monkeypatch):
    fn = minidynamo.optimize("eager")(lambda x: x + 1)
    fn(torch.ones(2))
    marked = torch.ones(3)
    monkeypatch.setattr(markers, "_told", [])  # it is told once per process
    torch._dynamo.mark_dynamic(marked, 0)
    with pytest.warns(minidynamo.exc.MinidynamoWarning, match="dynamic"):
        assert torch.equal(fn(marked), marked + 1)


@pytest.mark.parametrize("size", [2, 3])
def test_nopython_raises_for_an_entry_with_a_break(size):
    source = Module("def f(x):\n y = x * 2\n minidynamo.graph_break()\n return y + 1")
    loose = minidynamo.optimize("eager")(source.names["f"])
    loose(torch.ones(2))
    strict = minidynamo.optimize("eager", nopython=True)(source.names["f"])
    with pytest.raises(minidynamo.exc.Unsupported):
        strict(torch.ones(size))


# --- random programs ---------------------------------------------------------------------------------------------------

ATOMS = st.sampled_from(["n", "m", "x.shape[0]", "x.size(1)", "2", "3", "len(x)", "x.numel()"])


def computed(inner):
    return st.builds("({} {} {})".format, inner, st.sampled_from("+ - * // %".split()), inner)


NUMBERS = ATOMS | computed(ATOMS) | computed(ATOMS | computed(ATOMS))
CONDITIONS = (
    st.builds("{} {} {}".format, NUMBERS, st.sampled_from("< <= == != > >=".split()), NUMBERS) | NUMBERS
)
LINES = st.one_of(
    st.builds("y = y + {}".format, NUMBERS),
    st.builds("y = y * {} - s".format, NUMBERS),
    st.builds("y = y[: {}]".format, NUMBERS),
    st.builds("y = y.narrow(0, 0, min({}, y.shape[0]))".format, NUMBERS),
    st.builds("y = y.reshape(y.shape[1], y.shape[0]) if y.dim() == 2 and {} else y + 1".format, CONDITIONS),
    st.builds("y = y - 1 if {} else y * s".format, CONDITIONS),
    st.builds("k = {}".format, NUMBERS),
    st.just("y = y.view(-1, y.shape[-1]) + k"),
    st.just("for i in range(k % 3): y = y + i"),
    st.just("out.append(k)"),
    st.just("y = torch.cat([y, y]) * x.shape[1]"),
    st.just("s = s / 2 + k"),
)
CALLS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.integers(1, 4),
        st.integers(-2, 4),
        st.sampled_from([0, 1, 3]),
        st.sampled_from([0.5, 2.0]),
    ),
    min_size=2,
    max_size=6,
)


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(st.lists(LINES, min_size=1, max_size=6), CALLS)
def test_random_programs(lines, calls):
    body = ["y = x * 1", "k = n", "out = []", *lines, "return y, out"]
    source = "def f(x, n, m, s):\n" + "\n".join(f"    {line}" for line in body)
    check(source, *(f"f(T({a}, {b}), {n}, {m}, {s})" for a, b, n, m, s in calls), warns=True)


def test_what_is_no_operator_for_these_strides_only():
    source = """
        class S(torch.Tensor): pass
        def f(x): return x.as_subclass(S).contiguous() * 2
        def g(x): return f(x), f(x).stride()
    """
    check(source, "g(T(2, 3))", "g(T(3, 3))", "g(T(3, 3).t())", "g(T(3, 2).t())")


@pytest.mark.parametrize("mark", [minidynamo.disallow_in_graph, torch._dynamo.disallow_in_graph])
def test_a_function_that_is_marked_later_is_not_in_the_next_graph(mark, monkeypatch):
    def program(x):
        return torch.special.expm1(x) * 2

    captured = []

    def note(event):
        if isinstance(event, events.Compiled):
            captured.append(event.graph)

    fn = minidynamo.optimize("eager")(program)
    with events.listen(note):
        fn(torch.ones(2))
        mark(torch.special.expm1)
        try:
            fn(torch.ones(3))
        finally:
            minidynamo.markers._disallowed.discard(torch.special.expm1)
            torch._dynamo.trace_rules._disallowed_callable_ids.remove(id(torch.special.expm1))
    assert "expm1" in captured[0] and not any("expm1" in graph for graph in captured[1:])


def test_a_replayed_entry_dies_with_what_it_names():
    class Layer:
        scale = 3

    fn = minidynamo.optimize("eager")(lambda x, kind: x * kind.scale)
    for size in (2, 3):
        fn(torch.ones(size), Layer)
    entries = [entry for _, entry in minidynamo.compiled_frames(fn)]
    assert len(entries) == 2 and all(entry.guarded.check.validity.valid for entry in entries)
    del Layer
    gc.collect()
    assert not any(entry.guarded.check.validity.valid for entry in entries)


def test_what_is_known_of_an_entry_keeps_nothing_alive_that_it_calls():
    class Compiled:
        def __init__(self, module):
            self.forward = module.forward

        def __call__(self, *inputs):
            return self.forward(*inputs)

    made = []

    def backend(module, inputs):
        made.append(Compiled(module))
        return made[-1]

    fn = minidynamo.optimize(backend)(lambda x: x + 1)
    fn(torch.ones(2))
    (record,) = (entry.guarded for _, entry in minidynamo.compiled_frames(fn))
    ref = weakref.ref(made.pop())
    del fn
    minidynamo.reset()
    gc.collect()
    assert ref() is None and "x" in record.graph_text
