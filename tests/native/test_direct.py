"""Direct entries: C calls the graph and builds the result from a recipe; the entry's code does not run."""

from __future__ import annotations

import cProfile
import gc
import math
import operator
import pstats
import sys
import threading
import time
import types
import weakref

import pytest

OUTPUT = ("output", 0)
HOWS = pytest.mark.parametrize("how", ["optimized", "hooked"])


class Thing:
    """Something with an identity and weak references."""


class Direct:
    """f with one direct entry whose code, should it ever run, returns "code"; `call` runs f in one of two ways."""

    def __init__(
        self, kit, how, graph, recipe=OUTPUT, inputs=(0,), outputs=1, signature="a, b=None", **names
    ):
        self.kit, self.how = kit, how
        self.f = kit.define(
            f"def f({signature}): return eager(a)", **{"eager": lambda a: ("eager", a), **names}
        )
        self.handle = kit.C.EntryHandle(graph, outputs)
        self.spec = (self.handle, inputs, recipe)
        self.new = kit.define(f"def f({signature}): return 'code'")
        self.entry = kit.add(self.f, self.new, handles=(self.handle,), rerunnable=True, direct=self.spec)
        self.optimized = kit.optimized(self.f)

    def call(self, *args, **kwargs):
        if self.how == "optimized":
            return self.optimized(*args, **kwargs)
        return self.kit.hooked(self.f, *args, **kwargs)


@pytest.fixture(params=["optimized", "hooked"])
def direct(kit, request):
    """direct(graph, recipe, inputs, outputs, signature): an f with a direct entry, called in both ways."""
    return lambda *args, **kwargs: Direct(kit, request.param, *args, **kwargs)


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


# ---- who keeps whom alive ----

SETUP = """
import gc
class Guarded:
    def __init__(self, code, handle, direct):
        self.code, self.handles, self.direct, self.owned = code, (handle,), direct, ()
        self.check_fn, self.validity, self.payload = (lambda *_: True), C.Validity(), None
        self.has_break, self.rerunnable = False, True
ctx = C.OptimizeContext(C.CompileKey("b"))
def make(source):
    names = {}
    exec(f"def f(a, b=1): {source}", names)
    return names["f"]
def hooked(f, *args):
    before = C.swap_active(ctx)
    try:
        return f(*args)
    finally:
        C.swap_active(before)
def optimized(f, *args):
    return C.OptimizedFunction(f, ctx)(*args)
class Model:
    def forward(self, a):
        return graph(a)
reports = []
C.set_rerun_callback(lambda entry, text: reports.append((text, entry.valid, entry.original_code)))
def run(call, method, inputs):
    f = make("return ('eager', a)")
    handle = C.EntryHandle(Model().forward if method else (lambda a: graph(a)), 2)
    recipe = ("list", (("output", 0), ("constant", bytearray(300)), ("tuple", (("argument", 1), ("output", 1)))))
    C.add_entry(f.__code__, ctx, Guarded(make("return 'code'").__code__, handle, (handle, inputs, recipe)))
    del recipe
    result = call(f, [5], [6])
    assert handle.target is None
    return result
def everywhere(expected):
    for call in (optimized, hooked):
        for method in (False, True):
            for i in (0, 1):
                assert run(call, method, (i,)) == expected(i)
"""


@pytest.mark.parametrize("malloc", ["debug", "malloc_debug"])
@pytest.mark.parametrize("clear", ["C.reset_all()", "ctx.key.entries[0].valid = False; C.reset_all()"])
def test_an_entry_evicted_by_its_own_graph(python, malloc, clear):
    python(
        SETUP
        + f"""
def graph(a):
    {clear}
    gc.collect()
    junk = [bytearray(300) for _ in range(50)]
    return (a, [a])
everywhere(lambda i: [[5 + i], bytearray(300), ([6], [[5 + i]])])
assert C.stats()["graphs_direct"] == 8 and not reports
""",
        PYTHONMALLOC=malloc,
    )


