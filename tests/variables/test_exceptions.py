"""Exceptions made, raised and looked at in the trace."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# user exception class:
#   f(T(2), 1)
#   f(T(2), 0)
class E(Exception):
    def __init__(self, code, what):
        super().__init__(code)
        self.code = code
        self.what = what
    @property
    def double(self): return self.code * 2
def g(n):
    if n: raise E(7, "x")
    return 1
def f(x, n):
    y = x + 1
    try:
        return y * g(n)
    except E as e:
        return y * e.code + e.double

# exception from:
#   f(T(2), {})
def f(x, d):
    y = x + 1
    try:
        try:
            d["a"]
        except KeyError as e:
            raise ValueError("bad") from e
    except ValueError as v:
        return y * 2, type(v.__cause__).__name__, v.__cause__.args, v.__suppress_context__
    return y

# exception context:
#   f(T(2), {})
def f(x, d):
    y = x + 1
    try:
        try:
            d["a"]
        except KeyError as e:
            raise ValueError("bad")
    except ValueError as v:
        return y * 2, type(v.__context__).__name__, v.__cause__ is None
    return y

# exception notes:
#   f(T(2))
def f(x):
    y = x + 1
    try:
        raise ValueError("bad")
    except ValueError as v:
        v.add_note("hello")
        return y * 2, v.__notes__
    return y

# exception value kept:
#   f(T(2))
def f(x):
    y = x + 1
    e = ValueError("bad", 3)
    return y * 2, e.args, e

# exception raised kept:
#   f(T(2))
def f(x):
    y = x + 1
    err = None
    try:
        raise ValueError("bad", 3)
    except ValueError as e:
        err = e
    return y * 2, err.args
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
