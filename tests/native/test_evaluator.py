"""Frames under the evaluator: which are captured, how an entry runs in place, what stays plain."""

from __future__ import annotations

import gc
import sys
import traceback

import pytest

PY312 = sys.version_info >= (3, 12)


def test_an_entry_runs_in_the_frame_that_asked_for_it(kit):
    """More locals and a deeper stack than the original; the frame object is that of the new code."""
    f = kit.define("def f(a, b): return a + b", get_frame=sys._getframe)
    new = kit.define(
        """
        def f(a, b):
            x, y = a * 100, b * 100
            z = [x, y, (x, y, [a, b, x, y, (a, b, [x, (y, (a, b))])])]
            return get_frame(), x + y
        """
    )
    kit.add(f, new)
    frame, value = kit.hooked(f, 1, 2)
    gc.collect()
    assert value == 300 and f(1, 2) == 3
    assert frame.f_code is new.__code__ and frame.f_locals["z"][2][1] == 200
    assert kit.counted("hits_in_place", "hits_called") == (1, 0)


@pytest.mark.parametrize("called", [False, True])
def test_exceptions_and_tracebacks(kit, called):
    f = kit.define("def f(a): raise ValueError('old')")
    new = kit.define("def f(a):\n    x = a\n    raise KeyError(x)").__code__
    if called:
        new = new.replace(co_stacksize=100_000)
    kit.add(f, new)

    def caller():
        return f(7)

    for _ in range(50):
        with pytest.raises(KeyError) as caught:
            kit.hooked(caller)
        names = [entry.name for entry in traceback.extract_tb(caught.tb)]
        assert names[-2:] == ["caller", "f"]
        last = caught.tb
        while last.tb_next:
            last = last.tb_next
        assert last.tb_frame.f_locals == {"a": 7, "x": 7} and last.tb_lineno == 3
    assert kit.counted("hits_called" if called else "hits_in_place") == (50,)


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("raises", [False, True])
def test_references_are_balanced(kit, called, raises):
    f = kit.define("def f(a, *rest, k, **more): return a")
    end = "raise ValueError" if raises else "return c"
    new = kit.define(f"def f(a, *rest, k, **more):\n    c = (a, rest, k, more)\n    {end}")
    code = new.__code__.replace(co_stacksize=100_000) if called else new.__code__
    kit.add(f, code)
    thing = object()
    held = [thing, f, f.__code__, code, f.__globals__, kit.ctx, kit.key]

    def many():
        for _ in range(1000):
            try:
                f(thing, thing, k=thing, z=thing)
            except ValueError:
                pass

    kit.hooked(many)
    before = [sys.getrefcount(x) for x in held]
    kit.hooked(many)
    assert [sys.getrefcount(x) for x in held] == before
    assert kit.counted("hits_called" if called else "hits_in_place") == (2000,)


def test_an_argument_dies_where_the_new_code_drops_it(kit):
    log = []

    class Noisy:
        def __del__(self):
            log.append("del")

    f = kit.define("def f(a): return a", log=log)
    new = kit.define("def f(a):\n    a = None\n    log.append('after')", log=log)
    kit.add(f, new)
    kit.hooked(lambda: new(Noisy()))  # runs as it is, under the evaluator
    plain = log.copy()
    log.clear()
    kit.hooked(lambda: f(Noisy()))
    assert log == plain and sorted(log) == ["after", "del"]


def test_generators_coroutines_and_class_bodies_run_plain(kit):
    seen = []
    kit.C.set_convert_frame(lambda ctx, code, *_: seen.append(code.co_name))
    main = kit.define(
        """
        def gen(n):
            try:
                for i in range(n):
                    yield i
            except ValueError:
                yield "caught"

        async def coro():
            return 1

        async def agen():
            yield 1

        def main():
            g = gen(3)
            out = [next(g), g.throw(ValueError), *gen(2), *(x for x in [7])]
            try:
                coro().send(None)
            except StopIteration as stop:
                out.append(stop.value)
            try:
                agen().asend(None).send(None)
            except StopIteration as stop:
                out.append(stop.value)
            class K:
                z = 1
            exec("out.append(K.z)")
            return out
        """
    )
    assert kit.hooked(main) == [0, "caught", 0, 1, 7, 1, 1, 1]
    assert seen == ["main"]
    (unfit,) = kit.counted("frames_unfit")
    assert unfit > 8
    wrapped = [kit.optimized(main.__globals__[n]) for n in ("gen", "coro", "agen")]
    made = [wrapped[0](2), wrapped[1](), wrapped[2]()]
    assert list(made[0]) == [0, 1] and seen == ["main"]
    made[1].close()


