"""`with` blocks of `contextlib.contextmanager` with graph breaks inside: the manager is made and entered by plain Python, the block and
what follows it are captured. A generator whose death would show is left to plain Python."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PRELUDE = r"""
import contextlib, sys
from torch.nn.attention import SDPBackend, sdpa_kernel
@contextlib.contextmanager
def managed(log, name="", swallows=()):
    log.append("in" + name)
    try:
        yield len(log)
    except swallows as e:
        log.append(repr(e))
    finally:
        log.append("out" + name)
@contextlib.contextmanager
def changing(log):
    try:
        yield
    except ZeroDivisionError as e:
        raise KeyError(str(e)) from e
@contextlib.contextmanager
def twice(log):
    with managed(log, "1") as a, managed(log, "2") as b:
        yield a + b
class Manager:
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append("enter"); return self
    def __exit__(self, kind, *rest): self.log.append(str(kind))
"""
# The second comment says how many graphs there are when nothing raises (n is 2).
PROGRAMS = r"""
# one block:
#   4
def f(x, n, log):
    y = x + 1
    with managed(log) as k:
        y = y * k
        minidynamo.graph_break()
        y = y / (6 // n)
    return y - 1

# two blocks in one statement:
#   4
def f(x, n, log):
    y = x + 1
    with managed(log, "a") as k, managed(log, "b") as m:
        y = y * k * m
        minidynamo.graph_break()
        y = y / (6 // n)
    return y - 1

# between try and a manager of one's own:
#   4
def f(x, n, log):
    y = x + 1
    try:
        with Manager(log):
            with managed(log):
                y = y * 2
                minidynamo.graph_break()
                y = y / (6 // n)
    except ZeroDivisionError as e:
        log.append(str(e))
    finally:
        y = y * 3
    return y - 1

# it swallows:
#   4
def f(x, n, log):
    y = x + 1
    with managed(log, swallows=ZeroDivisionError):
        y = y * 2
        minidynamo.graph_break()
        y = y / (6 // n)
    return y - 1

# it raises another:
#   4
def f(x, n, log):
    y = x + 1
    try:
        with changing(log):
            y = y * 2
            minidynamo.graph_break()
            y = y / (6 // n)
    except KeyError as e:
        log.append((str(e), type(e.__cause__).__name__, type(e.__context__).__name__))
    return y - 1

# managers in managers:
#   4
def f(x, n, log):
    y = x + 1
    with twice(log) as k:
        y = y * k
        minidynamo.graph_break()
        y = y / (6 // n)
    return y - 1

# it is entered by what breaks the graph:
#   4
@contextlib.contextmanager
def printing(log):
    print("in")
    try:
        yield 3
    finally:
        print("out")
def f(x, n, log):
    y = x + 1
    with printing(log) as k, contextlib.ExitStack() as stack:
        y = y * k
        y = y * stack.enter_context(printing(log))
        y = y / (6 // n)
    return y - 1

# an ExitStack:
#   4
def f(x, n, log):
    y = x + 1
    with contextlib.ExitStack() as stack:
        k = stack.enter_context(managed(log, "a"))
        y = y * k
        stack.enter_context(managed(log, "b"))
        y = y * 3
        minidynamo.graph_break()
        y = y / (6 // n)
    return y - 1

# an ExitStack with three, and others:
#   5
def f(x, n, log):
    y = x + 1
    with contextlib.ExitStack() as stack:
        stack.enter_context(managed(log, "a"))
        y = y * 3
        stack.callback(log.append, "callback")
        stack.enter_context(Manager(log))
        y = y * 3
        stack.enter_context(managed(log, "b"))
        y = y * 3
        minidynamo.graph_break()
        y = y / (6 // n)
        stack.enter_context(managed(log, "c"))
        y = y * 3
    return y - 1

# the manager has a name:
#   4
def f(x, n, log):
    y = x + 1
    m = managed(log)
    with m as k:
        y = y * k
        minidynamo.graph_break()
        y = y / (6 // n)
    log.append(type(m).__name__)
    m = None
    return y - 1

# in a loop that is left:
#   4
def f(x, n, log):
    y = x + 1
    for i in range(3):
        with managed(log, str(i)):
            y = y * 2
            minidynamo.graph_break()
            y = y / (6 // n)
            if i == 0:
                break
    return y - 1

# a return inside:
#   3
def f(x, n, log):
    y = x + 1
    with managed(log):
        y = y * 2
        minidynamo.graph_break()
        return y / (6 // n)

# a handler around the block is running:
#   4
def f(x, n, log):
    y = x + 1
    try:
        raise IndexError(1)
    except IndexError:
        with managed(log):
            y = y * 2
            minidynamo.graph_break()
            log.append(sys.exc_info()[0])
            y = y / (6 // n)
    log.append(sys.exc_info()[0])
    return y - 1

# torch's own:
#   4
def f(x, n, log):
    y = x + 1
    with sdpa_kernel(SDPBackend.MATH):
        y = y * 2
        minidynamo.graph_break()
        y = y / (6 // n)
    return y - 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", programs(PROGRAMS))
def test_the_block_and_what_follows_are_captured(program):
    (graphs,) = map(int, program.calls)
    seen = check(PRELUDE + program.source, "f(T(3), 2, [])")
    assert sum(event.ops > 0 and event.where.function == "f" for event in seen.compiled) >= graphs
    assert "MD306" not in seen.skips
    check(
        PRELUDE + "def g(x, n, log):\n    return f(x, n, log), log\n" + program.source,
        *["g(T(3), 2, [])", "g(T(3), 0, [])"] * 2,
        "(lambda log: (f(T(3), 2, log), log))([])",
    )


LEFT = r"""
# entered and never left:
def f(x, log):
    y = x + 1
    m = managed(log)
    m.__enter__()
    minidynamo.graph_break()
    y = y * 2
    m = None
    log.append("behind")
    return y, log

# a generator in a loop that is left:
def f(x, log):
    def items():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")
    y = x + 1
    for i in items():
        y = y * i
        minidynamo.graph_break()
        break
    log.append("behind")
    return y, log

# held by a manager that does not run it:
def f(x, log):
    def items():
        try:
            yield 1
        finally:
            log.append("closed")
    class Holds:
        def __init__(self): self.items = items(); next(self.items)
        def __enter__(self): return self
        def __exit__(self, *rest): log.append("exit")
    y = x + 1
    with Holds():
        y = y * 2
        minidynamo.graph_break()
        y = y * 3
    log.append("behind")
    return y, log

# an ExitStack that is emptied:
def f(x, log):
    y = x + 1
    with contextlib.ExitStack() as stack:
        stack.enter_context(managed(log))
        y = y * 2
        minidynamo.graph_break()
        kept = stack.pop_all()
    log.append("behind")
    kept.close()
    return y, log
"""


@pytest.mark.parametrize("program", programs(LEFT))
def test_a_generator_dies_where_it_dies_in_plain_python(program):
    check(PRELUDE + program.source, "f(T(3), [])", "f(T(3), [])")
