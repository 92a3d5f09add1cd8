"""Classes: attributes, metaclasses, super, making instances, changed bases."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# cached_property:
#   f(T(2), A())
import functools
class A:
    @functools.cached_property
    def p(self): return 5
def f(x, a):
    y = x * a.p + a.p
    b = A()
    return y + b.p

# partialmethod:
#   f(T(2))
import functools
class A:
    def m(self, a, b): return a * b
    d = functools.partialmethod(m, 2)
def f(x):
    return A().d(x)

# super forms:
#   f(T(2))
class A:
    def __init__(self, a): self.a = a
    def m(self, x): return x + self.a
    @classmethod
    def c(cls): return cls.k
    @property
    def p(self): return 4
    k = 2
class B(A):
    def __init__(self, a): super(B, self).__init__(a)
    def m(self, x): return super().m(x) * 2 + super().p + super().k
    @classmethod
    def c(cls): return super().c() + 1
def f(x):
    b = B(3)
    return b.m(x) + B.c()

# slots and setters:
#   f(T(2), A())
class A:
    __slots__ = ("x", "_y")
    def __init__(self): self.x = 1; self._y = 2
    @property
    def y(self): return self._y
    @y.setter
    def y(self, v): self._y = v * 2
    @y.deleter
    def y(self): self._y = 0
def f(x, a):
    a.x += 1
    a.y = 5
    z = x * a.x + a.y
    del a.y
    b = A()
    b.y = 4
    return z + b.y + a._y, b

# type(x)(...):
#   f(T(2), P(2))
class P:
    def __init__(self, a): self.a = a
def f(x, p):
    q = type(p)(5)
    r = p.__class__(6)
    return x * q.a + r.a + type(3)(4), type(q) is P, type(p).__name__, P.__name__, p.__class__.__name__

# metaclass attribute:
#   f(T(2))
class M(type):
    k = 3
    def mm(cls, v): return v * cls.q
    @property
    def prop(cls): return 8
class A(metaclass=M):
    q = 2
def f(x):
    return A.mm(x) + A.k + A().q + A.prop

# what the metaclass has, and the class gets later:
#   f(T(2))
#   (setattr(M, "k", 4), f(T(2)))
#   (setattr(A, "k", 8), f(T(2)))
#   (setattr(A, "mm", lambda v: v + 100), f(T(2)))
#   (setattr(M, "prop", 50), f(T(2)))
#   (setattr(A, "prop", 60), f(T(2)))
#   (delattr(A, "mm"), f(T(2)))
class M(type):
    k = 3
    def mm(cls, v): return v * 2
    @property
    def prop(cls): return 8
class A(metaclass=M):
    q = 2
def f(x):
    return A.mm(x) + A.k + A.prop

# dataclass:
#   f(T(2), D(1))
import dataclasses
from dataclasses import dataclass, field
@dataclass
class D:
    a: int
    b: list = field(default_factory=list)
    c: int = 3
    def __post_init__(self): self.z = self.a + self.c
@dataclass(frozen=True)
class Fr:
    a: int
    b: int = 2
@dataclass(slots=True)
class S:
    a: object
    b: int = 2
def f(x, d):
    e = D(4)
    e.b.append(5)
    y = x * e.z + e.b[0] + d.z
    fr = Fr(1)
    s = S(y)
    s.a = s.a + 1
    return s.a * fr.b, s, fr, e, fr == Fr(1)

# typing cast:
#   f(T(2))
import typing
def f(x):
    y = typing.cast(int, 3)
    z: typing.List[int] = [1]
    return x * y + z[0]

# bases reassigned:
#   (f(T(2), C()), setattr(C, "__bases__", (B,)), f(T(2), C()))
class A:
    def m(self): return 1
class B:
    def m(self): return 2
class C(A): pass
def f(x, c): return x * c.m()

# bases reassigned new object:
#   (f(T(2)), setattr(C, "__bases__", (B,)), f(T(2)))
class A:
    def m(self): return 1
class B:
    def m(self): return 2
class C(A): pass
def f(x): return x * C().m()

# bases reassigned isinstance:
#   (f(T(2), C()), setattr(C, "__bases__", (B,)), f(T(2), C()))
class A:
    pass
class B:
    pass
class C(A): pass
def f(x, c): return x * 2 if isinstance(c, A) else x * 3

# bases reassigned super:
#   (f(T(2), C()), setattr(C, "__bases__", (B,)), f(T(2), C()))
class A:
    def m(self): return 1
class B:
    def m(self): return 2
class C(A):
    def m(self): return super().m() + 5
def f(x, c): return x * c.m()

# bases reassigned class attr:
#   (f(T(2)), setattr(C, "__bases__", (B,)), f(T(2)))
class A:
    k = 1
class B:
    k = 2
class C(A): pass
def f(x): return x * C.k

# bases reassigned above:
#   (f(T(2), C()), setattr(A, "__bases__", (B,)), f(T(2), C()))
class Z:
    k = 1
class B:
    k = 2
class A(Z): pass
class C(A): pass
def f(x, c): return x * C.k + c.k

# bases reassigned absent:
#   (f(T(2), C()), setattr(C, "__bases__", (B,)), f(T(2), C()))
class A: pass
class B:
    def __len__(self): return 0
class C(A): pass
def f(x, c): return x * 2 if c else x * 3

# class method replaced after:
#   (f(T(2), C()), setattr(C, "m", lambda self: 9), f(T(2), C()))
class C:
    def m(self): return 1
def f(x, c): return x * c.m()
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
