"""Which entry runs: order, keys, nopython, validity, check functions that fail or raise."""

from __future__ import annotations

import sys
import types
import weakref

import pytest

from minidynamo import _C as C


def old(a, b=2):
    return "old"


def twin(text):
    """A function that fits in the place of `old` and returns `text`."""
    namespace = {}
    exec(f"def old(a, b=2):\n    return {text!r}\n", namespace)
    return namespace["old"]


def test_hit_needs_no_evaluator(kit):
    entry = kit.add(old, twin("new"))
    assert kit.optimized(old)(1) == "new"
    assert entry.hits == 1
    assert kit.counted("hits_direct", "frames", "installs") == (1, 0, 0)
    assert old(1) == "old"


def test_miss_calls_the_compiler_once_and_runs_its_code_in_place(kit):
    calls = []

    def convert(ctx, code, args, globals_, builtins, closure):
        calls.append(
            (ctx, code, args, globals_ is globals(), builtins["len"] is len, closure, kit.C.active())
        )
        return kit.Guarded(twin("new").__code__)

    kit.C.set_convert_frame(convert)
    optimized = kit.optimized(old)
    assert [optimized(5), optimized(6)] == ["new", "new"]
    assert calls == [(kit.ctx, old.__code__, (5, 2), True, True, None, None)]
    assert kit.counted("converts", "hits_in_place", "hits_direct", "guards") == (1, 1, 1, 1)
    (entry,) = kit.C.cache_entries(old.__code__)
    assert entry.hits == 1 and entry.owner_ctx_id == id(kit.ctx) and entry.key is kit.key


def test_a_miss_evaluates_each_guard_once(kit):
    seen = []

    def check(a, b, globals_, closure):
        seen.append(a)
        return a == 1

    kit.add(old, twin("one"), check)
    kit.C.set_convert_frame(lambda *_: kit.Guarded(twin("two").__code__))
    assert kit.optimized(old)(2) == "two"
    assert seen == [2]
    assert kit.counted("misses", "converts") == (1, 1)


def test_entries_are_tried_in_the_order_of_insertion(kit):
    tried = []

    def check(name, wanted):
        def check_fn(a, b, globals_, closure):
            tried.append(name)
            return a in wanted

        return check_fn

    entries = [kit.add(old, twin(n), check(n, w)) for n, w in [("A", (1, 3)), ("B", (2, 3)), ("C", (3, 4))]]
    assert kit.C.cache_entries(old.__code__) == entries == kit.key.entries
    assert [e.next for e in entries] == [*entries[1:], None]
    first, second = kit.optimized(old), kit.optimized(old)
    assert [first(3), second(2), kit.hooked(old, 3)] == ["A", "B", "A"]
    assert tried == ["A", "A", "B", "A"]


def test_an_optimized_object_tries_its_last_hit_first(kit):
    tried = []

    def check(name):
        def check_fn(a, b, globals_, closure):
            tried.append(name)
            return a == name

        return check_fn

    for name in "ABC":
        kit.add(old, twin(name), check(name))
    optimized = kit.optimized(old)
    assert [optimized("C"), optimized("C"), optimized("A"), optimized("A")] == ["C", "C", "A", "A"]
    assert tried == [*"ABC", "C", *"CA", "A"]
    tried.clear()
    assert [optimized("B"), optimized("none"), optimized("C"), optimized("B")] == ["B", "old", "C", "B"]
    assert tried == [*"AB", *"BAC", *"BAC", *"CAB"]
    tried.clear()
    kit.C.reset_code(old.__code__)
    kit.add(old, twin("D"), check("D"))
    assert optimized("D") == "D" and tried == ["D"]


def test_check_functions_get_flat_arguments_globals_and_closure(kit):
    seen = []

    def outer(cell):
        def f(a, /, b, *rest, k=3, **more):
            return cell

        return f

    def outer_new(cell):
        def f(a, /, b, *rest, k=3, **more):
            return ("new", cell)

        return f

    f = outer("cell")
    kit.add(f, outer_new(0), lambda *values: seen.append(values) or True)
    assert kit.optimized(f)(1, 2, 4, 5, z=6) == ("new", "cell")
    assert kit.hooked(f, 1, 2, 4, 5, z=6) == ("new", "cell")
    expected = (1, 2, 3, (4, 5), {"z": 6}, globals(), f.__closure__)
    assert seen == [expected, expected]


