"""Direct entries: who keeps whom alive, leaks, missing memory, threads, depth."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref

import pytest

OUTPUT = ("output", 0)
HOWS = pytest.mark.parametrize("how", ["optimized", "hooked"])


class Thing:
    """Something with an identity and weak references."""


class Model:
    def forward(self, *args):
        return (self, *args)


MODEL = Model()

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
        d = kit.direct(how, Fallible(flag).forward, recipe, (1,) * 20, 2)
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

    d = kit.direct("hooked", graph, ("list", (OUTPUT, ("argument", 1))), eager=lambda a: [a, None])
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
