"""Direct entries whose guard program loads what the graph takes."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from tests.native.conftest import C
from tests.native.programs import LITERAL, instructions


class Thing:
    def __init__(self, **values):
        self.__dict__.update(values)


def loading(check=True, inputs=(1, 2)):
    """Loads a.x and a.d["k"]; holds if a.x is a str."""
    code = instructions(
        ("LOAD_LOCAL", 0),
        ("LOAD_ATTR", 0, "x"),
        ("LOAD_ATTR", 0, "d"),
        ("LOAD_ITEM", 2, (LITERAL, "k")),
        ("CHECK_TYPE_ID", 1, id(str)),
    )
    return C.GuardProgram(code, 1, inputs=(1, 3) if inputs == (1, 2) else inputs)


@pytest.fixture(params=["optimized", "hooked"])
def entry(kit, request):
    """f(a) -> (f, call, entry): a direct entry over a.x and a.d["k"]; `graph` can be replaced."""

    def make(graph, recipe=("output", 0), outputs=1, rerunnable=True, **names):
        f = kit.define("def f(a): return eager(a)", **{"eager": lambda a: "eager", **names})
        handle = C.EntryHandle(graph, outputs)
        new = kit.define("def f(a): return 'code'")
        made = kit.add(
            f, new, loading(), handles=(handle,), rerunnable=rerunnable, direct=(handle, None, recipe)
        )
        run = kit.optimized(f)
        return (run if request.param == "optimized" else lambda *a: kit.hooked(f, *a)), made

    return make


def test_the_graph_gets_what_the_guards_loaded(entry):
    call, made = entry(lambda x, k: (x + k,))
    assert call(Thing(x="x", d={"k": "1"})) == "x1"
    assert made.direct[1] is None
    assert call(Thing(x=5, d={"k": "1"})) == "eager"  # the guards do not hold
    assert call(Thing(x="x", d={})) == "eager"


def test_methods_and_containers(entry):
    class Graph:
        def forward(self, x, k):
            return [x, k]

    recipe = ("tuple", (("output", 1), ("argument", 0), ("output", 0)))
    call, _ = entry(Graph().forward, recipe, outputs=2)
    arg = Thing(x="x", d={"k": "1"})
    assert call(arg) == ("1", arg, "x")


def test_a_graph_that_raises_runs_plain(entry):
    def graph(x, k):
        raise RuntimeError("no")

    call, _ = entry(graph)
    assert call(Thing(x="x", d={"k": 1})) == "eager"


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

    call, _ = entry(graph)
    value = Value()
    ref, holder = weakref.ref(value), Thing(x="x", d={"k": value})
    del value
    assert call(holder) == "x" and alive == [True] and ref() is None
    text = "".join(["a", "text"])
    holder = Thing(x=text, d={"k": 1})
    before = sys.getrefcount(text)
    for _ in range(100):
        holder.d["k"] = 1
        call(holder)
    assert sys.getrefcount(text) - before < 5


def test_a_profiler_sees_the_code(kit, entry):
    call, _ = entry(lambda x, k: (x,))
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    try:
        result = call(Thing(x="x", d={"k": 1}))
    finally:
        sys.setprofile(None)
    assert result == "code" and "f" in seen


def test_the_first_run_of_a_new_entry_is_its_code(kit):
    """Its guards have not run yet, so nothing has been loaded."""
    f = kit.define("def f(a): return 'plain'")
    handle = C.EntryHandle(lambda x, k: (x + k,), 1)
    new = kit.define("def f(a): return 'code'")
    guarded = kit.Guarded(
        new.__code__,
        loading(),
        handles=(handle,),
        rerunnable=True,
        direct=(handle, None, ("output", 0)),
    )
    C.set_convert_frame(lambda *args: guarded)
    arg = Thing(x="x", d={"k": "1"})
    run = kit.optimized(f)
    assert run(arg) == "code"
    assert run(arg) == "x1" == kit.hooked(f, arg)


def test_malformed(kit):
    f, new = kit.define("def f(a): return 1"), kit.define("def f(a): return 2")
    handle = C.EntryHandle(lambda x: (x,), 1)
    with pytest.raises(ValueError, match="must be a GuardProgram"):
        kit.add(f, new, handles=(handle,), rerunnable=True, direct=(handle, None, ("output", 0)))
    with pytest.raises(ValueError, match="no register 7"):
        loading(inputs=(7,))
    with pytest.raises(TypeError):
        loading(inputs=("a",))


def test_load():
    arg = Thing(x="x", d={"k": 1})
    assert loading().load(arg, {}, None) == ("x", 1)
    assert loading().load(Thing(x=1, d={"k": 1}), {}, None) is None
    assert loading(inputs=()).load(arg, {}, None) == ()
    with pytest.raises(TypeError, match="GuardProgram.load takes 1 argument"):
        loading().load({}, None)


def test_many_inputs(kit):
    count = 400
    code = instructions(("LOAD_LOCAL", 0), *(("LOAD_ITEM", 0, (LITERAL, i)) for i in range(count)))
    guards = C.GuardProgram(code, 1, inputs=tuple(range(1, count + 1)))
    f = kit.define("def f(a): return 'plain'")
    handle = C.EntryHandle(lambda *items: (sum(items),), 1)
    kit.add(
        f,
        kit.define("def f(a): return 'code'"),
        guards,
        handles=(handle,),
        rerunnable=True,
        direct=(handle, None, ("output", 0)),
    )
    assert kit.optimized(f)(list(range(count))) == sum(range(count))
    assert kit.optimized(f)([1]) == "plain"
