"""Threads, fork, signals, finalizers: whatever else runs while a context is active."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import warnings
import weakref

import pytest


def in_thread(fn, *args):
    """fn(*args) in a thread of its own; its result, or its exception raised here."""
    box = []

    def run():
        try:
            box.append((fn(*args), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    ((value, error),) = box
    if error is not None:
        raise error
    return value


def test_another_thread_sees_no_context_and_does_not_compile(kit):
    f = kit.define("def f(a): return 'old'")
    kit.add(f, kit.define("def f(a): return 'new'"))
    compiled = []
    kit.C.set_convert_frame(lambda ctx, code, *_: compiled.append(code.co_name))

    def both():
        mine = f(1)
        theirs = in_thread(lambda: (f(1), kit.C.active(), kit.C.hook_installed()))
        return mine, theirs, f(1)

    assert kit.hooked(both) == ("new", ("old", None, True), "new")
    assert "both" in compiled and "<lambda>" not in compiled and "run" not in compiled
    assert kit.counted("frames_passed") > (0,)


def test_each_thread_has_its_own_context(kit):
    f = kit.define("def f(a): return 'old'")
    contexts = [kit.C.OptimizeContext(kit.C.CompileKey(i)) for i in range(4)]
    for i, ctx in enumerate(contexts):
        kit.add(f, kit.define(f"def f(a): return {i}"), ctx=ctx)
    start = threading.Barrier(4)
    results = []

    def work(i):
        start.wait()
        optimized = kit.optimized(f, contexts[i])
        for _ in range(300):
            before = kit.C.swap_active(contexts[i])
            hooked = f(1)
            kit.C.swap_active(before)
            results.append((i, optimized(1), hooked))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(results) == 1200 and all(i == a == b for i, a, b in results)
    assert not kit.C.hook_installed()


def test_entries_come_and_go_in_other_threads(kit):
    f = kit.define("def f(a): return ('old', a)")
    stop = threading.Event()
    kit.C.set_convert_frame(lambda *_: kit.Guarded(kit.define("def f(a): return ('new', a)").__code__))
    errors = []

    def work():
        optimized = kit.optimized(f)
        i = 0
        while not stop.is_set():
            i += 1
            before = kit.C.swap_active(kit.ctx)
            answers = optimized(i), f(i)
            kit.C.swap_active(before)
            if not all(a in (("old", i), ("new", i)) for a in answers):
                errors.append(answers)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            kit.C.reset_code(f.__code__)
            kit.C.reset_all()
            gc.collect(0)
        stop.set()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == [] and not kit.C.hook_installed()


def test_a_thread_that_ends_with_a_context_active_leaves_nothing(kit):
    ctx = kit.C.OptimizeContext(kit.key)
    watch = weakref.ref(ctx)

    def leak(ctx):
        kit.C.swap_active(ctx)
        return kit.C.hook_installed()

    for _ in range(3):
        assert in_thread(leak, ctx) is True
        end = time.monotonic() + 5  # join() returns a moment before the thread state is cleared
        while kit.C.hook_installed() and time.monotonic() < end:
            time.sleep(0.001)
        assert not kit.C.hook_installed()
    del ctx
    gc.collect()
    assert watch() is None


def test_fork_inside_a_call(kit):
    f = kit.define("def f(a): return 'old'")
    kit.add(f, kit.define("def f(a): return 'new'"))
    skip = kit.C.SKIP

    def child():
        checks = [
            f(1) == "new",
            kit.C.hook_installed(),
            kit.C.active() is kit.ctx,
            in_thread(f, 1) == "old",
        ]
        kit.C.swap_active(None)
        checks += [f(1) == "old", not kit.C.hook_installed(), kit.optimized(f)(1) == "new"]
        return sum(1 << i for i, ok in enumerate(checks) if not ok)

    def forker():
        pid = os.fork()
        if pid == 0:
            os._exit(child())
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    for fn in (child, forker, in_thread):
        kit.C.mark_code(fn.__code__, skip)
    assert kit.optimized(forker)() == 0
    assert f(1) == "old" and not kit.C.hook_installed()


def test_fork_while_another_thread_has_a_context(kit):
    """The child has no such thread, so the evaluator goes away there."""
    ready, done = threading.Event(), threading.Event()

    def holder():
        before = kit.C.swap_active(kit.ctx)
        ready.set()
        done.wait()
        kit.C.swap_active(before)

    thread = threading.Thread(target=holder)
    thread.start()
    ready.wait()
    installed = kit.C.hook_installed()
    with warnings.catch_warnings():  # forking a process with threads is what this test is about
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os._exit(1 if kit.C.hook_installed() else 0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    done.set()
    thread.join()
    assert installed and status == 0 and not kit.C.hook_installed()


def test_signal_handlers_inside_a_call(kit):
    ran = []

    def handler(signum, frame):
        ran.append(kit.C.active())

    f = kit.define("def f(n):\n    for i in range(n): kill()\n    return n", kill=lambda: None)
    new = kit.define("def f(n):\n    for i in range(n): kill()\n    return ('new', n)")
    kit.add(f, new)
    f.__globals__["kill"] = lambda: os.kill(os.getpid(), signal.SIGUSR1)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert kit.hooked(f, 20) == ("new", 20)
        assert ran == [kit.ctx] * 20
        assert kit.optimized(f)(20) == ("new", 20)
        assert ran[20:] == [None] * 20
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_exception_out_of_a_signal_handler_in_the_compiler(kit):
    def handler(signum, frame):
        raise KeyboardInterrupt

    def convert(*_):
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(1000):
            pass
        return None

    kit.C.set_convert_frame(convert)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                kit.optimized(kit.define("def f(): return 1"))()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_finalizers_and_gc_callbacks_inside_a_call(kit):
    """They run as plain Python while the collector runs, and change nothing for the call."""
    seen, log = [], []
    kit.C.set_convert_frame(lambda ctx, code, *_: seen.append(code.co_name))

    class Noisy:
        def __init__(self):
            self.me = self

        def __del__(self):
            log.append(helper())

    def helper():
        return "del"

    def callback(phase, info):
        log.append(phase)

    def body():
        Noisy()
        gc.collect()
        return "done"

    gc.collect()
    gc.callbacks.append(callback)
    try:
        assert kit.hooked(body) == "done"
    finally:
        gc.callbacks.remove(callback)
    assert "del" in log and "stop" in log
    assert set(seen) == {"body", "__init__"} or set(seen) == {"body"}


def test_weakref_callbacks_that_reset_the_cache(kit):
    f = kit.define("def f(a): return None")
    new = kit.define("def f(a):\n    a.clear()\n    return 'new'")
    kit.add(f, new)

    class Thing:
        pass

    thing = [Thing()]
    watch = weakref.ref(thing[0], lambda _: kit.C.reset_all())
    assert kit.hooked(f, thing) == "new"
    assert watch() is None and kit.C.cache_entries(f.__code__) == []
    assert kit.hooked(f, thing) is None


def test_a_context_as_context_manager(kit):
    other = kit.C.OptimizeContext(kit.key)
    with kit.ctx as entered:
        assert entered is kit.ctx is kit.C.active() and kit.C.hook_installed()
        with other, kit.ctx:
            assert kit.C.active() is kit.ctx
        assert kit.C.active() is kit.ctx
        with pytest.raises(LookupError), other:
            raise LookupError
        assert kit.C.active() is kit.ctx
    assert kit.C.active() is None and not kit.C.hook_installed()
    with pytest.raises(RuntimeError, match="more often than it was entered"):
        kit.ctx.__exit__(None, None, None)


def test_one_context_entered_by_two_threads(kit):
    """Each leaves to what was active in itself."""
    outer = kit.C.OptimizeContext(kit.key)
    inside, leave = threading.Event(), threading.Event()
    seen = []

    def work():
        with outer, kit.ctx:
            inside.set()
            leave.wait()
        seen.append(kit.C.active())

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    with kit.ctx:
        pass
    seen.append(kit.C.active())
    with kit.ctx:
        leave.set()
        thread.join()
    assert seen == [None, None] and kit.C.active() is None
