"""Context managers of contextlib, by inlining."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# nullcontext:
#   f(T(2))
from contextlib import nullcontext
def f(x):
    with nullcontext(): y = x + 1
    with nullcontext(5) as n: y = y * n
    return y

# contextmanager plain:
#   f(T(2))
from contextlib import contextmanager
@contextmanager
def cm(a):
    log.append("in")
    try:
        yield a + 1
    finally:
        log.append("out")
log = []
def f(x):
    with cm(1) as k:
        y = x * k
    return y + 1

# contextmanager no try:
#   f(T(2))
import contextlib
state = [0]
@contextlib.contextmanager
def scale(v):
    old = state[0]
    state[0] = v
    yield
    state[0] = old
def f(x):
    with scale(3):
        y = x * state[0]
    return y + state[0]

# contextmanager suppresses:
#   f(T(2))
import contextlib
@contextlib.contextmanager
def sup():
    try:
        yield 1
    except ValueError:
        log.append("caught")
log = []
def f(x):
    y = x + 1
    with sup():
        y = y * 2
        raise ValueError("a")
    return y + 1

# contextmanager exception passes:
#   f(T(2))
import contextlib
@contextlib.contextmanager
def sup():
    try:
        yield 1
    finally:
        log.append("fin")
log = []
def f(x):
    y = x + 1
    try:
        with sup():
            y = y * 2
            raise ValueError("a")
    except ValueError:
        y = y - 1
    return y + 1

# contextmanager as decorator:
#   f(T(2))
import contextlib
log = []
@contextlib.contextmanager
def cm():
    log.append(1)
    yield
    log.append(2)
@cm()
def g(x): return x * 2
def f(x):
    return g(x) + 1

# suppress:
#   f(T(2), {})
#   f(T(2), {"k": 3})
from contextlib import suppress
def f(x, d):
    y = x + 1
    with suppress(KeyError):
        y = y * d["k"]
    return y * 2

# closing:
#   f(T(2))
from contextlib import closing
class C:
    def __init__(self): self.open = True
    def close(self): self.open = False
def f(x):
    with closing(C()) as c:
        y = x + c.open
    return y, c.open
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