def test_calls_out_of_c_reach_the_evaluator(kit):
    seen = []
    kit.C.set_convert_frame(lambda ctx, code, *_: seen.append(code.co_name))
    main = kit.define(
        """
        class Thing:
            def __init__(self): self.z = 1
            def __len__(self): return 5
            def __getattr__(self, name): return name
            def __lt__(self, other): return True
            @property
            def prop(self): return 3

        def key(x): return -x

        def main():
            t = Thing()
            return len(t), t.foo, t < t, t.prop, sorted([1, 2], key=key)
        """
    )
    assert kit.hooked(main) == (5, "foo", True, 3, [2, 1])
    assert set(seen) - {"__init__"} == {"main", "__len__", "__getattr__", "__lt__", "prop", "key"}


@pytest.mark.parametrize("how", ["direct", "hooked"])
def test_under_settrace_everything_runs_plain_and_every_line_is_seen(kit, how):
    f = kit.define("def f(a):\n    b = a\n    return b")
    kit.add(f, kit.define("def f(a): return 'new'"))
    seen = []
    kit.C.set_convert_frame(lambda *_: seen.append("compiled"))
    call = kit.optimized(f) if how == "direct" else f

    def tracer(frame, event, arg):
        if frame.f_code is f.__code__:
            seen.append((event, frame.f_lineno))
        return tracer

    def traced():
        sys.settrace(tracer)
        try:
            return call(1)
        finally:
            sys.settrace(outer)

    outer = sys.gettrace()
    kit.C.mark_code(traced.__code__, kit.C.SKIP)
    answer = kit.hooked(traced) if how == "hooked" else traced()
    assert answer == 1
    assert seen == [("call", 1), ("line", 2), ("line", 3), ("return", 3)]
    assert (kit.hooked(f, 1) if how == "hooked" else call(1)) == "new"


def test_under_setprofile_capture_goes_on(kit):
    f = kit.define("def f(a): return a")
    new = kit.define("def f(a): return 'new'")
    kit.add(f, new)
    seen = []

    def profiler(frame, event, arg):
        if event in ("call", "return"):
            seen.append((frame.f_code is new.__code__, event))

    def profiled():
        sys.setprofile(profiler)
        answer = f(1), kit.optimized(f)(1)
        sys.setprofile(None)
        return answer

    kit.C.mark_code(profiled.__code__, kit.C.SKIP)
    assert kit.hooked(profiled) == ("new", "new")
    assert [e for own, e in seen if own] == ["call", "return"] * 2


def test_frames_of_trace_and_profile_functions_are_not_captured(kit):
    seen = []
    kit.C.set_convert_frame(lambda ctx, code, *_: seen.append(code.co_name))

    def profiler(frame, event, arg):
        return helper()

    def helper():
        return None

    def profiled():
        sys.setprofile(profiler)
        len([])
        sys.setprofile(None)

    kit.hooked(profiled)
    assert seen == ["profiled"]


@pytest.mark.skipif(not PY312, reason="sys.monitoring is new in 3.12")
@pytest.mark.parametrize("event", ["LINE", "INSTRUCTION", "PY_START"])
def test_global_monitoring(kit, event):
    f = kit.define("def f(a):\n    return a")
    kit.add(f, kit.define("def f(a):\n    return 'new'"))
    optimized = kit.optimized(f)
    plain = event != "PY_START"
    monitoring = sys.monitoring
    monitoring.use_tool_id(4, "test")
    try:
        monitoring.set_events(4, getattr(monitoring.events, event))
        answers = optimized(1), kit.hooked(f, 1)
    finally:
        monitoring.set_events(4, 0)
        monitoring.free_tool_id(4)
    assert answers == ((1, 1) if plain else ("new", "new"))
    assert (optimized(1), kit.hooked(f, 1)) == ("new", "new")


