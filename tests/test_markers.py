"""Marks on functions and tensors, ours and torch's: what a graph calls, what it does not, what is constant, what is not there."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

import minidynamo
from minidynamo import markers
from minidynamo.exc import NotSupported
from minidynamo.testing import EagerAndRecordGraphs

X = torch.arange(4.0)
OURS = {
    name: getattr(minidynamo, name)
    for name in ("allow_in_graph", "disallow_in_graph", "assume_constant_result")
}
THEIRS = {
    "allow_in_graph": lambda fn: torch.compiler.allow_in_graph(fn),
    "assume_constant_result": lambda fn: torch.compiler.assume_constant_result(fn),
}


def both(name):
    return [pytest.param(OURS[name], id="ours"), pytest.param(THEIRS[name], id="torch's")]


def explained(fn, *args):
    out = minidynamo.explain(fn)(*args)
    return out, [reason.code for reason, _ in (e.guarded.break_ for e in out.frames if e.guarded.break_)]


# --- allow_in_graph ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mark", both("allow_in_graph"))
def test_an_allowed_function_is_one_node(mark):
    def inner(x, n):
        log = [print, x]  # nothing that a trace would have to follow
        return log[1] * n, x.sum()

    inner = mark(inner)
    backend = EagerAndRecordGraphs()

    @minidynamo.optimize(backend, nopython=True)
    def f(x):
        y, total = inner(x, n=3)
        return y + total

    for _ in range(2):
        assert torch.equal(f(X), X * 3 + X.sum())
    (graph,) = backend.graphs
    assert [n.target for n in graph.graph.nodes if n.op == "call_function"][0] is inner


def test_an_allowed_function_may_write_into_its_arguments_and_draw_random_numbers():
    @minidynamo.allow_in_graph
    def noisy(x):
        x.add_(1)
        return x + torch.rand(4)

    def f(x):
        y = x * 2
        z = noisy(y)
        return y, z, x

    expected, x = None, None
    for run in (f, minidynamo.optimize("eager", nopython=True)(f)):
        torch.manual_seed(3)
        x = X.clone()
        found = run(x)
        expected = expected or found
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert found[2] is x


def test_an_allowed_function_that_raises_raises_once_from_plain_python():
    calls = []

    @minidynamo.allow_in_graph
    def refuses(x):
        if not isinstance(x, torch._subclasses.FakeTensor):
            calls.append(1)
            raise ValueError("no")
        return x + 1

    f = minidynamo.optimize("eager")(lambda x: refuses(x) * 2)
    with pytest.raises(ValueError, match="no"):
        f(X)
    assert len(calls) == 1  # what it does is not known: it is not run again


def test_lists_and_changes_of_mind():
    def one(x):
        return x + 1

    def two(x):
        return x + 2

    assert minidynamo.allow_in_graph([one, two]) == [one, two]
    assert markers.in_graph(one) is markers.in_graph(two) is True
    minidynamo.disallow_in_graph(one)
    assert markers.in_graph(one) is False and markers.in_graph(lambda: 0) is None


@pytest.mark.parametrize("name", ["allow_in_graph", "disallow_in_graph"])
@pytest.mark.parametrize("value", [3, torch.nn.Linear(2, 2), int])
def test_only_functions_take_the_marks(name, value):
    with pytest.raises(TypeError, match=f"minidynamo.{name} takes a function, not"):
        OURS[name](value)


# --- disallow_in_graph ---------------------------------------------------------------------------------------------------
def test_a_disallowed_operator_breaks_the_graph():
    def f(x):
        return torch.sin(x + 1) * 2

    minidynamo.disallow_in_graph(torch.sin)
    try:
        out, codes = explained(f, X)
        assert codes == ["MD221"] and torch.equal(out.result, f(X))
    finally:
        markers._disallowed.discard(torch.sin)
    minidynamo.reset()
    assert explained(f, X)[1] == []


# --- assume_constant_result ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mark", both("assume_constant_result"))
def test_a_constant_result_is_asked_for_once_per_compilation(mark):
    calls = []

    @mark
    def setting(name, scale=1):
        calls.append(name)
        return {"a": 2}[name] * scale, torch.float32

    @minidynamo.optimize("eager", nopython=True)
    def f(x):
        n, dtype = setting("a", scale=3)
        return x.to(dtype) * n

    for _ in range(3):
        assert torch.equal(f(X), X * 6)
    assert calls == ["a"]


@pytest.mark.parametrize(
    ("body", "argument"),
    [("return 2", "x"), ("return object()", "1"), ("raise KeyError('a')", "1")],
    ids=["argument", "result", "error"],
)
def test_what_is_no_constant_runs_as_plain_python(body, argument):
    names = {"torch": torch, "minidynamo": minidynamo}
    exec(
        textwrap.dedent(f"""
        @minidynamo.assume_constant_result
        def setting(value):
            {body}

        def f(x):
            try:
                return x + 1, type(setting({argument}))
            except KeyError as error:
                return x - 1, str(error)
        """),
        names,
    )
    f = names["f"]
    found, wanted = minidynamo.optimize("eager")(f)(X), f(X)
    assert torch.equal(found[0], wanted[0]) and found[1] == wanted[1]


# --- disable and graph_break of torch's --------------------------------------------------------------------------------------
def helper(x):
    return x * 3


def outer(x):
    return helper(x) + 1


@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize("captured", [True, False], ids=["from a graph", "from plain Python"])
def test_torchs_disable(recursive, captured):
    off = torch.compiler.disable(outer, recursive=recursive)

    def f(x):
        if not captured:
            print("", end="")
            return off(x)
        return off(x + 1) * 2

    optimized = minidynamo.optimize("eager")(f)
    for _ in range(2):
        assert torch.equal(optimized(X), f(X))
    assert minidynamo.cache_entries(outer) == []
    assert bool(minidynamo.cache_entries(helper)) is not recursive


def test_torchs_disabled_method():
    class Thing:
        @torch.compiler.disable
        def off(self, x):
            return x * 3

        def run(self, x):
            return self.off(x + 1) * 2

    thing = Thing()
    out, codes = explained(thing.run, X)
    assert codes == ["MD221"] and torch.equal(out.result, (X + 1) * 6)


@pytest.mark.parametrize(
    "stop",
    [
        lambda: torch._dynamo.graph_break(),
        lambda: torch._dynamo.graph_break("here"),
        lambda: minidynamo.graph_break(),
        lambda: minidynamo.graph_break("here"),
        lambda: minidynamo.graph_break(msg="here"),
    ],
)
def test_graph_breaks(stop):
    import torch._dynamo

    def f(x):
        y = x + 1
        stop()
        return y * 2

    out, codes = explained(f, X)
    assert set(codes) <= {"MD222", "MD224"} and out.graph_count == 2 and torch.equal(out.result, f(X))


def test_is_compiling_by_every_name():
    import torch._dynamo.external_utils as theirs

    @minidynamo.optimize("eager", nopython=True)
    def f(x):
        found = (minidynamo.is_compiling(), torch.compiler.is_compiling(), theirs.is_compiling())
        return x + sum(found)

    assert torch.equal(f(X), X + 3)
    assert not minidynamo.is_compiling() and not torch.compiler.is_compiling()


# --- sizes -------------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    "mark", ["minidynamo.mark_dynamic(x, 0)", "torch._dynamo.mark_dynamic(x, 0)"], ids=["ours", "torch's"]
)
def test_mark_dynamic_says_once_that_shapes_are_static(mark, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(f"""
        import torch, torch._dynamo, minidynamo
        f = minidynamo.optimize("eager")(lambda x: x + 1)
        for n in (3, 4):
            x = torch.ones(n)
            {mark}
            f(x)
            minidynamo.maybe_mark_dynamic(x, 0), minidynamo.mark_static(x), minidynamo.mark_static(x, 0)
        print(len(minidynamo.cache_entries(f)))
        """)
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "2\n", done.stderr
    assert done.stderr.count("mark_dynamic has no effect") == 1
    assert f"{program.name}:" in done.stderr


@pytest.mark.parametrize("name", ["mark_dynamic", "maybe_mark_dynamic", "mark_static"])
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((3, 0), TypeError, "takes a tensor, not int"),
        ((X, "a"), TypeError, "takes an int or a list of them, not str"),
        ((X, 1), IndexError, "no dimension 1 in a tensor of 1"),
        ((X, [0, -2]), IndexError, "no dimension -2"),
    ],
)
def test_marks_of_sizes_check_their_arguments(name, arguments, error, text):
    with pytest.raises(error, match=f"minidynamo.{name}.*{text}"):
        getattr(minidynamo, name)(*arguments)


# --- what is not there -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(markers.ABSENT))
def test_what_is_absent_says_so_in_one_line(name):
    with pytest.raises(NotSupported, match=f"minidynamo.{name} is not supported: ") as told:
        getattr(minidynamo, name)(X)
    assert "\n" not in str(told.value) and isinstance(told.value, NotImplementedError)


@pytest.mark.slow
def test_torch_dynamo_is_not_loaded_by_any_of_this():
    text = """
    import sys, torch, minidynamo
    f = minidynamo.optimize("eager")(lambda x: x + 1)
    with minidynamo.set_stance("eager_on_recompile"):
        f(torch.ones(2))
    minidynamo.mark_static(torch.ones(2))
    f(torch.ones(2))
    sys.exit("torch._dynamo" in sys.modules)
    """
    env = {
        name: value for name, value in os.environ.items() if name != "MINIDYNAMO_VERIFY"
    }  # fake tensors load it
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(text)], env=env).returncode == 0