def test_a_key_never_serves_another(kit):
    other = kit.C.OptimizeContext(kit.C.CompileKey("test backend"))
    kit.add(old, twin("mine"))
    kit.add(old, twin("theirs"), ctx=other)
    same_key = kit.C.OptimizeContext(kit.key)
    assert [kit.optimized(old, c)(1) for c in (kit.ctx, other, same_key)] == ["mine", "theirs", "mine"]


def test_nopython_uses_no_entry_with_a_break(kit):
    strict = kit.C.OptimizeContext(kit.key, nopython=True)
    kit.add(old, twin("broken"), has_break=True)
    kit.add(old, twin("whole"))
    assert [kit.optimized(old, c)(1) for c in (kit.ctx, strict)] == ["broken", "whole"]


def test_an_entry_with_a_break_runs_with_its_context_active(kit):
    def seen(a, b=2):
        return C.active(), C.hook_installed()

    kit.add(old, seen, has_break=True)
    assert kit.optimized(old)(1) == (kit.ctx, True)
    kit.C.reset_code(old.__code__)
    kit.add(old, seen)
    assert kit.optimized(old)(1) == (None, False)


def test_an_invalid_entry_is_passed_over_and_leaves_when_a_new_one_comes(kit):
    class Thing:
        pass

    thing = Thing()
    validity = kit.C.Validity()
    watch = weakref.ref(thing, validity.invalidate)
    entry = kit.add(old, twin("A"), validity=validity)
    optimized = kit.optimized(old)
    assert optimized(1) == "A" and entry.valid
    del thing
    assert watch() is None and not entry.valid
    assert optimized(1) == "old"
    assert kit.C.cache_entries(old.__code__) == [entry]
    newer = kit.add(old, twin("B"))
    assert kit.C.cache_entries(old.__code__) == [newer] == kit.key.entries
    assert optimized(1) == "B"


def test_validity_is_read_at_each_call(kit):
    entry = kit.add(old, twin("A"))
    optimized = kit.optimized(old)
    entry.valid = False
    assert optimized(1) == "old"
    entry.valid = True
    assert optimized(1) == "A"


def test_an_entry_that_is_declared_dead_by_its_own_guard_does_not_run(kit):
    validity = kit.C.Validity()

    def check(*_):
        validity.valid = False
        return True

    kit.add(old, twin("A"), check, validity=validity)
    assert kit.optimized(old)(1) == "old"


@pytest.mark.parametrize("hooked", [False, True])
def test_the_walk_goes_on_behind_an_entry_that_its_own_guard_took_out(kit, hooked):
    validity = kit.C.Validity()

    def check(*_):
        validity.valid = False
        kit.add(old, twin("D"))  # the invalid entry leaves
        assert [e.code for e in kit.C.cache_entries(old.__code__)][:2] == [b.code, c.code]
        return True

    kit.add(old, twin("A"), check, validity=validity)
    b, c = kit.add(old, twin("B"), kit.never), kit.add(old, twin("C"))
    assert (kit.hooked(old, 1) if hooked else kit.optimized(old)(1)) == "C"
    assert len(kit.key.entries) == 3


def test_a_raising_guard_is_a_failed_guard(kit):
    def check(a, *_):
        return a.missing

    entry = kit.add(old, twin("A"), check)
    later = kit.add(old, twin("B"))
    optimized = kit.optimized(old)
    for _ in range(1000):
        assert optimized(1) == "B"
    kit.C.reset_code(old.__code__)
    assert entry.last_error == "AttributeError: 'int' object has no attribute 'missing'"
    assert later.last_error is None
    # the last hit is tried first, so the raising guard ran only once
    assert kit.counted("guard_errors") == (1,)