def test_an_entry_evicted_by_its_own_graph_that_fails(python):
    python(
        SETUP
        + """
def graph(a):
    C.reset_all()
    gc.collect()
    junk = [bytearray(300) for _ in range(50)]
    raise ValueError("after")
everywhere(lambda i: ('eager', [5]))
assert reports == [("ValueError: after", False, None)] * 8
""",
        PYTHONMALLOC="debug",
    )


def test_a_graph_that_frees_everything_it_can_reach(python):
    """The function's code object, its optimized object's attributes, the handle, the arguments' other references."""
    python(
        SETUP
        + """
def graph(a):
    things.clear()
    C.reset_all()
    gc.collect()
    junk = [bytearray(300) for _ in range(50)]
    return (a, a)
for call in (optimized, hooked):
    f = make("return ('eager', a)")
    handle = C.EntryHandle(Model().forward, 2)
    entry = C.add_entry(f.__code__, ctx, Guarded(make("return 'code'").__code__, handle, (handle, (0,), ("tuple", (
        ("output", 1), ("constant", bytearray(300)), ("argument", 0))))))
    things = [f, handle, entry, bytearray(b"5")]
    del f, handle, entry
    assert call(things[0], things[3]) == (bytearray(b"5"), bytearray(300), bytearray(b"5"))
""",
        PYTHONMALLOC="debug",
    )


def test_reference_counts_stay_as_they_are(direct):
    x, y, constant, out = (Thing() for _ in range(4))
    outputs = (out, out)
    graph = MODEL.forward
    recipes = [
        OUTPUT,
        ("argument", 0),
        ("constant", constant),
        ("tuple", (OUTPUT, ("output", 1))),
        ("list", (("argument", 1), ("constant", constant), ("tuple", (OUTPUT,)))),
    ]
    made = [
        direct(lambda *_args: outputs, recipe, inputs, 2) for recipe in recipes for inputs in ((0, 1), (1,))
    ]
    made += [direct(graph, OUTPUT, (0,), 2), direct(graph, OUTPUT, (1,), 2)]
    watched = (x, y, constant, out, outputs, MODEL, Model.forward, None)
    for rounds in (1, 100):
        before = [sys.getrefcount(w) for w in watched]
        for d in made:
            for _ in range(rounds):
                d.call(x, y)
        after = [sys.getrefcount(w) for w in watched]
        assert before[:-1] == after[:-1] and abs(before[-1] - after[-1]) < 50


class Fallible:
    def __init__(self, flag):
        self.flag = flag

    def forward(self, *args):
        if self.flag:
            raise ValueError
        return [args[-1], self]


def test_nothing_leaks_with_the_collector_off(kit):
    """Blocks stay constant over rounds of make, hit, fail, evict and refuse, in both ways of running."""

    def one_round(how):
        flag = []
        constant = Thing()
        recipe = ("list", (("constant", constant), ("tuple", (OUTPUT, ("argument", 1)) * 10), ("output", 1)))
        d = Direct(kit, how, Fallible(flag).forward, recipe, (1,) * 20, 2)
        d.call(1, 2)
        d.call(1, b=[2])
        flag.append(1)
        d.call(1, 2)
        watch = weakref.ref(constant)
        kit.C.reset_code(d.f.__code__)
        del d.entry, d.spec, constant, recipe
        assert watch() is None
        for malformed in ((d.handle, (0,), ("list", (("constant", Thing()), ("output", 9)))), (1, 2, 3)):
            handle = kit.C.EntryHandle(len, 1)
            try:  # pytest.raises would make a cycle
                kit.add(d.f, d.f.__code__.replace(), handles=(handle,), rerunnable=True, direct=malformed)
            except ValueError:
                flag.append(2)
        assert flag == [1, 2, 2]
        d.f.__globals__.clear()
        d.new.__globals__.clear()

    gc.collect()
    gc.disable()
    try:
        for how in ("optimized", "hooked"):
            for _ in range(600):  # the interpreter's own caches fill up
                one_round(how)
            before = sys.getallocatedblocks()
            for _ in range(100):
                one_round(how)
            assert sys.getallocatedblocks() - before < 50
    finally:
        gc.enable()


