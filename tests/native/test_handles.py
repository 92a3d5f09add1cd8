"""EntryHandle, Validity, RERUN and plain re-runs."""

from __future__ import annotations

import copy
import pickle

import pytest


def test_a_handle_forwards_calls(kit):
    handle = kit.C.EntryHandle(lambda *args, **kwargs: (args, kwargs))
    assert handle(1, 2, k=3) == ((1, 2), {"k": 3})
    assert handle.target(5) == ((5,), {}) and handle.n_outputs == -1 and not handle.bound
    assert {handle: 1}[handle] == 1 and handle != kit.C.EntryHandle(handle.target)
    with pytest.raises(TypeError, match="callable"):
        kit.C.EntryHandle(1)


@pytest.mark.parametrize("result", [(1, 2), [1, 2]])
def test_a_graph_returns_its_outputs(kit, result):
    assert kit.C.EntryHandle(lambda: result, 2)() is result


@pytest.mark.parametrize(
    ("result", "outputs", "message"),
    [
        (5, 1, r"returned int, but the graph has 1 output\(s\).*return \(out,\)"),
        (None, 0, "returned NoneType, but the graph has 0 output"),
        ((1,), 2, r"returned 1 value\(s\), but the graph has 2 output"),
        ([], 1, r"returned 0 value\(s\)"),
    ],
)
def test_a_graph_that_returns_something_else_is_an_error(kit, result, outputs, message):
    with pytest.raises(RuntimeError, match=message):
        kit.C.EntryHandle(lambda: result, outputs)()


def test_graphs_run_with_capture_off(kit):
    def graph():
        return [(kit.C.active(), kit.C.hook_installed())]

    kit.C.mark_code(graph.__code__, kit.C.SKIP)
    other, as_graph = kit.C.EntryHandle(graph), kit.C.EntryHandle(graph, 1)
    before = kit.C.swap_active(kit.ctx)
    seen = other(), as_graph(), kit.C.active()
    kit.C.swap_active(before)
    assert seen == ([(kit.ctx, True)], [(None, False)], kit.ctx)
    assert as_graph() == [(None, False)]


def test_a_handle_belongs_to_one_entry_and_dies_with_it(kit):
    f = kit.define("def f(a): return a")
    handle = kit.C.EntryHandle(len)
    new = kit.define("def f(a): return (h := '<h>')(a)")
    entry = kit.add(f, kit.with_constants(new, h=handle), handles=(handle,))
    assert handle.bound and entry.handles == (handle,)
    assert kit.optimized(f)("abc") == 3 == kit.hooked(f, "abc")
    with pytest.raises(ValueError, match="belongs to a cache entry already"):
        kit.add(f, kit.define("def f(a): return 1"), handles=(handle,))
    assert kit.C.cache_entries(f.__code__) == [entry]
    kit.C.reset_code(f.__code__)
    assert handle.target is len  # the entry is out, but held
    del entry
    assert handle.target is None and repr(handle) == "<EntryHandle of a dropped entry>"
    with pytest.raises(RuntimeError, match="dropped.*call the optimized function again"):
        handle("abc")
    with pytest.raises(ValueError, match="belongs"):
        kit.add(f, kit.define("def f(a): return 1"), handles=(handle,))


def test_a_target_may_drop_its_own_handle(kit):
    holder = []

    def target():
        holder.clear()
        return (1,)

    holder.append(kit.C.EntryHandle(target, 1))
    assert holder[0]() == (1,)


def test_validity(kit):
    validity = kit.C.Validity()
    assert validity.valid is True
    validity.valid = False
    assert repr(validity) == "<Validity valid=False>"
    validity.valid = True
    validity.invalidate(object())
    assert validity.valid is False
    with pytest.raises(TypeError):
        kit.C.Validity(1)
    with pytest.raises(TypeError):
        validity.valid = "yes"


def test_the_sentinel(kit):
    RERUN = kit.C.RERUN
    assert repr(RERUN) == "<minidynamo RERUN>" and hash(RERUN) is not None
    with pytest.raises(TypeError):
        type(RERUN)()


