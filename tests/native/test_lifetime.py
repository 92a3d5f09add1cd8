"""Who keeps whom alive: eviction while something runs, cycles, code objects and keys that die."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

EVICT = """
import gc
class Guarded:
    def __init__(self, code, check_fn, handles=(), owned=()):
        self.code, self.check_fn, self.handles, self.owned = code, check_fn, handles, owned
        self.validity, self.has_break, self.rerunnable, self.payload = C.Validity(), False, False, None
key = C.CompileKey("b")
ctx = C.OptimizeContext(key)
def make(name, source="return a"):
    names = {}
    exec(f"def {name}(a, b=1):\\n    {source}", names)
    return names[name]
def hooked(fn, *args):
    before = C.swap_active(ctx)
    try:
        return fn(*args)
    finally:
        C.swap_active(before)
"""


@pytest.mark.parametrize("malloc", ["debug", "malloc_debug"])
def test_an_entry_evicted_while_its_guard_runs(python, malloc):
    python(
        EVICT
        + """
def rounds(call, f):
    for answer in (True, False):
        for evicted in range(4):
            C.reset_code(f.__code__)
            tried = []
            def check(i):
                def check_fn(a, *_):
                    tried.append(i)
                    if i == evicted:
                        C.reset_code(f.__code__)
                        gc.collect()
                        junk = [bytearray(200) for _ in range(50)]
                    return answer and i >= evicted
                return check_fn
            for i in range(4):
                C.add_entry(f.__code__, ctx, Guarded(make("f", f"return 'new{i}'").__code__, check(i)))
            assert call(f, 5) == 5, (answer, evicted)
            assert tried == list(range(evicted + 1)), tried
            assert C.cache_entries(f.__code__) == [] == key.entries
f = make("f")
rounds(lambda f, a: C.OptimizedFunction(f, ctx)(a), f)
rounds(hooked, f)
# only the entry under test leaves; the walk goes on behind it, also over entries that came meanwhile
class Thing: pass
def partial(call):
    C.reset_code(f.__code__)
    holder = {}
    def check(a, *_):
        keep = C.cache_entries(f.__code__)
        del holder["key"]
        gc.collect()
        assert len(C.cache_entries(f.__code__)) == len(keep) - 1
        return False
    mine = C.OptimizeContext(C.CompileKey("dying"))
    holder["key"] = mine
    C.add_entry(f.__code__, ctx, Guarded(make("f", "return 'A'").__code__, lambda *_: False))
    C.add_entry(f.__code__, ctx, Guarded(make("f", "return 'B'").__code__, check))
    del mine
    C.add_entry(f.__code__, holder["key"], Guarded(make("f", "return 'other key'").__code__, lambda *_: True))
    C.add_entry(f.__code__, ctx, Guarded(make("f", "return 'C'").__code__, lambda *_: True))
    assert call(f, 5) == 'C'
partial(lambda f, a: C.OptimizedFunction(f, ctx)(a))
partial(hooked)
""",
        PYTHONMALLOC=malloc,
    )


def test_an_entry_evicted_while_its_code_runs(python):
    python(
        EVICT
        + """
def target(a):
    C.reset_all()
    gc.collect()
    junk = [bytearray(200) for _ in range(50)]
    return (a, a)
def run(call, f):
    handle = C.EntryHandle(target, 2)
    new = make("f", "return (h := '<h>')(a), h(a)")
    consts = tuple(handle if c == "<h>" else c for c in new.__code__.co_consts)
    C.add_entry(f.__code__, ctx, Guarded(new.__code__.replace(co_consts=consts), lambda *_: True, (handle,)))
    del new, consts
    assert call(f, 5) == ((5, 5), (5, 5))
    assert handle.target is None
    try:
        handle(1)
    except RuntimeError as error:
        assert "dropped" in str(error)
    else:
        raise AssertionError("a dead handle was called")
f = make("f")
for _ in range(20):
    run(lambda f, a: C.OptimizedFunction(f, ctx)(a), f)
    run(hooked, f)
""",
        PYTHONMALLOC="debug",
    )


def test_a_function_whose_code_is_replaced_and_freed_by_its_guard(python):
    python(
        EVICT
        + """
for call in (lambda f, a: C.OptimizedFunction(f, ctx)(a), hooked):
    f = make("f")
    def check(*_):
        f.__code__ = make("f", "return 'replaced'").__code__
        gc.collect()
        return True
    C.add_entry(f.__code__, ctx, Guarded(make("f", "return 'new'").__code__, check))
    assert call(f, 5) == 'new', call(f, 5)
    assert call(f, 5) == 'replaced'
    assert key.entries == []
