"""Direct entries: C calls the graph and builds the result from a recipe; the entry's code does not run."""

from __future__ import annotations

import cProfile
import gc
import math
import operator
import pstats
import sys
import types
import weakref

import pytest

OUTPUT = ("output", 0)


class Thing:
    """Something with an identity and weak references."""


# ---- results ----

RECIPES = [
    (OUTPUT, "o0"),
    (("output", 2), "o2"),
    (("argument", 1), "y"),
    (("constant", "k"), "k"),
    (("constant", None), None),
    (("tuple", ()), ()),
    (("list", ()), []),
    (("tuple", (OUTPUT,)), ("o0",)),
    (("list", (("output", 1), OUTPUT)), ["o1", "o0"]),
    (("tuple", (OUTPUT, ("output", 1), ("output", 2))), ("o0", "o1", "o2")),
    (("tuple", (OUTPUT, ("output", 2), ("output", 1))), ("o0", "o2", "o1")),
    (("tuple", (OUTPUT, ("argument", 0), ("constant", "k"), ("argument", 1))), ("o0", "x", "k", "y")),
    (
        ("tuple", (("list", (OUTPUT, ("tuple", ()))), ("tuple", (("list", ()), ("argument", 1))), OUTPUT)),
        (["o0", ()], ([], "y"), "o0"),
    ),
    (("list", tuple(("output", i % 3) for i in range(40))), [f"o{i % 3}" for i in range(40)]),
]


@pytest.mark.parametrize(("recipe", "result"), RECIPES, ids=lambda value: repr(value)[:50])
@pytest.mark.parametrize("kind", [tuple, list, type("Values", (tuple,), {}), type("Values", (list,), {})])
def test_each_kind_of_recipe(direct, recipe, result, kind):
    returned = kind(["o0", "o1", "o2"])
    d = direct(lambda a: returned, recipe, outputs=3)
    for _ in range(3):
        got = d.call("x", "y")
        assert got == result and type(got) is type(result)
    assert returned == kind(["o0", "o1", "o2"])


def test_a_deep_recipe(direct):
    recipe, result = OUTPUT, 5
    for _ in range(99):
        recipe, result = ("tuple", (recipe, OUTPUT)), (result, 5)
    assert direct(lambda a: (5,), recipe).call(1) == result


def test_what_counts_and_what_is_left_to_count(kit, direct):
    d = direct(lambda a: (a,))
    assert [d.call(i) for i in range(3)] == [0, 1, 2]
    assert d.entry.hits == 3 and d.entry.direct is d.spec
    calls = (3, 0) if d.how == "optimized" else (0, 3)
    assert kit.counted("graphs_direct", "hits_direct", "frames") == (3, *calls)
    assert kit.counted("hits_in_place", "hits_called", "functions_made", "reruns") == (0, 0, 0, 0)


def test_other_entries_have_no_recipe(kit):
    f = kit.define("def f(a): return a")
    assert kit.add(f, kit.define("def f(a): return 0")).direct is None
    assert kit.optimized(f)(1) == 0 and kit.counted("graphs_direct") == (0,)


def test_identities(direct):
    x, y, constant, out = (Thing() for _ in range(4))
    recipe = ("tuple", (("argument", 0), ("list", (("argument", 1), ("constant", constant))), OUTPUT))
    d = direct(lambda b, a: (out,) if (a, b) == (x, y) else 1 / 0, recipe, inputs=(1, 0))
    first, second = d.call(x, y), d.call(x, y)
    assert first[0] is x and first[1][0] is y and first[1][1] is constant and first[2] is out
    assert first == second and first[1] is not second[1]
    first[1].clear()
    assert second[1] == [y, constant]


def test_the_graphs_own_list_is_not_the_result(direct):
    returned = [1, 2]
    d = direct(lambda a: returned, ("list", (OUTPUT, ("output", 1))), outputs=2)
    d.call(0).append(3)
    assert returned == [1, 2] and d.call(0) == [1, 2]


# ---- arguments ----