@pytest.mark.skipif(not PY312, reason="sys.monitoring is new in 3.12")
def test_local_monitoring_of_the_original_code(kit):
    f = kit.define("def f(a):\n    return a")
    kit.add(f, kit.define("def f(a):\n    return 'new'"))
    kit.C.set_convert_frame(lambda *_: pytest.fail("compiled"))
    optimized = kit.optimized(f)
    seen = []
    monitoring = sys.monitoring
    monitoring.use_tool_id(4, "test")
    try:
        monitoring.register_callback(4, monitoring.events.PY_START, lambda code, _: seen.append(code))
        monitoring.set_local_events(4, f.__code__, monitoring.events.PY_START)
        assert (optimized(1), kit.hooked(f, 1)) == (1, 1)
        monitoring.set_local_events(4, f.__code__, 0)
    finally:
        monitoring.free_tool_id(4)
    assert seen == [f.__code__] * 2
    assert (optimized(1), kit.hooked(f, 1)) == ("new", "new")


@pytest.mark.skipif(not PY312, reason="sys.monitoring is new in 3.12")
def test_a_tool_that_asks_for_lines_function_by_function(kit):
    """As coverage does: what it is told of is the code of the function that begins, and that must be the program's own."""
    f = kit.define("def f(a):\n    b = a\n    return b")
    kit.add(f, kit.define("def f(a):\n    return 'new'"))
    optimized = kit.optimized(f)
    monitoring, events = sys.monitoring, sys.monitoring.events
    lines = []

    def begins(code, _):
        if code is f.__code__:
            monitoring.set_local_events(4, code, events.LINE)

    monitoring.use_tool_id(4, "test")
    try:
        monitoring.register_callback(4, events.PY_START, begins)
        monitoring.register_callback(4, events.LINE, lambda code, line: lines.append(line))
        monitoring.set_events(4, events.PY_START)
        assert (optimized(1), kit.hooked(f, 1)) == (1, 1)
        monitoring.set_events(4, 0)
        monitoring.set_local_events(4, f.__code__, 0)
        monitoring.register_callback(4, events.LINE, None)
    finally:
        monitoring.set_events(4, 0)
        monitoring.free_tool_id(4)
    assert set(lines) >= {2, 3}
    assert (optimized(1), kit.hooked(f, 1)) == ("new", "new")


def test_nested_contexts(kit):
    """A frame uses the key of the innermost active object."""
    f = kit.define("def f(): return 'old'")
    other = kit.C.OptimizeContext(kit.C.CompileKey("other"))
    kit.add(f, kit.define("def f(): return 'mine'"))
    kit.add(f, kit.define("def f(): return 'theirs'"), ctx=other)
    active = []
    inner = kit.define("def inner(): return (note(), f())", note=lambda: active.append(kit.C.active()), f=f)
    wrapped_inner = kit.optimized(inner, other)
    outer = kit.define("def outer(): return (f(), g(), f())", f=f, g=wrapped_inner)
    for fn in (outer, inner, inner.__globals__["note"]):
        kit.C.mark_code(fn.__code__, kit.C.SKIP)
    assert kit.optimized(outer)() == ("mine", (None, "theirs"), "mine")
    assert active == [other] and kit.C.active() is None


def test_the_context_is_put_back_after_an_unbalanced_swap(kit):
    def unbalanced():
        kit.C.swap_active(None)
        return kit.C.hook_installed()

    kit.C.mark_code(unbalanced.__code__, kit.C.SKIP)
    assert kit.hooked(lambda: (kit.optimized(unbalanced)(), kit.C.active())) == (False, kit.ctx)


def test_stats_are_counts(kit):
    stats = kit.C.stats()
    assert all(type(v) is int and v >= 0 for v in stats.values())
    assert {"frames", "hits_direct", "hits_in_place", "misses", "converts", "reruns"} <= stats.keys()
