"""Tail: an entry's code that ends with a resume function leaves the call to its runner."""

from __future__ import annotations

import sys
import weakref

import pytest


def chain(kit, parts, **names):
    """A function whose entry's code runs `parts` one after the other: each is an expression in `a` and `k`, the rest follows. Gives
    the optimized function."""
    f = kit.define("def f(a, k): return 'old'", **names)
    following = None
    for number, part in reversed(list(enumerate(parts))):
        source = (
            f"def f(a, k): return ({part})"
            if following is None
            else f"def f(a, k): return (r := '<r>')(({part}), k)"
        )
        made = kit.define(source, **names)
        code = made if following is None else kit.with_constants(made, r=kit.C.ResumeFunction(following))
        if number == 0:
            kit.add(f, code, has_break=True)
            break
        rest = kit.define(f"def f(a, k): return 'plain {number}'", **names)
        kit.add(rest, code, has_break=following is not None)
        following = rest.__code__
    return kit.optimized(f)


def depth():
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


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
