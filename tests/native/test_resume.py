"""ResumeFunction: the rest of a function after a graph break."""

from __future__ import annotations

import pytest


def make(cell):
    """A function, the code for its entry with "<resume>" in it, and the continuation: all with one free variable."""

    def f(a):
        return cell and "old"

    def new(a):
        return cell and (_rest := "<resume>")(a, 1)

    def rest(a, stack0):
        return (cell, NAME, a, stack0, active())  # noqa: F821

    return f, new, rest


def test_it_uses_globals_and_closure_of_its_caller(kit):
    f, new, rest = make("cell 0")
    resume = kit.C.ResumeFunction(rest.__code__, "rest in f")
    kit.add(f, kit.with_constants(new, resume=resume), has_break=True)
    functions = []
    for i in range(3):
        g = make(f"cell {i}")[0]
        functions.append(type(f)(f.__code__, {"NAME": i, "active": kit.C.active}, "g", None, g.__closure__))
    expected = [(f"cell {i}", i, 5, 1, kit.ctx) for i in range(3)]
    assert [kit.optimized(g)(5) for g in functions] == expected
    assert [kit.hooked(g, 5) for g in functions] == expected
    assert repr(resume) == "<ResumeFunction rest in f>"
    assert (resume.code, resume.__code__, resume.__name__) == (rest.__code__, rest.__code__, "rest in f")


def test_its_own_cache_is_consulted(kit):
    f = kit.define("def f(a): return 'old'")
    rest = kit.define("def f(a): return 'plain rest'")
    resume = kit.C.ResumeFunction(rest.__code__)
    kit.add(f, kit.with_constants(kit.define("def f(a): return (r := '<r>')(a)"), r=resume), has_break=True)
    converted = []

    def convert(ctx, code, args, *_):
        converted.append((code, args))
        return kit.Guarded(kit.define("def f(a): return ('compiled rest', a)").__code__)

    kit.C.set_convert_frame(convert)
    optimized = kit.optimized(f)
    assert optimized(1) == optimized(1) == ("compiled rest", 1)
    assert converted == [(rest.__code__, (1,))]
    (entry,) = kit.C.cache_entries(rest.__code__)
    assert entry.hits == 1


def test_without_context_it_runs_plain(kit):
    rest = kit.define("def f(a): return ('rest', a)")
    kit.C.set_convert_frame(lambda *_: pytest.fail("compiled"))
    resume = kit.C.ResumeFunction(rest.__code__, "rest")
    assert resume(a=3) == ("rest", 3)


def test_it_names_what_does_not_fit(kit):
    def outer():
        x = 1

        def inner():
            return x

        return inner

    resume = kit.C.ResumeFunction(outer().__code__, "rest")
    with pytest.raises(RuntimeError, match=r"<ResumeFunction rest> needs a closure of 1 cell\(s\)"):
        resume()
    with pytest.raises(TypeError):
        kit.C.ResumeFunction(outer, "rest")
    with pytest.raises(TypeError):
        kit.C.ResumeFunction(outer.__code__, 1)


def test_called_through_c_code(kit):
    rest = kit.define("def f(a): return __name__, a")
    resume = kit.C.ResumeFunction(rest.__code__, "rest")
    caller = kit.define("def f(r): return list(map(r, [1, 2]))")
    assert caller(resume) == [("user_module", 1), ("user_module", 2)]
