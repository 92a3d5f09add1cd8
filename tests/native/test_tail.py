"""Tail: an entry's code that ends with a resume function leaves the call to its runner."""

from __future__ import annotations

import sys
import weakref

import pytest

from tests.native.chains import chain, depth


@pytest.mark.parametrize("length", [2, 3, 40])
def test_parts_follow_one_another_at_one_depth(kit, length):
    seen = []
    f = chain(kit, ["seen(a)"] * length, seen=lambda a: (seen.append(depth()), a)[1])
    assert f(5, None) == 5
    assert len(seen) == length and len(set(seen)) == 1
    assert kit.C.stats()["hits_tail"] >= length - 1


def test_a_part_that_raises_ends_the_chain(kit):
    ran = []
    f = chain(kit, ["note(1) or a", "note(2) or k[0]", "note(3) or a"], note=ran.append)
    for _ in range(50):
        ran.clear()
        with pytest.raises(TypeError):
            f(5, None)
        assert ran == [1, 2]


def test_arguments_are_let_go_when_the_next_part_begins(kit):
    class Thing:
        pass

    alive = []

    def make(_):
        thing = Thing()
        alive.append(weakref.ref(thing))
        return thing

    f = chain(kit, ["make(a)", "id(a)", "dead()"], make=make, dead=lambda: alive[-1]() is None)
    assert [f(1, None) for _ in range(3)] == [True] * 3


def test_a_wrong_number_of_arguments_is_the_users_type_error(kit):
    f = kit.define("def f(a): return 'old'")
    rest = kit.define("def f(a): return 'rest'")
    kit.add(rest, kit.define("def f(a): return 'new rest'"))
    kit.add(
        f,
        kit.with_constants(
            kit.define("def f(a): return (r := '<r>')(a, a)"), r=kit.C.ResumeFunction(rest.__code__)
        ),
        has_break=True,
    )
    optimized = kit.optimized(f)
    for _ in range(20):
        with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
            optimized(1)


def test_a_guard_that_raises_what_is_no_exception_passes(kit):
    f = kit.define("def f(a): return 'old'")
    rest = kit.define("def f(a): return 'rest'")

    def guard(*_):
        raise KeyboardInterrupt

    kit.add(rest, kit.define("def f(a): return 'new rest'"), guard)
    kit.add(
        f,
        kit.with_constants(
            kit.define("def f(a): return (r := '<r>')(a)"), r=kit.C.ResumeFunction(rest.__code__)
        ),
        has_break=True,
    )
    with pytest.raises(KeyboardInterrupt):
        kit.optimized(f)(1)


def test_frames_that_the_evaluator_runs_do_likewise(kit):
    seen = []
    f = chain(kit, ["seen(a)"] * 5, seen=lambda a: (seen.append(depth()), a)[1])
    assert kit.hooked(f.__wrapped__, 5, None) == 5
    assert len(seen) == 5 and len(set(seen)) == 1


def test_no_count_is_lost(kit):
    f = chain(kit, ["a", "(a, k)", "a"])
    value, other = object(), object()
    f(value, other)
    before = sys.getrefcount(value), sys.getrefcount(other)
    for _ in range(100):
        f(value, other)
    assert (sys.getrefcount(value), sys.getrefcount(other)) == before
