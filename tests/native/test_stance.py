"""force_eager, and exceptions as answers of the compiler."""

from __future__ import annotations

import gc
import weakref

import pytest


@pytest.fixture
def eager(kit):
    """`force_eager`, off again at the end."""
    yield kit.C.force_eager
    kit.C.force_eager(False)


def entry_of(kit, fn):
    """An optimized function whose entry returns "entry"."""
    optimized = kit.optimized(fn)
    kit.C.add_entry(fn.__code__, kit.ctx, kit.Guarded(kit.define("def f(*a): return 'entry'").__code__))
    return optimized


def test_entries_rest_while_it_is_on(kit, eager):
    fn = kit.define("def f(*a): return 'plain'")
    f = entry_of(kit, fn)
    assert f() == "entry"
    assert eager(True) is False and f() == "plain" and eager(1) is True
    later = kit.optimized(fn)
    assert later() == "plain"
    assert eager(False) is True and f() == later() == "entry"
    assert kit.counted("calls_plain") == (2,)


def test_frames_below_a_context_run_plain_too(kit, eager):
    inner = kit.define("def inner(*a): return 'plain'")
    kept = entry_of(kit, inner)
    outer = kit.define("def outer(): return inner()", inner=inner)
    kit.C.mark_code(outer.__code__, kit.C.SKIP)
    f = kit.optimized(outer)
    assert f() == "entry"
    kit.C.swap_active(kit.ctx)
    try:
        eager(True)
        assert outer() == "plain"
        eager(False)
        assert outer() == "entry" and kept() == "entry"
    finally:
        kit.C.swap_active(None)


def test_objects_come_and_go_in_any_order(kit, eager):
    fn = kit.define("def f(): return 1")
    objects = [kit.optimized(fn) for _ in range(6)]
    refs = [weakref.ref(each) for each in objects]
    for index in (3, 0, 3):
        del objects[index]
        eager(True), eager(False)
    gc.collect()
    assert sum(ref() is not None for ref in refs) == 3 and all(each() == 1 for each in objects)


def test_only_truth_is_taken(kit, eager):
    class Untrue:
        def __bool__(self):
            raise KeyError

    with pytest.raises(KeyError):
        eager(Untrue())
    assert eager(False) is False


def test_an_exception_as_answer_is_raised_without_the_compilers_frames(kit):
    def convert(*_):
        try:
            raise KeyError("cause")
        except KeyError as error:
            return error.with_traceback(None)

    kit.C.set_convert_frame(convert)
    f = kit.optimized(kit.define("def f(): return 1"))
    with pytest.raises(KeyError, match="cause") as caught:
        f()
    names = [entry.name for entry in caught.traceback]
    assert "convert" not in names and "f" not in names
    assert kit.C.get_mark(f.__code__) == 0