@pytest.fixture
def failing(kit):
    """f(a, *rest, k) whose graph raises, so that its code returns RERUN; `log` has what plain runs saw."""

    class Failing:
        def __init__(self):
            self.log = []
            self.reports = []
            self.error = ZeroDivisionError
            self.f = kit.define(
                """
                def f(a, *rest, k=3, **more):
                    log.append((a, rest, k, more, active(), installed()))
                    if a == "raise":
                        raise LookupError("eager")
                    return ("eager", a)
                """,
                log=self.log,
                active=kit.C.active,
                installed=kit.C.hook_installed,
            )
            self.handle = kit.C.EntryHandle(self.graph, 1)
            new = kit.define(
                """
                def f(a, *rest, k=3, **more):
                    x = a
                    a = rest = k = more = None
                    try:
                        (h := "<h>")(x)
                    except Exception:
                        return "<rerun>"
                """
            )
            code = kit.with_constants(new, h=self.handle, rerun=kit.C.RERUN)
            self.entry = kit.add(self.f, code, handles=(self.handle,), rerunnable=True)
            kit.C.set_rerun_callback(lambda entry, name: self.reports.append((entry, name)))

        def graph(self, a):
            raise self.error("why")

    return Failing()


@pytest.mark.parametrize("how", ["direct", "in place", "called"])
def test_a_failed_graph_is_run_again_in_plain_python(kit, failing, how):
    if how == "called":
        kit.C.reset_code(failing.f.__code__)
        code = failing.entry.code.replace(co_stacksize=100_000)
        consts = tuple(
            kit.C.EntryHandle(failing.graph, 1) if c is failing.handle else c for c in code.co_consts
        )
        handles = tuple(c for c in consts if isinstance(c, kit.C.EntryHandle))
        failing.entry = kit.add(failing.f, code.replace(co_consts=consts), handles=handles, rerunnable=True)
    call = kit.optimized(failing.f) if how == "direct" else lambda *a, **k: kit.hooked(failing.f, *a, **k)
    assert call(1, 2, k=4, z=5) == ("eager", 1)
    assert failing.log == [(1, (2,), 4, {"z": 5}, None, False)]
    assert failing.reports == [(failing.entry, "ZeroDivisionError: why")]
    with pytest.raises(LookupError, match="eager"):
        call("raise")
    assert len(failing.reports) == 1
    failing.error = KeyError
    assert call(2) == ("eager", 2)
    assert failing.reports[1:] == [(failing.entry, "KeyError: 'why'")]
    assert kit.counted("reruns") == (3,)


def test_an_error_that_cannot_be_printed_is_reported_by_its_type(kit, failing):
    class Unprintable(Exception):
        def __str__(self):
            raise ValueError

    failing.error = Unprintable
    kit.C.set_convert_frame(lambda *_: pytest.fail("compiled"))
    assert kit.hooked(failing.f, 1) == ("eager", 1)
    assert failing.reports == [(failing.entry, "Unprintable")]


@pytest.mark.parametrize("hooked", [False, True])
def test_the_error_of_the_rerun_callback_is_the_error_of_the_call(kit, failing, hooked):
    def callback(entry, name):
        raise RuntimeWarning(name)

    kit.C.set_rerun_callback(callback)
    with pytest.raises(RuntimeWarning, match="ZeroDivisionError"):
        kit.hooked(failing.f, 1) if hooked else kit.optimized(failing.f)(1)
    kit.C.set_rerun_callback(None)
    assert kit.optimized(failing.f)(1) == ("eager", 1)


def test_an_interrupt_out_of_a_graph_is_not_run_again(kit, failing):
    failing.error = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        kit.optimized(failing.f)(1)
    assert failing.log == []


@pytest.mark.parametrize("hooked", [False, True])
def test_rerun_out_of_an_entry_that_is_not_rerunnable_is_an_internal_error(kit, hooked):
    f = kit.define("def f(a): return a")
    kit.add(f, kit.with_constants(kit.define("def f(a): return '<r>'"), r=kit.C.RERUN))
    with pytest.raises(RuntimeError, match="internal error.*not rerunnable"):
        kit.hooked(f, 1) if hooked else kit.optimized(f)(1)


def test_a_rerun_uses_the_code_that_the_frame_had(kit, failing):
    """A compiler or another thread may give the function new code meanwhile."""
    f = failing.f

    def graph(a):
        f.__code__ = kit.define("def f(a, *rest, k=3, **more): return 'other'").__code__
        raise ValueError

    failing.graph = graph
    kit.C.reset_code(f.__code__)
    handle = kit.C.EntryHandle(graph, 1)
    new = kit.define("def f(a, *rest, k=3, **more):\n try: (h := '<h>')(a)\n except Exception: return '<r>'")
    kit.add(f, kit.with_constants(new, h=handle, r=kit.C.RERUN), handles=(handle,), rerunnable=True)
    assert kit.hooked(f, 1) == ("eager", 1)
    assert f(1) == "other"


def test_copies(kit):
    assert copy.copy(kit.C.RERUN) is kit.C.RERUN
    with pytest.raises(TypeError):
        pickle.dumps(kit.C.EntryHandle(len))
