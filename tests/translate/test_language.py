"""Statements and expressions of the captured language."""

from __future__ import annotations

import pytest

from minidynamo import config
from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# keyword-only arguments:
#   f(T(1), b=2)
#   f(T(1), b=2, c=T(1))
def f(x, *, b, c=None):
    if c is None:
        return x + b
    return x + b + c

# any number of arguments:
#   f(T(1), T(1), 3)
#   f(T(1))
def f(x, *args):
    for a in args:
        x = x + a
    return x

# any keywords:
#   f(T(1), a=T(1), b=3)
#   f(T(1))
def f(x, **kw):
    for k in kw:
        x = x + kw[k]
    return x, kw

# arguments and keywords are passed on:
#   f(T(1), 1, 2, k=3, j=4)
def g(*a, **k): return a, k
def f(x, *args, **kwargs):
    y = x + args[0] + kwargs["k"]
    a, k = g(y, *args, z=1, **kwargs)
    kwargs["new"] = 1
    return a, k, kwargs, g(**{"q": 1}), dict(kwargs, w=2), {**kwargs, "v": 1}, [*args]

# calls with a star:
#   f(T(3), (1, 2))
def g(a, b, c=0, *d):
    return a + b + c, d
def f(x, t):
    return g(x, *t), g(*[x, 1, 2, 3, 4])

# calls with keywords and two stars:
#   f(T(3))
def g(a, b=1, *, c=2, **k):
    return a * b + c
def f(x):
    return g(x, c=3), g(a=x, b=2), g(x, **{"b": 4})

# all arguments are handed on:
#   f(T(1), 2, k=3)
def g(x, *a, **k): return x + a[0] + k["k"]
def f(*args, **kwargs): return g(*args, **kwargs)

# positional-only parameters:
#   f(T(1), 2)
def g(a, b, /, c=1, *, d=2): return a + b + c + d
def f(x, n): return g(x, n), g(x, n, 3), g(x, n, c=4, d=5)

# comprehensions of every kind:
#   f(T(3))
def f(x):
    return [x + i for i in range(3) if i != 1], {i: x for i in range(2)}, {i for i in range(2)}, sum(x * i for i in range(3))

# comprehensions in comprehensions:
#   f(T(1))
def f(x):
    return [[x + i * j for j in range(i)] for i in range(3)], [a for a in [[x]] for a in a]

# and, or, conditional expressions:
#   f(T(1), None)
#   f(T(1), T(1))
def f(x, y):
    z = x + 1
    return z + (1 if y is None else y), (y is not None) and z

# chained comparisons:
#   f(T(1), 2)
def f(x, n):
    if 0 < n < 5:
        return x + n
    return x

# unpacking:
#   f((T(1), (T(2), 3)))
def f(t):
    a, (b, c) = t
    d, *e = [a, b, c]
    return a + c, b, d, e

# tensors are unpacked and walked:
#   f(T(2, 3))
def f(x):
    a, b = x
    return a + b, [r * 2 for r in x]

# a star on the left:
#   f(T(4))
def f(x):
    a, *b, c = x
    return a + c, b

# names are swapped:
#   f(T(1), T(2))
def f(a, b):
    a, b = b, a
    a, b = b + 1, a
    return a, b

# assignment expressions:
#   f(T(1))
def f(x):
    if (n := 3) > 2:
        x = x + n
    return x, n

# loops with else:
#   f(T(1), 3)
#   f(T(1), 0)
def f(x, n):
    for i in range(n):
        if i == 2: break
        x = x + 1
    else:
        x = x * 10
    return x

# while loops:
#   f(T(1), 3)
def f(x, n):
    while n > 0:
        x = x + n
        n -= 1
        if n == 1: continue
        x = x * 2
    return x, n

# loops in loops:
#   f(T(1))
def f(x):
    for i in range(3):
        for j in range(i):
            if (i + j) % 2: continue
            x = x + i * j
    return x

