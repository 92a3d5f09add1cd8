"""Marks: what a frame does when no entry fits."""

from __future__ import annotations

import pytest


@pytest.fixture
def program(kit):
    """root() calls middle() calls leaf(); `converted` lists the names that reached the compiler."""

    class Program:
        def __init__(self):
            self.converted = []
            names = {}
            self.leaf = names["leaf"] = kit.define("def leaf(): return 'leaf'")
            self.middle = kit.define("def middle(): return leaf()", **names)
            self.root = kit.define("def root(): return middle()", middle=self.middle)
            self.codes = {f.__code__: f.__name__ for f in (self.leaf, self.middle, self.root)}
            self.answers = {}
            self.optimized = kit.optimized(self.root)
            kit.C.set_convert_frame(self.convert)

        def convert(self, ctx, code, *_):
            name = self.codes.get(code, code.co_name)
            self.converted.append(name)
            answer = self.answers.get(name)
            return answer() if callable(answer) else answer

    return Program()


def compiled_leaf(kit):
    return lambda: kit.Guarded(kit.define("def leaf(): return 'compiled leaf'").__code__)


def test_skip_lets_what_it_calls_be_compiled(kit, program):
    program.answers = {"root": kit.C.SKIP, "middle": kit.C.SKIP, "leaf": compiled_leaf(kit)}
    assert [program.optimized() for _ in range(3)] == ["compiled leaf"] * 3
    assert program.converted == ["root", "middle", "leaf"]
    assert kit.C.get_mark(program.root.__code__) == kit.C.SKIP
    # around each call, and once more after each call of the compiler
    assert kit.counted("installs", "removals", "hits_in_place") == (6, 6, 3)


def test_skip_subtree_runs_without_the_evaluator(kit, program):
    installed = []
    program.middle.__globals__["leaf"] = lambda: installed.append(kit.C.hook_installed()) or "leaf"
    program.answers = {"root": kit.C.SKIP, "middle": kit.C.SKIP_SUBTREE}
    assert [program.optimized() for _ in range(3)] == ["leaf"] * 3
    assert program.converted == ["root", "middle"]
    assert installed == [False] * 3
    kit.C.mark_code(program.root.__code__, kit.C.SKIP_SUBTREE)
    before = kit.counted("installs", "frames")
    assert program.optimized() == "leaf"
    assert kit.counted("installs", "frames") == before


def test_no_compile_still_tries_entries_but_never_compiles_below(kit, program):
    program.answers = {"root": kit.C.NO_COMPILE}
    assert program.optimized() == program.optimized() == "leaf"
    assert program.converted == ["root"]
    kit.add(program.root, kit.define("def root(): return 'entry'"))
    assert program.optimized() == "entry"
    kit.C.mark_code(program.root.__code__, 0)
    kit.C.mark_code(program.middle.__code__, kit.C.NO_COMPILE)
    kit.C.reset_code(program.root.__code__)
    program.answers = {"root": kit.C.SKIP}
    assert program.optimized() == "leaf"
    assert program.converted == ["root", "root"]
    assert kit.counted("runs_no_compile") == (3,)


def test_marks_set_and_read(kit, program):
    code = program.leaf.__code__
    for mark in (kit.C.SKIP, kit.C.SKIP_SUBTREE, kit.C.NO_COMPILE, 0):
        kit.C.mark_code(code, mark)
        assert kit.C.get_mark(code) == mark
    new = kit.define("def leaf(): return 1")
    kit.add(program.leaf, new)
    assert kit.C.get_mark(new.__code__) == kit.C.TRANSFORMED
    with pytest.raises(ValueError, match="code of a cache entry"):
        kit.C.mark_code(new.__code__, kit.C.SKIP)
    kit.C.reset_code(new.__code__)
    assert kit.C.get_mark(new.__code__) == kit.C.TRANSFORMED


def test_transformed_code_runs_as_it_is(kit, program):
    new = kit.define("def leaf(): return 'new'")
    kit.add(program.leaf, new)
    assert kit.hooked(new) == "new" == kit.optimized(new)()
    assert program.converted == []


