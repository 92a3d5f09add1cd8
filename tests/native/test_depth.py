"""Recursion depth, chunk boundaries of the data stack, frames of random size."""

from __future__ import annotations

import random
import sys

import pytest

DEPTH = """
import sys, threading
sys.setrecursionlimit(int(sys.argv[1]))
mode = sys.argv[2]
depth = 0
def rec():
    global depth
    depth += 1
    call()
call = rec
class Guarded:
    def __init__(self, code):
        self.code, self.check_fn, self.handles, self.owned = code, (lambda *_: True), (), ()
        self.validity, self.has_break, self.rerunnable, self.payload = C.Validity(), mode == "break", False, None
ctx = C.OptimizeContext(C.CompileKey("b"))
mode, in_thread = mode.removesuffix(" thread"), mode.endswith(" thread")
if mode not in ("plain", "skip", "passed"):
    def rec2():
        global depth
        depth += 1
        call()
    C.add_entry(rec.__code__, ctx, Guarded(rec2.__code__))
else:
    C.mark_code(rec.__code__, C.SKIP)
def go():
    if mode not in ("plain", "passed", "direct"):
        C.swap_active(ctx)
    try:
        call()
    except RecursionError:
        pass
    C.swap_active(None)
if mode in ("direct", "break"):
    call = C.OptimizedFunction(rec, ctx)
C.mark_code(go.__code__, C.SKIP)
if in_thread:
    thread = threading.Thread(target=go); thread.start(); thread.join()
elif mode == "passed":
    ready, done = threading.Event(), threading.Event()
    def holder():
        C.swap_active(ctx); ready.set(); done.wait(); C.swap_active(None)
    thread = threading.Thread(target=holder); thread.start(); ready.wait()
    assert C.hook_installed()
    go()
    done.set(); thread.join()
else:
    go()
print(depth)
"""


@pytest.mark.parametrize(
    "mode", ["skip", "in place", "passed", "direct", "break", "skip thread", "in place thread"]
)
def test_the_recursion_limit_means_what_it_means(python, mode):
    """A limit of 1000 allows exactly as many nested calls as without minidynamo."""
    plain = int(python(DEPTH, "1000", "plain thread" if mode.endswith("thread") else "plain").stdout)
    assert int(python(DEPTH, "1000", mode).stdout) == plain > 990


@pytest.mark.parametrize("mode", ["skip", "in place", "skip thread"])
def test_a_high_limit_does_not_overflow_the_c_stack(python, mode):
    """Where the C stack ends, calls go on as plain Python, which needs none."""
    plain = int(python(DEPTH, "60000", "plain thread" if mode.endswith("thread") else "plain").stdout)
    assert int(python(DEPTH, "60000", mode).stdout) == plain > 59990


@pytest.mark.parametrize("mode", ["direct", "direct thread", "break"])
def test_deep_recursion_through_c_is_a_recursion_error(python, mode):
    assert 1000 < int(python(DEPTH, "200000", mode).stdout) < 200000


def function(index, local_count, stack_depth, closure, extra):
    """f(d, acc, ..., k=3): a frame of random size that calls another one and sometimes raises."""
    arguments = "d, acc, *va, k=3, **kw" if index % 3 == 0 else "d, acc, k=3"
    body = "\n".join(f"        v{j} = acc + {j}" for j in range(local_count)) or "        pass"
    deep = "(" * stack_depth + "0" + "".join(f", {j})" for j in range(stack_depth))
    source = f"""
def make(cell):
    def f({arguments}):
{body}
        t = {deep}
        h = lambda: d
        if d <= 0:
            if acc % 7 == 3: raise ValueError(acc)
            return acc + {"cell" if closure else "0"}
        try: r = pick(h())(d - 1, acc + k)
        except ValueError as e:
            if d % 5 == 0: return e.args[0]
            raise
        return r + {extra}
    return f
"""
    return source


@pytest.mark.parametrize("seed", range(3))
def test_frames_of_random_size_at_depth_600(kit, seed):
    rng = random.Random(seed)
    functions = []

    def pick(d):
        return functions[(d * 7919) % len(functions)]

    def made(index, *shape):
        names = {"pick": pick}
        exec(function(index, *shape, index % 2, 1), names)
        return names["make"](index)

    for i in range(40):
        f = made(i, rng.randrange(0, 4), rng.randrange(0, 3))
        kit.add(f, made(i, rng.randrange(0, 60), rng.randrange(0, 40)))
        functions.append(f)
    kit.C.mark_code(pick.__code__, kit.C.SKIP)

    def length(traceback):
        return 0 if traceback is None else 1 + length(traceback.tb_next)

    def call(d, acc):
        try:
            return pick(d)(d, acc)
        except ValueError as error:
            count, traceback = 0, error.__traceback__
            while traceback is not None:
                count, traceback = count + 1, traceback.tb_next
            return "raised", error.args, count

    cases = [(rng.randrange(0, 600), rng.randrange(1000)) for _ in range(60)]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(6000)
    try:
        plain = [call(*case) for case in cases]
        assert kit.hooked(lambda: [call(*case) for case in cases]) == plain
    finally:
        sys.setrecursionlimit(limit)
    in_place, called = kit.counted("hits_in_place", "hits_called")
    assert in_place > 1000 and called > 0


def test_a_discarded_frame_at_every_place_of_a_chunk(kit):
    """Frames that are given back without running, wherever they lie, also first in a chunk."""

    def check(d, *_):
        if d == 0:
            raise KeyboardInterrupt
        return True

    source = "def f(d{extra}):\n    {locals}\n    return f(d - 1)"
    f = kit.define(source.format(extra="", locals="x = 1"))
    new = kit.define(source.format(extra="", locals="; ".join(f"x{i} = {i}" for i in range(37))))
    kit.add(f, new, check)
    for depth in range(0, 700, 3):
        with pytest.raises(KeyboardInterrupt):
            kit.hooked(f, depth)
    big = new.__code__.replace(co_stacksize=5000)
    kit.C.reset_code(f.__code__)
    kit.add(f, big, check)
    for depth in range(0, 100, 3):
        with pytest.raises(KeyboardInterrupt):
            kit.hooked(f, depth)
    assert kit.counted("hits_called") > (500,)