@pytest.mark.parametrize(
    ("signature", "args", "kwargs", "flat"),
    [
        ("a, b=7", (1,), {}, (1, 7)),
        ("a, b=7", (), {"b": 2, "a": 1}, (1, 2)),
        ("a, b=7, *rest, k=5, **more", (1,), {}, (1, 7, 5, (), {})),
        ("a, b=7, *rest, k=5, **more", (1, 2, 3, 4), {"k": 6, "z": 9}, (1, 2, 6, (3, 4), {"z": 9})),
        ("a, /, b, *, k=5, l", (1,), {"b": 2, "l": 3}, (1, 2, 5, 3)),
        ("*a", (1, 2), {}, ((1, 2),)),
        ("**a", (), {"x": 1}, ({"x": 1},)),
        ("a, " + ", ".join(f"b{i}" for i in range(40)), range(41), {}, tuple(range(41))),
    ],
)
def test_every_kind_of_argument(direct, signature, args, kwargs, flat):
    everything = tuple(range(len(flat)))
    every_argument = ("tuple", tuple(("argument", i) for i in everything))
    backwards = everything[::-1]
    for inputs in (everything, everything[:1], everything[1:], backwards, backwards * 2, ()):
        d = direct(lambda *given: (given,), ("tuple", (OUTPUT, every_argument)), inputs, signature=signature)
        assert d.call(*args, **kwargs) == (tuple(flat[i] for i in inputs), flat)
        assert d.kit.counted("reruns") == (0,)


def test_defaults_are_those_of_the_moment(direct):
    d = direct(lambda a, b: (a, b), ("tuple", (OUTPUT, ("output", 1))), (0, 1), 2)
    assert d.call(1) == (1, None)
    d.f.__defaults__ = (8,)
    assert d.call(1) == (1, 8)


def test_a_call_that_does_not_fit_raises_what_it_always_raises(direct):
    with pytest.raises(TypeError, match=r"f\(\) missing 1 required positional argument: 'a'"):
        direct(lambda a: (a,)).call()


# ---- the graph ----


class Model:
    def forward(self, *args):
        return (self, *args)

    __call__ = forward


MODEL = Model()
GRAPHS = {
    "function": (lambda *args: (MODEL, *args), (MODEL, 1, 2)),
    "method": (MODEL.forward, (MODEL, 1, 2)),
    "callable": (MODEL, (MODEL, 1, 2)),
    "method of a callable": (types.MethodType(MODEL, "self"), (MODEL, "self", 1, 2)),
    "method of a method": (types.MethodType(MODEL.forward, "self"), (MODEL, "self", 1, 2)),
    "method of a builtin": (types.MethodType(divmod, 17), (5, 2)),
    "builtin": (divmod, (0, 1)),
    "builtin method": ("a-b".partition, ("a", "-", "b")),
    "class": (
        type("Three", (tuple,), {"__new__": lambda cls, *a: tuple.__new__(cls, (MODEL, *a))}),
        (MODEL, 1, 2),
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("order", ["as given", "reversed"])
def test_every_kind_of_graph(direct, name, order):
    graph, outputs = GRAPHS[name]
    args = {"builtin method": ("-",), "method of a builtin": (3,)}.get(name, (1, 2))
    inputs = tuple(range(len(args)))
    if order == "reversed":
        args, inputs = args[::-1], inputs[::-1]
    recipe = ("tuple", tuple(("output", i) for i in range(len(outputs))))
    d = direct(graph, recipe, inputs, len(outputs), signature="a, *b" if len(args) == 1 else "a, b")
    assert d.call(*args) == d.call(*args) == outputs
    assert d.kit.counted("reruns") == (0,)


def test_graphs_run_with_capture_off(kit, direct):
    def graph(a):
        return (kit.C.active(), kit.C.hook_installed())

    d = direct(graph, ("tuple", (OUTPUT, ("output", 1))), outputs=2)
    assert d.call(1) == (None, False)
    before = kit.C.swap_active(kit.ctx)
    seen = d.call(1), kit.C.active(), kit.C.hook_installed()
    kit.C.swap_active(before)
    assert seen == ((None, False), kit.ctx, True)


def test_a_profiler_sees_the_function(direct):
    """Then the entry's code runs, under the function's name."""
    d = direct(lambda a: (a,))
    profile = cProfile.Profile()
    assert profile.runcall(d.call, 1) == "code"
    assert any(name == "f" for _file, _line, name in pstats.Stats(profile).stats)
    assert d.call(1) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_a_monitor_of_calls_sees_the_function(direct):
    d = direct(lambda a: (a,))
    seen = []
    sys.monitoring.use_tool_id(3, "test")
    sys.monitoring.register_callback(
        3, sys.monitoring.events.PY_START, lambda code, _: seen.append(code.co_name)
    )
    sys.monitoring.set_events(3, sys.monitoring.events.PY_START)
    try:
        assert d.call(1) == "code"
    finally:
        sys.monitoring.set_events(3, 0)
        sys.monitoring.free_tool_id(3)
    assert "f" in seen and d.call(1) == 1


# ---- graphs that fail ----


@pytest.fixture
def failing(kit, direct):
    """A direct f whose graph raises `error`; `log` has what plain runs saw, `reports` what the callback got."""

    def graph(*_args):
        raise f.error

    def eager(a):
        f.log.append((a, kit.C.active(), kit.C.hook_installed()))
        if a == "raise":
            raise LookupError("eager")
        return ("eager", a)

    f = direct(graph, eager=eager, signature="a, *rest, k=3, **more")
    f.log, f.reports, f.error = [], [], ZeroDivisionError("why")
    kit.C.set_rerun_callback(lambda entry, text: f.reports.append((entry, text)))
    return f


def test_a_failed_graph_is_run_again_in_plain_python(kit, failing):
    assert failing.call(1, 2, k=4, z=5) == ("eager", 1)
    assert failing.log == [(1, None, False)] and failing.reports == [
        (failing.entry, "ZeroDivisionError: why")
    ]
    with pytest.raises(LookupError, match="eager") as caught:
        failing.call("raise")
    assert caught.value.__context__ is None and len(failing.reports) == 1
    failing.error = KeyError("why")
    assert failing.call(2) == ("eager", 2)
    assert failing.reports[1:] == [(failing.entry, "KeyError: 'why'")]
    assert kit.counted("reruns", "graphs_direct") == (3, 3)
    assert failing.entry.hits == 3 and sys.exc_info() == (None, None, None)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), type("Own", (BaseException,), {})()]
)
def test_other_exceptions_leave_the_call(kit, failing, error):
    failing.error = error
    with pytest.raises(type(error)) as caught:
        failing.call(1)
    assert caught.value is error and failing.log == failing.reports == []
    assert kit.counted("reruns") == (0,)