def test_memory_may_run_out_at_any_allocation(kit, direct):
    """While a direct entry is made, and while it runs: MemoryError, or a plain re-run, and nothing is left over."""
    testcapi = pytest.importorskip("_testcapi")
    x, constant = Thing(), Thing()
    recipe = (
        "list",
        (("constant", constant), ("tuple", (OUTPUT, ("argument", 0)) * 10), ("list", (OUTPUT,))),
    )
    outcomes = set()

    def without_memory(fn):
        """Calls fn so often that each of its allocations fails once."""
        for i in range(500):
            try:
                testcapi.set_nomemory(i, i + 1)
                result = fn()
                testcapi.remove_mem_hooks()
            except MemoryError:
                testcapi.remove_mem_hooks()
                outcomes.add("MemoryError")
                continue
            outcomes.add("eager" if result == ("eager", x) else "result")
            if i > 100:
                return
        raise AssertionError("it always fails")

    def make():
        handle = kit.C.EntryHandle(MODEL.forward, 21)
        guarded = kit.Guarded(code, handles=(handle,), rerunnable=True, direct=(handle, (0,) * 20, recipe))
        return kit.C.add_entry(f.__code__, kit.ctx, guarded)

    f = kit.define("def f(a): return a")
    code = kit.define("def f(a): return 0").__code__
    before = sys.getrefcount(constant)
    without_memory(make)
    kit.C.reset_all()
    assert sys.getrefcount(constant) == before and outcomes == {"MemoryError", "result"}
    outcomes.clear()
    names = ", ".join(f"a{i}" for i in range(20))  # 3.11 and 3.12 leak *args without memory for their tuple
    d = direct(kit.define(f"def graph({names}): return [{names}]"), recipe, (0,) * 20, 20)
    expected = [constant, (x, x) * 10, [x]]
    assert d.call(x) == expected
    before = sys.getrefcount(constant), sys.getrefcount(x)
    without_memory(lambda: d.call(x))
    assert outcomes == {"MemoryError", "result"} or outcomes == {"MemoryError", "result", "eager"}
    assert d.call(x) == expected
    gc.collect()
    assert (sys.getrefcount(constant), sys.getrefcount(x)) == before


@pytest.mark.parametrize("through", ["constant", "graph", "method"])
def test_cycles_through_a_direct_entry_are_collected(kit, through):
    def make(how):
        marker = Thing()
        key = kit.C.CompileKey("cycle")
        model = Model()
        model.loop = [marker, key]
        graph = {"method": model.forward, "graph": lambda a: (a, model)[:1], "constant": abs}[through]
        constant = model if through == "constant" else None
        handle = kit.C.EntryHandle(graph, 2)
        f = kit.define("def f(a): return marker", marker=marker)
        code = kit.define("def f(a): return 0").__code__
        spec = (handle, (0,), ("list", (("constant", constant), ("argument", 0))))
        ctx = kit.C.OptimizeContext(key)
        kit.add(f, code, ctx=ctx, handles=(handle,), rerunnable=True, direct=spec)
        model.loop.append((f, spec))
        model.loop.append(kit.C.OptimizedFunction(f, ctx))
        model.loop[-1](1)
        return weakref.ref(marker)

    watches = [make(how) for how in ("optimized", "hooked")]
    gc.collect()
    assert [w() for w in watches] == [None, None]


