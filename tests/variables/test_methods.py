"""Bound methods stored outside of the trace."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# called, handed on, compared:
#   f(T(2), a.m)
#   f(T(2), A(4).m)
#   L.__setitem__(0, A(9).m)
#   f(T(2), a.m)
#   setattr(a, "k", 11)
#   f(T(2), a.m)
class A:
    def __init__(self, k):
        self.k = k
    def m(self, x):
        return x * self.k
    @classmethod
    def c(cls, x):
        return x + 1
a = A(3)
L = [a.m, A.c]
def f(x, m):
    return L[0](x) + L[1](x) + m(x), m.__self__ is a, m.__func__ is A.m, m, bool(m), callable(m), m.__name__

# the owner changes in the call:
#   (f(T(2)), a.n)
#   (f(T(2)), a.n)
class A:
    def __init__(self):
        self.n = 0
    def step(self, x):
        self.n += 1
        return x * self.n
a = A()
L = [a.step]
def f(x):
    return L[0](x) + L[0](x)

# another function of the same owner:
#   f(T(2))
#   L.__setitem__(0, a.q)
#   f(T(2))
class A:
    def p(self, x):
        return x + 1
    def q(self, x):
        return x - 1
a = A()
L = [a.p]
def f(x):
    return L[0](x)

# around a builtin, and around a function with attributes:
#   f(T(2))
import types
def g(self, x):
    return x + len(self)
g.note = 5
L = [types.MethodType(len, "abc"), types.MethodType(g, "abc")]
def f(x):
    y = x + L[0]()
    return L[1](y), L[1].note

# one object twice:
#   f(T(2), M, M)
#   f(T(2), M, a.m)
class A:
    def m(self, x):
        return x + 1
a = A()
M = a.m
def f(x, m, n):
    return m(n(x)), m is n
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_methods_behave_as_in_plain_python(program):
    program.check()