def test_an_error_that_cannot_be_printed_is_reported_by_its_type(failing):
    class Unprintable(Exception):
        def __str__(self):
            raise ValueError

    failing.error = Unprintable()
    assert failing.call(1) == ("eager", 1) and failing.reports == [(failing.entry, "Unprintable")]


def test_the_error_of_the_rerun_callback_is_the_error_of_the_call(kit, failing):
    def callback(entry, text):
        raise RuntimeWarning(text)

    kit.C.set_rerun_callback(callback)
    with pytest.raises(RuntimeWarning, match="ZeroDivisionError: why"):
        failing.call(1)


def test_the_error_and_its_frames_are_not_kept(failing):
    thing = Thing()
    failing.error = ValueError(thing)
    watch = weakref.ref(thing)
    del thing
    assert failing.call(1) == ("eager", 1)
    failing.error = None
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize(
    ("returned", "outputs", "message"),
    [
        (5, 1, r"returned int, but the graph has 1 output\(s\): it must return a tuple or list"),
        (None, 0, r"returned NoneType, but the graph has 0 output\(s\)"),
        ((1,), 2, r"returned 1 value\(s\), but the graph has 2 output\(s\)"),
        ([1, 2, 3], 2, r"returned 3 value\(s\), but the graph has 2 output\(s\)"),
    ],
)
def test_a_graph_with_the_wrong_outputs_is_a_graph_that_failed(kit, direct, returned, outputs, message):
    reports = []
    kit.C.set_rerun_callback(lambda entry, text: reports.append(text))
    d = direct(lambda a: returned, ("tuple", ()), outputs=outputs)
    with pytest.raises(RuntimeError, match=message) as caught:
        d.handle(1)
    assert d.call(1) == ("eager", 1) and reports == [f"RuntimeError: {caught.value}"]


def test_a_rerun_uses_the_code_and_the_arguments_of_the_call(kit, direct):
    """The graph may give the function new code and empty what the caller passed."""

    def graph(a):
        d.f.__code__ = kit.define("def f(a, b=None): return 'other'").__code__
        raise ValueError

    d = direct(graph)
    if d.how == "hooked":
        assert d.call(1) == ("eager", 1)
    else:  # plain Python, too, runs the code that a function has when it is called
        assert d.call(1) == "other"
    assert d.call(1) == "other"


def test_a_compiler_answers_with_a_direct_entry(kit):
    """The frame that was compiled runs directly, too."""
    f = kit.define("def f(a, b): return 'eager'")
    handle = kit.C.EntryHandle(math.hypot, 1)
    kit.C.set_convert_frame(
        lambda *_: kit.Guarded(
            kit.define("def f(a, b): return 'code'").__code__,
            handles=(handle,),
            rerunnable=True,
            direct=(handle, (0, 1), ("argument", 0)),
        )
    )
    optimized = kit.optimized(f)
    assert optimized(3, 4) == "eager" and kit.counted("reruns", "graphs_direct") == (
        1,
        1,
    )  # a float is no tuple
    kit.C.reset_code(f.__code__)
    handle = kit.C.EntryHandle(operator.itemgetter(slice(1)), 1)
    assert optimized([3], 4) == "eager"  # called with two arguments