def test_a_thousand_raising_guards_in_the_evaluator(kit):
    def check(*_):
        raise RuntimeError("guard")

    entry = kit.add(old, twin("A"), check)
    for _ in range(1000):
        assert kit.hooked(old, 1) == "old"
    assert kit.counted("guard_errors", "misses") == (1000, 1000)
    assert entry.last_error == "RuntimeError: guard"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("hooked", [False, True])
def test_exceptions_that_are_no_exception_propagate_out_of_guards(kit, error, hooked):
    def check(*_):
        raise error

    kit.add(old, twin("A"), check)
    call = old if hooked else kit.optimized(old)
    thing = object()
    before = sys.getrefcount(thing)
    for _ in range(100):
        with pytest.raises(error):
            kit.hooked(call, thing) if hooked else call(thing)
    assert sys.getrefcount(thing) == before


def test_a_guard_whose_answer_has_no_truth_is_a_failed_guard(kit):
    class NoTruth:
        def __bool__(self):
            raise ValueError("no truth")

    entry = kit.add(old, twin("A"), lambda *_: NoTruth())
    assert kit.optimized(old)(1) == "old"
    assert entry.last_error == "ValueError: no truth"


def test_a_guard_may_call_the_function_that_it_guards(kit):
    optimized = kit.optimized(old)

    def check(a, *_):
        return optimized(a) == old(a) == "old"

    kit.add(old, twin("new"), check)
    kit.C.set_convert_frame(lambda *_: pytest.fail("compiled inside a guard"))
    assert optimized(1) == "new"
    assert kit.hooked(old, 1) == "new"


def test_the_compiler_may_call_the_function_that_it_compiles(kit):
    optimized = kit.optimized(old)

    def convert(*_):
        assert optimized(1) == old(1) == "old"
        return kit.Guarded(twin("new").__code__)

    kit.C.set_convert_frame(convert)
    assert optimized(1) == "new"
    assert kit.counted("converts") == (1,)


def test_an_error_of_the_compiler_is_the_error_of_the_call(kit):
    def convert(*_):
        raise LookupError("compiler")

    kit.C.set_convert_frame(convert)
    optimized = kit.optimized(old)
    thing = object()
    before = sys.getrefcount(thing)
    for _ in range(200):
        with pytest.raises(LookupError, match="compiler"):
            optimized(thing)
    assert sys.getrefcount(thing) == before
    assert kit.counted("converts", "convert_errors") == (200, 200)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (99, ValueError),
        (0, ValueError),
        (object(), AttributeError),
        (True, AttributeError),
        ("x", AttributeError),
    ],
)
def test_a_senseless_answer_of_the_compiler_is_an_error(kit, answer, error):
    kit.C.set_convert_frame(lambda *_: answer)
    with pytest.raises(error):
        kit.optimized(old)(1)
    assert kit.C.cache_entries(old.__code__) == []


def test_none_of_the_compiler_means_plain_this_time(kit):
    calls = []
    kit.C.set_convert_frame(lambda *_: calls.append(1))
    optimized = kit.optimized(old)
    assert [optimized(1), optimized(1)] == ["old", "old"]
    assert calls == [1, 1] and kit.C.get_mark(old.__code__) == 0


def test_notimplemented_of_the_compiler_means_plain_this_time_and_below(kit):
    calls = []
    inner = kit.define("def inner(): return active()", active=kit.C.active)
    outer = kit.define("def outer(): return inner()", inner=inner)
    kit.C.set_convert_frame(lambda ctx, code, *_: calls.append(code.co_name) or NotImplemented)
    assert [kit.optimized(outer)() for _ in range(2)] == [None, None]
    assert calls == ["outer", "outer"] and kit.C.get_mark(outer.__code__) == 0


def test_without_a_compiler_a_miss_runs_plain(kit):
    assert kit.optimized(old)(1) == "old"


@pytest.mark.parametrize(
    "source",
    [
        "def f(a): return 1",
        "def f(a, c=2): return 1",
        "def f(a, b=2, *c): return 1",
        "def f(a, *, b=2): return 1",
        "def f(a, /, b=2): return 1",
        "def f(a, b=2): yield 1",
        "async def f(a, b=2): return 1",
    ],
)
def test_code_of_another_shape_cannot_be_an_entry(kit, source):
    with pytest.raises(ValueError, match="cannot run in place of old"):
        kit.add(old, kit.define(source))
    assert kit.C.cache_entries(old.__code__) == [] == kit.key.entries