def test_the_collector_may_run_while_the_result_is_made(direct):
    """And with it somebody who shares the list that the graph returned (only 3.11 collects at an allocation)."""
    returned = []

    def graph(a):
        returned[:] = [[a], [a]]
        return returned

    def shrink(_phase, _info):
        returned.clear()
        returned.append(0)

    parts = [("list", (("output", i % 2), ("tuple", (("argument", 0),)))) for i in range(4)]
    d = direct(graph, ("tuple", tuple(parts)), outputs=2)
    threshold = gc.get_threshold()
    gc.callbacks.append(shrink)
    gc.set_threshold(3)
    try:
        results = [d.call(i) for i in range(100)]
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(shrink)
    assert results == [([[i], (i,)],) * 4 for i in range(100)]


# ---- threads, depth ----


@HOWS
def test_threads_share_an_entry_that_comes_and_goes(kit, how):
    stop = threading.Event()
    errors = []

    def graph(a):
        time.sleep(0)
        if a % 5 == 0:
            raise ValueError
        return [a]

    def add():
        handle = kit.C.EntryHandle(graph, 1)
        spec = (handle, (0,), ("list", (OUTPUT, ("argument", 0), ("constant", "k"))))
        kit.add(f, kit.define("def f(a): return 0"), handles=(handle,), rerunnable=True, direct=spec)

    f = kit.define("def f(a): return ['eager', a, 'k']")

    def work(start):
        optimized = kit.optimized(f)
        i = start
        while not stop.is_set():
            i += 1
            answer = optimized(i) if how == "optimized" else kit.hooked(f, i)
            if answer != [i, i, "k"] and answer != ["eager", i, "k"]:
                errors.append(answer)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i * 10**6,)) for i in range(3)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            add()
            time.sleep(0.0005)
            kit.C.reset_code(f.__code__)
        stop.set()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == [] and kit.counted("graphs_direct") > (0,) and kit.counted("reruns") > (0,)
    assert not kit.C.hook_installed()


@pytest.mark.parametrize("fails", [False, True])
def test_a_frame_given_back_at_every_place_of_a_chunk(kit, fails):
    def graph(a):
        return 1 / 0 if fails else (a,)

    d = Direct(kit, "hooked", graph, ("list", (OUTPUT, ("argument", 1))), eager=lambda a: [a, None])
    outer = kit.define("def g(n): return f(n) if n == 0 else g(n - 1)", f=d.f)
    kit.C.mark_code(outer.__code__, kit.C.SKIP)
    for depth in range(0, 700, 3):
        assert kit.hooked(outer, depth) == [0, None]
    assert kit.counted("graphs_direct", "reruns") == (234, 234 if fails else 0)


@HOWS
def test_recursion_through_graphs_ends_in_a_recursion_error(python, how):
    """The innermost level that still has room for its own frame runs again in plain Python; its result counts."""
    python(
        SETUP
        + f"""
import sys
sys.setrecursionlimit(400)
C.set_rerun_callback(None)
deepest = 0
def graph(a):
    global deepest
    deepest = max(deepest, a)
    return (call(a + 1), a)
f = make("return a")
handle = C.EntryHandle(graph, 2)
C.add_entry(f.__code__, ctx, Guarded(make("return 'code'").__code__, handle, (handle, (0,), ("output", 0))))
if {how == "optimized"}:
    call = C.OptimizedFunction(f, ctx)
else:
    call = lambda a: hooked(f, a)
result = call(0)
assert deepest > 90 and result in (deepest, deepest + 1), (result, deepest)
"""
    )


# ---- what is refused ----


def nested(depth):
    recipe = OUTPUT
    for _ in range(depth - 1):
        recipe = ("tuple", (recipe,))
    return recipe


def doubled(depth):
    recipe = OUTPUT
    for _ in range(depth):
        recipe = ("list", (recipe, recipe))
    return recipe


