"""Hooks that classes of the program define."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# abstract classes that say yes:
#   f(T(2), P(), [1])
import abc, collections.abc, numbers
class Base(abc.ABC):
    @abc.abstractmethod
    def m(self): pass
class P(Base, collections.abc.Sized):
    def m(self): return 2
    def __len__(self): return 3
def f(x, p, l):
    if isinstance(p, Base): x = x * p.m()
    if isinstance(p, collections.abc.Sized): x = x + len(p)
    if isinstance(l, collections.abc.Sequence) and isinstance(3, numbers.Number): x = x + 1
    return x, P().m()

# instance checks of a metaclass, unions, subclasses:
#   f(T(2))
class M(type):
    def __instancecheck__(cls, o): return o == 3
class Q(metaclass=M): pass
class K: pass
class L(K): pass
def f(x):
    if isinstance(3, Q) and not isinstance(4, Q): x = x + 7
    if isinstance(3, int | str): x = x + 9
    if issubclass(bool, int) and issubclass(L, (str, K)) and not issubclass(K, L): x = x + 10
    return x

# descriptors of the program:
#   f(T(2), A())
class Desc:
    def __set_name__(self, o, n): self.n = "_" + n
    def __get__(self, o, t=None): return getattr(o, self.n, 3)
    def __set__(self, o, v): setattr(o, self.n, v * 2)
    def __delete__(self, o): delattr(o, self.n)
class ND:
    def __get__(self, o, t=None): return 11
class A:
    d = Desc()
    e = ND()
def f(x, a):
    y = x * a.d + a.e
    a.d = 7
    b = A()
    b.d = 9
    y = y + a.d + b.d
    del a.d
    return y + a.d + A.e

# attribute hooks of the program:
#   f(T(2), A(), C())
class A:
    def __getattr__(self, n): return len(n)
class C:
    def __setattr__(self, n, v): object.__setattr__(self, n, v + 1)
    def __delattr__(self, n): object.__delattr__(self, n); object.__setattr__(self, "gone", n)
class D:
    def __setattr__(self, n, v): super().__setattr__(n, v + 1)
def f(x, a, c):
    c.k = 3
    c.j = 3
    del c.j
    d = D()
    d.k = 4
    return x * a.foo + c.k + d.k, c.gone, d

# __new__ of the program:
#   f(T(2))
class A:
    def __new__(cls, v):
        s = super().__new__(cls)
        s.w = v
        return s
    def __init__(self, v): self.v = v
class B:
    def __new__(cls): return A(4)
def f(x):
    a = A(3)
    return x * a.v + a.w + B().v, a
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