# match statements:
#   f(T(1), (1, 2))
#   f(T(1), [1, 2, 3])
#   f(T(1), {"a": 3, "b": 4})
#   f(T(1), "s")
#   f(T(1), P(1))
#   f(T(1), 7)
class P:
    __match_args__ = ("a",)
    def __init__(self, a): self.a = a
def f(x, v):
    match v:
        case (a, b):
            return x + a + b
        case [a, *rest]:
            return x + len(rest)
        case {"a": a, **kw}:
            return x * a + len(kw)
        case str():
            return x - 1
        case P(a):
            return x + a
        case 7 | 8:
            return x * 7
    return x

# subscripts:
#   f(T(4, 4), 1)
def f(x, n):
    return x[n:], x[:, n], x[..., None], x[n:3, ::2], x[[0, 1]], x[x > 3]

# writes through views:
#   (lambda t: (f(t), t))(T(4))
def f(x):
    y = x[:2]
    y += 1
    z = x.view(2, 2)
    z[0] = 7
    return y, z, x

# stars in displays:
#   f(T(1), [1, 2])
def f(x, l):
    y = x + 1
    return [y, *l, *(3, 4)], (*l, x)

# nothing is returned:
#   f(T(1))
def f(x):
    x + 1

# arguments are returned:
#   (lambda t: f(t, [t]))(T(1))
def f(x, l):
    return x, l, l[0], x + 1, (x, l)

# constants are returned:
#   f(T(1))
def f(x):
    return x + 1, (1, (2, 3)), [1, [2]], "s", 1.5, None, ..., b"q", slice(1, 2)

# calls in calls:
#   f(T(1))
def g0(x): return x + 1
def g1(x): return g0(x) * 2
def g2(x): return g1(x) + g0(x)
def g3(x): return g2(x) + g1(x)
def f(x): return g3(g3(x))

# imports inside a function:
#   f(T(1))
def f(x):
    import math
    from math import pi
    return x + math.e + pi

# super in a method:
#   f(B(), T(1))
class A:
    def m(self, x): return x + 1
class B(A):
    def m(self, x): return super().m(x) * 2
def f(b, x):
    y = x + 1
    return b.m(y)

# static and class methods:
#   f(T(1), o)
class C:
    k = 4
    @staticmethod
    def s(x): return x + 1
    @classmethod
    def c(cls, x): return x * cls.k
    @classmethod
    def make(cls): return cls()
o = C()
def f(x, o):
    return o.s(x), o.c(x), C.s(x), C.c(x), C.make().c(x), C.k

# an optimized function inside:
#   f(T(1))
@minidynamo.optimize("eager")
def g(x): return x * 2
def f(x):
    return g(x) + 1

# a disabled function inside:
#   f(T(1))
@minidynamo.disable
def g(x): return x * 2
def f(x):
    return g(x) + 1

# an async function (plain):
#   f(T(1)).send(None)
async def f(x):
    return x + 1

# a generator function (plain):
#   [t for t in f(T(1))]
def f(x):
    yield x + 1
    yield x + 2

# an argument with a reserved name (plain):
#   f(T(1), 2)
def f(x, ___v0):
    return x + ___v0

# a variable with a reserved name (plain):
#   f(T(1))
def f(x):
    ___v0 = x + 1
    ___graph = ___v0 * 2
    print("a")
    ___result0 = ___graph
    print(___v0)
    return ___result0 + ___v0

# a variable named like a stack slot (plain):
#   f(T(1))
def f(x):
    ___stack0 = x + 1
    print("a", print("b"))
    return ___stack0
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_language_means_what_it_means_in_plain_python(program):
    program.check()


def test_recursion_without_end_raises_what_plain_python_raises():
    """With one guard check only: the second one, in Python, needs more of the stack than is left."""
    with config.patch(guards="text"):
        check("def f(x):\n    return f(x + 1)\n", "f(T(1))", warns=True)