def test_code_with_other_free_variables_cannot_be_an_entry(kit):
    def outer():
        x = y = 0

        def f(a):
            return x

        def g(a):
            return y

        def h(a):
            return a

        return f, g, h

    f, g, h = outer()
    for new in (g, h):
        with pytest.raises(ValueError, match="free variables"):
            kit.add(f, new)


def test_code_cannot_stand_in_for_itself_or_for_an_entrys_code(kit):
    with pytest.raises(ValueError, match="original code itself"):
        kit.add(old, old)
    new = twin("new")
    kit.add(old, new)
    with pytest.raises(ValueError, match="entry's code itself"):
        kit.add(new, twin("newer"))
    cached = twin("cached")
    kit.add(cached, twin("x"))
    with pytest.raises(ValueError, match="entries of its own"):
        kit.add(old, cached)


@pytest.mark.parametrize(
    ("field", "value"),
    [("code", 1), ("check_fn", 1), ("validity", None), ("handles", [1]), ("handles", (1,)), ("owned", None)],
)
def test_fields_of_the_wrong_type_are_refused(kit, field, value):
    guarded = kit.Guarded(twin("new").__code__)
    setattr(guarded, field, value)
    with pytest.raises(TypeError, match=field):
        kit.C.add_entry(old.__code__, kit.ctx, guarded)
    fields = {name: v for name, v in vars(kit.Guarded(twin("new").__code__)).items() if name != field}
    with pytest.raises(AttributeError, match=field):
        kit.C.add_entry(old.__code__, kit.ctx, types.SimpleNamespace(**fields))
    assert kit.C.cache_entries(old.__code__) == [] == kit.key.entries


def test_the_owner_of_an_entry_is_known_while_it_lives(kit):
    mine = kit.C.OptimizeContext(kit.key)
    entry = kit.add(old, twin("A"), ctx=mine, payload={"text": "a == 1"})
    assert entry.owner_ctx_id == id(mine)
    assert entry.guarded == {"text": "a == 1"} and entry.original_code is old.__code__
    del mine
    assert entry.owner_ctx_id == 0


def test_reset_code_and_reset_all(kit):
    other = kit.define("def other(a): return 1")
    kit.C.mark_code(other.__code__, kit.C.SKIP)
    entry = kit.add(old, twin("A"))
    kit.C.reset_code(old.__code__)
    assert kit.C.cache_entries(old.__code__) == [] == kit.key.entries
    assert (entry.valid, entry.original_code, entry.key, entry.next) == (False, None, None, None)
    assert kit.optimized(old)(1) == "old"
    kit.add(old, twin("B"))
    kit.C.reset_all()
    assert kit.C.cache_entries(old.__code__) == [] and kit.C.get_mark(other.__code__) == 0


def test_arguments_of_the_module_functions_are_checked(kit):
    C = kit.C
    for call in (C.get_mark, C.cache_entries, C.reset_code):
        with pytest.raises(TypeError, match="code object"):
            call(old)
    for call in (C.set_convert_frame, C.set_rerun_callback):
        with pytest.raises(TypeError, match="callable"):
            call(1)
    with pytest.raises(TypeError, match="OptimizeContext"):
        C.swap_active(1)
    with pytest.raises(TypeError, match="OptimizeContext"):
        C.add_entry(old.__code__, kit.key, kit.Guarded(twin("x").__code__))
    with pytest.raises(TypeError, match="2 arguments"):
        C.mark_code(old.__code__)
    for mark in (-1, 4, 5):
        with pytest.raises(ValueError, match="mark_code"):
            C.mark_code(old.__code__, mark)
    with pytest.raises(TypeError, match="CompileKey"):
        C.OptimizeContext("key")
    with pytest.raises(TypeError, match="twice"):
        C.OptimizeContext(kit.key, key=kit.key)
    context = C.OptimizeContext(key=kit.key, nopython=True, backend="eager")
    assert (context.key, context.nopython, context.backend) == (kit.key, True, "eager")
