"""The frame of a resume function's entry is made where the one before lay: no function object, no call."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
import weakref

import pytest

from tests.native.chains import chain, depth


class Thing:
    pass


@pytest.mark.parametrize("how", ["optimized", "hooked"])
def test_no_function_is_made_for_the_parts(kit, how):
    f = chain(kit, ["a + 1"] * 5)
    call = f if how == "optimized" else lambda *args: kit.hooked(f.__wrapped__, *args)
    assert call(0, None) == 5
    made, placed = kit.counted("functions_made", "tails_in_place")
    assert call(0, None) == 5
    assert kit.counted("functions_made", "tails_in_place") == (made, placed + 4)


def test_parts_with_frames_of_any_size_follow_one_another(kit):
    """Wide frames do not fit where a narrow one lay at the end of a chunk of the stack."""
    wide = "[" + ", ".join(["a"] * 700) + "][0]"
    f = chain(kit, ["a + 1", wide, "a + 1", wide, "a"])

    def below(levels):
        return f(0, None) if levels == 0 else below(levels - 1)

    assert [below(levels) for levels in range(250)] == [2] * 250


def test_a_frame_object_that_is_kept_keeps_its_own_frame(kit):
    frames = []

    def keep(value):
        frames.append(sys._getframe(1))
        return value

    f = chain(kit, ["keep(a + 1)"] * 4, keep=keep)
    assert f(0, None) == 4
    assert len({id(frame) for frame in frames}) == 4
    assert [frame.f_locals["a"] for frame in frames] == [0, 1, 2, 3]
    assert len({frame.f_back for frame in frames}) == 1
    for frame in frames:
        frame.clear()
        assert frame.f_locals == {}


def test_a_frame_object_that_nobody_kept_does_not_matter(kit):
    f = chain(kit, ["(getframe() and 1) + a"] * 5, getframe=sys._getframe)
    f(0, None)
    (placed,) = kit.counted("tails_in_place")
    assert f(0, None) == 5
    assert kit.counted("tails_in_place") == (placed + 4,)


def test_what_a_kept_frame_held_dies_with_it(kit):
    """The frame object goes in the middle of the chain: its values do not wait for the end."""
    frames, alive = [], []

    def first(value):
        frames.append(sys._getframe(1))
        thing = Thing()
        alive.append(weakref.ref(thing))
        return thing

    def second(value):
        frames.clear()
        return 1

    f = chain(kit, ["first(a)", "second(a)", "alive[-1]() is None"], first=first, second=second, alive=alive)
    assert [f(0, None) for _ in range(3)] == [True] * 3


def test_a_traceback_shows_the_part_that_raised_once(kit):
    f = chain(kit, ["a", "a", "a / k", "a"])
    with pytest.raises(ZeroDivisionError) as caught:
        f(1, 0)
    inside = [frame for frame in traceback.extract_tb(caught.tb) if frame.filename == "<user>"]
    assert [frame.name for frame in inside] == ["f"]
    frame = caught.tb.tb_next.tb_frame
    assert (frame.f_locals["a"], frame.f_locals["k"]) == (1, 0) and frame.f_back is sys._getframe()


def test_each_part_runs_with_the_closure_of_the_call(kit):
    def make(cell):
        source = f"""
            def outer():
                shared = {cell!r}
                def f(a): return (shared, '<r>')[1](a)
                return f
        """
        return kit.define(source)()

    first, second = make("first"), make("second")
    rest = kit.define("def outer():\n shared = 0\n def f(a): return shared\n return f")()
    more = kit.define("def outer():\n shared = 0\n def f(a): return (shared, a)\n return f")()
    kit.add(rest, more)
    kit.add(first.__code__, kit.with_constants(first, r=kit.C.ResumeFunction(rest.__code__)), has_break=True)
    kit.add(
        second.__code__, kit.with_constants(second, r=kit.C.ResumeFunction(rest.__code__)), has_break=True
    )
    one, two = kit.optimized(first), kit.optimized(second)
    assert [one(1), two(2), one(3)] == [("first", 1), ("second", 2), ("first", 3)]


def test_entries_that_go_while_their_code_runs(kit):
    f = chain(kit, ["a + 1", "reset() or a + 1", "a + 1"], reset=kit.C.reset_all)
    assert f(0, None) in ("plain 2", 3)
    gc.collect()
    assert f(0, None) == "old"


def test_a_loop_of_breaks_takes_no_stack(kit):
    """The continuation of a part is the part itself, a hundred thousand times."""
    f = kit.define("def f(a, k): return 'old'")
    part = kit.define("def f(a, k): return (r := '<r>')(a + 1, k) if a < k else depth()", depth=depth)
    rest = kit.define("def f(a, k): return 'plain'")
    again = kit.with_constants(part, r=kit.C.ResumeFunction(rest.__code__))
    f = kit.define("def f(a, k): return 'old'", depth=depth)
    kit.add(rest, again, has_break=True)
    kit.add(f, again, has_break=True)
    optimized = kit.optimized(f)
    assert optimized(0, 100_000) == optimized(0, 1) == depth() + 1


def test_parts_call_functions_that_have_parts(kit):
    inner = chain(kit, ["a + 1"] * 3)
    outer = chain(kit, ["inner(a, k)"] * 3, inner=inner)
    assert outer(0, None) == 9
    deep = chain(kit, ["a", "a if a == 0 else deep[0](a - 1, deep)", "a"], deep=(None,))
    assert deep(0, (deep,)) == 0

    def recurse(levels):
        return levels if levels == 0 else f(levels - 1, None) + 1

    f = chain(kit, ["a", "recurse(a)", "a"], recurse=recurse)
    assert f(60, None) == 60


def test_tracing_that_begins_in_a_part(kit):
    lines = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename == "<user>":
            lines.append((event, frame.f_code.co_name))
        return trace

    def begin(k):
        if k:
            sys.settrace(trace)

    f = chain(kit, ["a + 1", "begin(k) or a + 1", "a + 1"], begin=begin)
    before = sys.gettrace()
    try:
        assert f(0, True) == "plain 2"
    finally:
        sys.settrace(before)
    assert ("call", "f") in lines
    assert f(0, False) == 3


def test_a_profiler_sees_each_part_begin_and_end(kit):
    seen = []

    def profile(frame, event, arg):
        if frame.f_code.co_filename == "<user>":
            seen.append(event)

    f = chain(kit, ["a + 1"] * 3)
    f(0, None)
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        assert f(0, None) == 3
    finally:
        sys.setprofile(before)
    assert seen == ["call", "return"] * 3


def test_threads_have_chains_of_their_own(kit):
    f = chain(kit, ["pause(a + 1)"] * 6, pause=lambda value: (threading.Event().wait(0.001), value)[1])
    results = []
    threads = [threading.Thread(target=lambda n=n: results.append((n, f(n, None)))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(n, n + 6) for n in range(8)]


def test_many_arguments(kit):
    names = ", ".join(f"a{n}" for n in range(40))
    f = kit.define(f"def f({names}): return 'old'")
    rest = kit.define(f"def f({names}): return 'plain'")
    kit.add(rest, kit.define(f"def f({names}): return ({names})"))
    first = kit.define(f"def f({names}): return (r := '<r>')({names})")
    kit.add(f, kit.with_constants(first, r=kit.C.ResumeFunction(rest.__code__)), has_break=True)
    values = tuple(object() for _ in range(40))
    assert kit.optimized(f)(*values) == values
    counts = [sys.getrefcount(value) for value in values]
    for _ in range(20):
        kit.optimized(f)(*values)
    assert [sys.getrefcount(value) for value in values] == counts


def test_cells_of_a_part_are_its_own(kit):
    """An argument that an inner function of the part refers to is made a cell in the new frame."""
    f = kit.define("def f(a, k): return 'old'")
    rest = kit.define("def f(a, k):\n def inner(): return a\n return inner")
    new = kit.define("def f(a, k):\n def inner(): return (a, k)\n return inner")
    kit.add(rest, new.__code__)
    first = kit.define("def f(a, k): return (r := '<r>')(a, k)")
    kit.add(f, kit.with_constants(first, r=kit.C.ResumeFunction(rest.__code__)), has_break=True)
    optimized = kit.optimized(f)
    made = [optimized(n, -n) for n in range(3)]
    assert [inner() for inner in made] == [(0, 0), (1, -1), (2, -2)]
