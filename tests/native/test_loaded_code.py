"""Entries whose code calls a graph without what their guards have loaded for it."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref

import pytest

from tests.native.conftest import C
from tests.native.programs import LITERAL, instructions


class Thing:
    def __init__(self, **values):
        self.__dict__.update(values)


def loading():
    """Loads a.x and a.d["k"]; holds if a.x is a str."""
    code = instructions(
        ("LOAD_LOCAL", 0),
        ("LOAD_ATTR", 0, "x"),
        ("LOAD_ATTR", 0, "d"),
        ("LOAD_ITEM", 2, (LITERAL, "k")),
        ("CHECK_TYPE_ID", 1, id(str)),
    )
    return C.GuardProgram(code, 1, inputs=(1, 3))


@pytest.fixture(params=["optimized", "hooked"])
def entry(kit, request):
    """entry(graph, source, loaded) -> (call, entry): f(a) whose code is `source`, in which `graph` takes a.x and a.d["k"] as
    those of its inputs that `loaded` says."""

    def make(graph, source="return graph()[0]", loaded=(0, 1), outputs=1, eager=lambda a: "eager", **flags):
        handle = C.EntryHandle(graph, outputs, loaded)
        f = kit.define("def f(a): return eager(a)", eager=eager, graph=handle, RERUN=C.RERUN)
        body = "".join(f"\n    {line}" for line in source.splitlines())
        made = kit.add(f, kit.define(f"def f(a):{body}"), loading(), handles=(handle,), **flags)
        run = kit.optimized(f)
        return (run if request.param == "optimized" else lambda *a: kit.hooked(f, *a)), made

    return make


def both(x="x", k="1"):
    return Thing(x=x, d={"k": k})


@pytest.mark.parametrize(
    "source, loaded, result",
    [
        ("return graph()[0]", (0, 1), ("x", "1")),
        ("return graph(7)[0]", (0, 1), ("x", "1", 7)),
        ("return graph(7)[0]", (0, 2), ("x", 7, "1")),
        ("return graph(7)[0]", (1, 2), (7, "x", "1")),
        ("return graph(7, 8, a)[0][:4]", (1, 3), (7, "x", 8, "1")),
        (f"return graph({', '.join(map(str, range(40)))})[0]", (0, 41), ("x", *range(40), "1")),
    ],
)
def test_places(entry, source, loaded, result):
    call, made = entry(lambda *inputs: (inputs,), source, loaded)
    assert made.handles[0].loaded == loaded
    for _ in range(5):
        assert call(both()) == result
    assert call(Thing(x=5, d={"k": "1"})) == "eager"  # the guards do not hold
    assert call(Thing(x="x", d={})) == "eager"


def test_what_is_there_now_is_taken(entry):
    call, _ = entry(lambda x, k: (x + k,))
    thing = both()
    for number in range(10):
        thing.d["k"] = str(number)
        assert call(thing) == f"x{number}"
        thing.d = dict(thing.d)
    thing.x = "y"
    assert call(thing) == "y9"


def test_methods_keep_their_instance(entry):
    class Graph:
        def forward(self, x, k):
            return [self, x, k]

    graph = Graph()
    call, _ = entry(graph.forward, "return graph()", outputs=3)
    assert call(both()) == [graph, "x", "1"]


def test_a_graph_that_raises(entry):
    def graph(x, k):
        raise ValueError(x + k)

    call, made = entry(
        graph, "try:\n    return graph()[0]\nexcept ValueError as e:\n    return RERUN", rerunnable=True
    )
    for _ in range(3):
        assert call(both()) == "eager"
    call, _ = entry(graph)
    with pytest.raises(ValueError, match="^x1$") as raised:
        call(both())
    names = [frame.name for frame in raised.traceback]
    assert names[-2:] == ["f", "graph"]


def test_a_run_that_never_gets_to_its_graph(entry):
    """What was loaded for it is let go, and the next run is not given it."""

    class Value:
        pass

    call, _ = entry(
        lambda x, k: (k,),
        "if a.skip == 1:\n    return 'skipped'\nif a.skip:\n    raise KeyError\nreturn graph()[0]",
    )
    value = Value()
    ref, thing = weakref.ref(value), both(k=value)
    del value
    thing.skip = 1
    assert call(thing) == "skipped"
    thing.skip = 2
    with pytest.raises(KeyError):
        call(thing)
    thing.d["k"] = "other"
    gc.collect()
    assert ref() is None
    thing.skip = 0
    assert call(thing) == "other"


def test_inputs_live_while_the_graph_runs_and_no_longer(entry):
    class Value:
        pass

    alive = []

    def graph(x, k):
        holder.d.clear()
        gc.collect(0)
        alive.append(ref() is not None)
        del k
        return (x,)

    call, _ = entry(graph, "x = graph()[0]\nreturn x, a.gone()")
    value = Value()
    ref, holder = weakref.ref(value), both(k=value)
    del value
    holder.gone = lambda: ref() is None
    assert call(holder) == ("x", True) and alive == [True]
    text = "".join(["a", "text"])
    call, _ = entry(lambda x, k: (x,))
    holder = both(text)
    before = sys.getrefcount(text)
    for _ in range(100):
        call(holder)
    assert sys.getrefcount(text) - before < 5


def test_recursion_in_graphs_and_between(entry):
    """Each run has its own inputs: a call in the graph, and calls before and after it."""

    def graph(x, k):
        return (x + (call(both(x + "g", int(k) - 1)) if int(k) > 0 else "."),)

    call, _ = entry(
        graph,
        "before = a.f(a) if 'f' in a.__dict__ else ''\n"
        "own = graph()[0]\n"
        "after = a.f(a) if 'f' in a.__dict__ else ''\n"
        "return before + own + after",
    )
    assert call(both("x", 3)) == "xxgxggxggg."
    thing = both("x", 1)
    thing.f = lambda a: "<" + call(both("in", 0)) + ">"
    assert call(thing) == "<in.>xxg.<in.>"


def test_a_finalizer_that_calls_the_function_before_the_graph(entry):
    call, _ = entry(lambda x, k: (x + k,), "a.release()\nreturn graph()[0]")
    seen = []

    class Last:
        def __del__(self):
            inner = both("inner", "!")
            inner.release = lambda: None
            seen.append(call(inner))

    for _ in range(3):
        thing = both()
        thing.last = Last()
        thing.release = lambda thing=thing: thing.__dict__.pop("last") and None
        assert call(thing) == "x1"
    assert seen == ["inner!"] * 3


def test_the_code_of_an_entry_by_hand(entry):
    call, made = entry(lambda x, k: (x + k,))
    again = types.FunctionType(made.code, {"graph": made.handles[0]})
    with pytest.raises(RuntimeError, match="only a call of the optimized function can run it"):
        again(both())
    assert call(both()) == "x1"


def test_by_hand_inside_of_a_run(entry):
    """Code that somebody runs by hand in the place of the graph finds nothing that was loaded for others."""
    call, made = entry(lambda x, k: (x + k,), "own = graph()[0]\nreturn own, a.again(a)")
    again = types.FunctionType(made.code, {"graph": made.handles[0]})

    def attempt(a):
        with pytest.raises(RuntimeError, match="only a call"):
            again(a)
        return "refused"

    thing = both()
    thing.again = attempt
    assert call(thing) == ("x1", "refused")


def test_threads(entry):
    import time

    def graph(x, k):
        time.sleep(0.001)
        return (x + k,)

    call, _ = entry(graph, "a.wait()\nreturn graph()[0]")
    wrong = []

    def work(name):
        for number in range(20):
            thing = both(name, str(number))
            thing.wait = lambda: time.sleep(0.0005)
            if call(thing) != f"{name}{number}":
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(f"thread{i}-",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_entry_that_is_dropped_while_it_runs(entry, kit):
    call, made = entry(lambda x, k: (x + k,), "a.drop()\nreturn graph()[0]")
    thing = both()
    thing.drop = C.reset_all
    assert call(thing) == "x1"
    assert call(thing) == "eager"


def compiling(kit, source, graph=lambda x, k: (x + k,), original="return 'plain'", **flags):
    handle = C.EntryHandle(graph, 1, (0, 1))
    f = kit.define(f"def f(a): {original}", graph=handle)
    guarded = kit.Guarded(kit.define(f"def f(a): {source}").__code__, loading(), handles=(handle,), **flags)
    C.set_convert_frame(lambda *args: guarded)
    return f


def test_the_first_run_of_a_new_entry(kit):
    """Its guards are run once more, for what they load."""
    f = compiling(kit, "return graph()[0]")
    assert kit.optimized(f)(both()) == "x1"
    assert kit.optimized(f)(both("y")) == "y1" == kit.hooked(f, both("y"))


def test_a_new_entry_that_does_not_hold(kit):
    f = compiling(kit, "return graph()[0]")
    assert kit.optimized(f)(Thing(x=5, d={"k": "1"})) == "plain"


def test_resume_functions(kit):
    """A part after a graph break, called by the one before."""
    handle = C.EntryHandle(lambda x, k: (x + k,), 1, (0, 1))
    f = kit.define("def f(a): return 'plain'", graph=handle)
    rest = kit.define("def rest(a): return 'plain rest'")
    resume = C.ResumeFunction(rest.__code__)
    first = C.EntryHandle(lambda x, k: (x + "-" + k,), 1, (0, 1))
    f.__globals__.update(first=first, resume=resume)
    kit.add(
        f,
        kit.define("def f(a):\n    a.seen = first()[0]\n    return resume(a)"),
        loading(),
        handles=(first,),
        has_break=True,
    )
    kit.add(rest.__code__, kit.define("def rest(a): return a.seen, graph()[0]"), loading(), handles=(handle,))
    for x in "xyz":
        assert kit.optimized(f)(both(x)) == (f"{x}-1", f"{x}1") == kit.hooked(f, both(x))


def test_malformed(kit):
    graph = lambda *inputs: inputs  # noqa: E731
    for loaded, error in (
        ((1, 0), ValueError),
        ((0, 0), ValueError),
        ((-1,), ValueError),
        (("a",), TypeError),
        ([0], TypeError),
    ):
        with pytest.raises(error):
            C.EntryHandle(graph, 1, loaded)
    with pytest.raises(ValueError, match="only a graph"):
        C.EntryHandle(graph, -1, (0,))
    f, new = kit.define("def f(a): return 1"), kit.define("def f(a): return 2")
    for check, handles in (
        (kit.always, (C.EntryHandle(graph, 1, (0, 1)),)),
        (loading(), (C.EntryHandle(graph, 1, (0,)),)),
        (loading(), (C.EntryHandle(graph, 1, (0, 1)), C.EntryHandle(graph, 1, (0, 1)))),
    ):
        with pytest.raises(ValueError, match="loads the . inputs of its one handle"):
            kit.add(f, new, check, handles=handles)


def test_given_without_an_entry():
    handle = C.EntryHandle(lambda *inputs: (inputs,), 1, (0, 2))
    with pytest.raises(RuntimeError, match="takes what the guards"):
        handle(5)
    handle.given = ("a", "b")
    assert handle(5) == (("a", 5, "b"),) and handle.given == ("a", "b")
    with pytest.raises(RuntimeError, match="called with 0 arguments, too few"):
        handle()
    handle.given = None
    with pytest.raises(RuntimeError, match="takes what the guards"):
        handle(5)
    with pytest.raises(TypeError, match="a tuple or None"):
        handle.given = [1]


def test_a_handle_with_given_values_in_a_cycle_is_collected():
    class Value:
        pass

    value = Value()
    ref = weakref.ref(value)
    value.handle = C.EntryHandle(lambda *inputs: inputs, 1, (0,))
    value.handle.given = (value,)
    del value
    gc.collect()
    assert ref() is None