def test_fruitless_skip_becomes_skip_subtree(kit, program):
    program.answers = {"root": kit.C.SKIP, "middle": kit.C.SKIP, "leaf": kit.C.SKIP}
    limit = kit.C.FRUITLESS_LIMIT
    for _ in range(limit):
        assert kit.C.get_mark(program.root.__code__) in (0, kit.C.SKIP)
        program.optimized()
    assert kit.C.get_mark(program.root.__code__) == kit.C.SKIP_SUBTREE
    assert kit.counted("demotions") == (3,)
    before = kit.counted("frames")
    assert program.optimized() == "leaf" and kit.counted("frames") == before
    kit.C.reset_code(program.root.__code__)
    assert kit.C.get_mark(program.root.__code__) == 0


def test_skip_that_leads_to_captures_stays_skip(kit, program):
    program.answers = {"root": kit.C.SKIP, "middle": kit.C.SKIP, "leaf": compiled_leaf(kit)}
    for _ in range(5 * kit.C.FRUITLESS_LIMIT):
        assert program.optimized() == "compiled leaf"
    assert kit.C.get_mark(program.root.__code__) == kit.C.get_mark(program.middle.__code__) == kit.C.SKIP
    assert kit.counted("demotions") == (0,)


def test_a_capture_now_and_then_is_enough(kit, program):
    program.answers = {"root": kit.C.SKIP, "middle": kit.C.SKIP, "leaf": compiled_leaf(kit)}
    plain = program.middle.__globals__["leaf"]
    for i in range(4 * kit.C.FRUITLESS_LIMIT):
        program.middle.__globals__["leaf"] = plain if i % 10 == 0 else int
        program.optimized()
    assert kit.C.get_mark(program.root.__code__) == kit.C.SKIP


def test_a_new_entry_below_undoes_the_demotion(kit, program):
    inner = kit.define("def inner(): return 'inner'")
    wrapped = kit.optimized(inner)
    program.codes[inner.__code__] = "inner"
    program.middle.__globals__["leaf"] = lambda: wrapped()
    kit.C.mark_code(program.middle.__globals__["leaf"].__code__, kit.C.SKIP)
    program.answers = {"root": kit.C.SKIP, "middle": kit.C.SKIP, "inner": kit.C.SKIP}
    for _ in range(kit.C.FRUITLESS_LIMIT):
        program.optimized()
    root, middle = program.root.__code__, program.middle.__code__
    assert kit.C.get_mark(middle) == kit.C.SKIP_SUBTREE
    kit.C.reset_code(inner.__code__)
    new = kit.define("def inner(): return 'compiled inner'")
    program.answers["inner"] = lambda: kit.Guarded(new.__code__)
    assert kit.hooked(program.middle) == "compiled inner"
    assert kit.C.get_mark(middle) == kit.C.SKIP
    assert kit.C.get_mark(root) == kit.C.SKIP_SUBTREE  # it was not called
    kit.C.mark_code(root, kit.C.SKIP_SUBTREE)  # by order: stays
    kit.C.reset_code(inner.__code__)
    new = kit.define("def inner(): return 'again'")
    assert kit.hooked(program.root) == "again"
    assert kit.C.get_mark(root) == kit.C.SKIP_SUBTREE


def test_marks_do_not_hide_entries(kit, program):
    kit.add(program.root, kit.define("def root(): return 'entry'"), lambda *_: flag)
    for mark in (kit.C.SKIP, kit.C.SKIP_SUBTREE, kit.C.NO_COMPILE):
        kit.C.mark_code(program.root.__code__, mark)
        flag = True
        assert program.optimized() == "entry" == kit.hooked(program.root)
        flag = False
        kit.C.mark_code(program.middle.__code__, kit.C.SKIP_SUBTREE)
        assert program.optimized() == "leaf" == kit.hooked(program.root)


def test_without_context_capture_is_off(kit, program):
    off = kit.C.OptimizedFunction(lambda: (kit.C.active(), kit.C.hook_installed(), program.root()), None)
    assert off() == (None, False, "leaf")
    before = kit.C.swap_active(kit.ctx)
    assert off() == (None, False, "leaf") and kit.C.active() is kit.ctx and kit.C.hook_installed()
    kit.C.swap_active(before)
    assert program.converted == [] and kit.counted("calls_off") == (2,)