""",
        PYTHONMALLOC="debug",
    )


def test_entries_leave_when_their_code_object_dies(kit):
    f = kit.define("def f(a): return a")
    entry = kit.add(f, kit.define("def f(a): return 0"))
    assert kit.key.entries == [entry] and entry.original_code is f.__code__
    del f
    gc.collect()
    assert kit.key.entries == []
    assert (entry.original_code, entry.key, entry.valid) == (None, None, False)


def test_an_entry_and_what_it_owns_die_with_the_code_object(kit):
    class Owned:
        pass

    owned = Owned()
    watch = weakref.ref(owned)
    f = kit.define("def f(a): return a")
    kit.add(f, kit.define("def f(a): return 0"), owned=(owned,))
    del owned
    assert watch() is not None
    del f
    gc.collect()
    assert watch() is None


def test_entries_leave_when_their_key_dies(kit):
    f = kit.define("def f(a): return a")
    key = kit.C.CompileKey("dying")
    entry = kit.add(f, kit.define("def f(a): return 0"), ctx=kit.C.OptimizeContext(key))
    kept = kit.add(f, kit.define("def f(a): return 1"))
    watch = weakref.ref(key)
    del key
    assert watch() is None
    assert kit.C.cache_entries(f.__code__) == [kept]
    assert (entry.original_code, entry.key, entry.valid) == (None, None, False)


@pytest.mark.slow
@pytest.mark.parametrize("through", ["check_fn", "owned", "payload", "handle", "backend", "closure"])
def test_cycles_through_entries_are_collected(kit, through):
    """fn -> OptimizedFunction -> ctx -> key -> entry -> ... -> fn; co_extra and constants add no strong path."""

    class Marker:
        pass

    def make():
        marker = Marker()
        backend = [marker]
        key = kit.C.CompileKey(backend)
        ctx = kit.C.OptimizeContext(key)
        names = {}
        exec("def f(a):\n    return a\n", names)
        exec("def new(a):\n    return '<h>'\n", names)
        f, new = names["f"], names["new"]
        names["marker"] = marker

        def loop(*_):
            return (f, key, marker)

        handle = kit.C.EntryHandle(loop)
        fields = {"code": kit.with_constants(new, h=handle), "handles": (handle,)}
        if through == "check_fn":
            fields["check_fn"] = loop
        elif through in ("owned", "payload"):
            fields[through] = (loop,)
        elif through == "backend":
            backend += [f, key]
        kit.C.add_entry(f.__code__, ctx, kit.Guarded(**fields))
        names["optimized"] = kit.C.OptimizedFunction(f, ctx)
        assert names["optimized"](1) is handle
        before = kit.C.swap_active(ctx)
        assert f(1) is handle
        kit.C.swap_active(before)
        return weakref.ref(marker)

    watches = [make() for _ in range(3)]
    gc.collect()
    assert [w() for w in watches] == [None] * 3


def test_a_closure_does_not_outlive_its_optimized_function(kit):
    """The code object and the key live on; what the closure held does not."""

    class Model:
        pass

    def make(model):
        def f(a):
            return model

        return f

    def make_new(model):
        def f(a):
            return ("new", model)

        return f

    model = Model()
    watch = weakref.ref(model)
    f = make(model)
    kit.add(f, make_new(None))
    optimized = kit.optimized(f)
    assert optimized(1) == ("new", model) == kit.hooked(f, 1)
    del model, f, optimized
    assert watch() is None
    assert len(kit.key.entries) == 1


def test_arguments_do_not_outlive_a_miss(kit):
    class Thing:
        pass

    f = kit.define("def f(a): return None")
    seen = []

    def convert(ctx, code, args, *_):
        seen.append(weakref.ref(args[0]))
        return kit.Guarded(kit.define("def f(a): return None").__code__)

    kit.C.set_convert_frame(convert)
    kit.optimized(f)(Thing())
    assert seen[0]() is None


def test_errors_of_guards_keep_nothing_alive(kit):
    class Thing:
        pass

    f = kit.define("def f(a): return None")
    kit.add(f, kit.define("def f(a): return 0"), lambda a, *_: a.missing)
    thing = Thing()
    watch = weakref.ref(thing)
    kit.optimized(f)(thing)
    del thing
    assert watch() is None


def test_nothing_leaks_with_the_collector_off(kit):
    """Blocks stay constant over rounds of compile, hit, evict, in every way of running."""

    def one_round():
        f = kit.define("def f(a, b=1, *rest, k=2, **more): return a")
        g = kit.define("def f(a, b=1, *rest, k=2, **more): return (a, b)")
        ctx = kit.C.OptimizeContext(kit.C.CompileKey("round"))
        handle = kit.C.EntryHandle(len)
        kit.C.set_convert_frame(lambda *_: kit.Guarded(g.__code__, handles=(handle,), has_break=True))
        optimized = kit.C.OptimizedFunction(f, ctx)
        optimized(1)
        optimized(1, 2, 3, z=4)
        before = kit.C.swap_active(ctx)
        f(1, k=3)
        kit.C.swap_active(before)
        try:
            optimized()
        except TypeError:
            pass
        kit.C.reset_code(f.__code__)
        kit.C.set_convert_frame(None)
        f.__globals__.clear()
        g.__globals__.clear()

    gc.collect()
    gc.disable()
    try:
        for _ in range(400):  # the interpreter's own caches fill up
            one_round()
        before = sys.getallocatedblocks()
        for _ in range(200):
            one_round()
        grown = sys.getallocatedblocks() - before
    finally:
        gc.enable()
    assert grown < 50, grown


def test_the_collector_may_run_at_any_allocation(kit):
    f = kit.define("def f(a, *rest): return a")
    kit.C.set_convert_frame(lambda *_: kit.Guarded(kit.define("def f(a, *rest): return 'new'").__code__))
    optimized = kit.optimized(f)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for i in range(100):
            assert optimized(i, i) == kit.hooked(f, i, i) == "new"
            kit.C.reset_code(f.__code__)
    finally:
        gc.set_threshold(*threshold)


def test_entries_as_objects(kit):
    f = kit.define("def f(a): return a")
    entry = kit.add(f, kit.define("def f(a): return 0"))
    assert repr(entry) == "<CacheEntry of f line 1, 0 hit(s)>"
    kit.C.reset_code(f.__code__)
    assert repr(entry).endswith("dropped>")
    with pytest.raises(TypeError):
        type(entry)()
    with pytest.raises(AttributeError):
        del entry.valid
    with pytest.raises(AttributeError):
        entry.hits = 5
    assert repr(kit.key) == "CompileKey('test backend', None, None)"
    kit.key.note = 1
    assert kit.key.note == 1 and weakref.ref(kit.key)() is kit.key