@pytest.mark.parametrize(
    ("inputs", "recipe", "message"),
    [
        ([0], OUTPUT, "the inputs must be a tuple, not list"),
        ((0, 1.0), OUTPUT, "the index of an argument must be int, not float"),
        ((True,), OUTPUT, "the index of an argument must be int, not bool"),
        ((0, 2), OUTPUT, "argument 2 does not exist, there are 2"),
        ((-1,), OUTPUT, "argument -1 does not exist, there are 2"),
        ((10**5000,), OUTPUT, f"argument {sys.maxsize} does not exist, there are 2"),
        ((0,), ("output", 1), "output 1 does not exist, there are 1"),
        ((0,), ("output", "0"), "the index of an output must be int, not str"),
        ((0,), ("argument", 2), "argument 2 does not exist, there are 2"),
        ((0,), ("argument", None), "the index of an argument must be int, not NoneType"),
        ((0,), ("tuple", [OUTPUT]), "the items of a tuple must be a tuple of recipes, not list"),
        ((0,), ("list", 5), "the items of a list must be a tuple of recipes, not int"),
        ((0,), ("set", (OUTPUT,)), "a recipe must be"),
        ((0,), ("output",), "a recipe must be"),
        ((0,), ("output", 0, 0), "a recipe must be"),
        ((0,), ["output", 0], "a recipe must be"),
        ((0,), (0, 0), "a recipe must be"),
        ((0,), None, "a recipe must be"),
        ((0,), ("tuple", (("constant", []), ("tuple", (("constant", {}), ("no", 1))))), "a recipe must be"),
        ((0,), nested(101), "the recipe is too large"),
        ((0,), doubled(60), "the recipe is too large"),
    ],
)
def test_malformed_recipes_are_refused(kit, inputs, recipe, message):
    f = kit.define("def f(a, b): return a")
    handle = kit.C.EntryHandle(len, 1)
    with pytest.raises(ValueError, match=message) as caught:
        kit.add(
            f,
            kit.define("def f(a, b): return 0"),
            handles=(handle,),
            rerunnable=True,
            direct=(handle, inputs, recipe),
        )
    assert str(caught.value).startswith("cache entry: malformed `direct`: ") and "\n" not in str(caught.value)
    assert kit.C.cache_entries(f.__code__) == kit.key.entries == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (5, r"None or a tuple \(handle, inputs, recipe\), not int"),
        ((1, 2), r"a tuple \(handle, inputs, recipe\), not a tuple of 2"),
        ((len, (), OUTPUT), "its handle must be one of `handles` and a graph"),
        ("other", "its handle must be one of `handles` and a graph"),
        ("no graph", "its handle must be one of `handles` and a graph"),
    ],
)
def test_what_is_no_direct_entry_is_refused(kit, spec, message):
    f = kit.define("def f(a): return a")
    handles = {"other": kit.C.EntryHandle(len, 1), "no graph": kit.C.EntryHandle(len)}
    mine = kit.C.EntryHandle(len, 1)
    if isinstance(spec, str):
        spec = (handles[spec], (0,), OUTPUT)
    new = kit.define("def f(a): return 0")
    with pytest.raises(ValueError, match=message):
        kit.add(f, new, handles=(mine, handles["no graph"]), rerunnable=True, direct=spec)
    assert kit.key.entries == []


@pytest.mark.parametrize(("has_break", "rerunnable"), [(True, True), (False, False)])
def test_a_direct_entry_has_no_break_and_may_run_again(kit, has_break, rerunnable):
    f = kit.define("def f(a): return a")
    handle = kit.C.EntryHandle(len, 1)
    rest = {"handles": (handle,), "has_break": has_break, "rerunnable": rerunnable}
    with pytest.raises(ValueError, match="with `direct` it must be rerunnable and have no break"):
        kit.add(f, kit.define("def f(a): return 0"), direct=(handle, (0,), OUTPUT), **rest)


def test_an_attribute_that_raises_is_not_swallowed(kit):
    class Raising(kit.Guarded):
        @property
        def direct(self):
            raise ZeroDivisionError

        @direct.setter
        def direct(self, value):
            pass

    f = kit.define("def f(a): return a")
    with pytest.raises(ZeroDivisionError):
        kit.C.add_entry(f.__code__, kit.ctx, Raising(kit.define("def f(a): return 0").__code__))


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
