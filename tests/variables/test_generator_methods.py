"""send, throw and close of generators; yield from."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# yield from:
#   f(T(2))
def g(n):
    yield 1
    r = yield from h(n)
    yield r
def h(n):
    for i in range(n): yield i
    return 10
def f(x):
    for i in g(3): x = x + i
    return x * 2

# generator send:
#   f(T(2))
def g():
    t = 0
    while True:
        v = yield t
        if v is None: return t
        t += v
def f(x):
    it = g()
    next(it)
    x = x + it.send(3)
    x = x + it.send(4)
    try:
        it.send(None)
    except StopIteration as e:
        x = x * e.value
    return x

# generator close:
#   f(T(2))
log = []
def g():
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")
def f(x):
    it = g()
    x = x + next(it)
    it.close()
    it.close()
    return x * len(log)

# yield from with send and throw:
#   f(T(2))
def h():
    try:
        v = yield 1
        v = yield v + 1
    except ValueError:
        return 100
    return v
def g():
    r = yield from h()
    yield r
def f(x):
    it = g()
    a = next(it); b = it.send(5); c = it.throw(ValueError)
    return x * a + b + c

# yield from list:
#   f(T(2))
def g():
    yield from [1, 2, 3]
    yield from (x * x for x in range(3))
def f(x):
    for i in g(): x = x + i
    return x
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
