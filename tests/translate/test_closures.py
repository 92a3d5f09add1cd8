"""Functions made in the frame: their cells, defaults and identity."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# a function that is returned reads the frame's variable:
#   f(T(1))()
#   f(T(2))()
def f(x):
    y = x + 1
    def g(): return y
    return g

# cells that hold containers, shared by two functions:
#   f(T(1))
def f(x):
    y = x + 1
    z = [y]
    def g(): return y, z
    def h(): return z
    return g, h, z

# a cell variable changes after a graph break:
#   f(T(1))
def f(x):
    y = x + 1
    def g(): return y
    print("a")
    y = y + 1
    return g() + y, g

# a counter in a cell:
#   f(T(1))
def f(x):
    n = 0
    def g(v):
        nonlocal n
        n = n + 1
        return v + n
    a = g(x)
    b = g(a)
    return a, b, n

# closures in closures:
#   f(T(1))
def f(x):
    a = x + 1
    def g():
        b = a * 2
        def h():
            return a + b
        return h
    return g()()

# a counter goes on counting after the frame has returned:
#   (lambda h: (h(), h()))(f(T(1)))
def f(x):
    n = [x]
    k = 0
    def h():
        nonlocal k
        k += 1
        n.append(x + k)
        return n, k
    h()
    return h

# a local function that calls itself:
#   f(T(1), 4)
def f(x, n):
    def fact(m):
        return x if m == 0 else fact(m - 1) * m
    return fact(n)

# functions that call each other:
#   f(T(1), 4)
def even(x, n): return x if n == 0 else odd(x + 1, n - 1)
def odd(x, n): return x if n == 0 else even(x * 2, n - 1)
def f(x, n): return even(x, n)

# lambdas made in a loop:
#   f(T(1))
def f(x):
    fs = [lambda v, i=i: v + i for i in range(3)]
    gs = [lambda v: v + i for i in range(3)]
    return [g(x) for g in fs], [g(x) for g in gs]

# lambdas that are returned:
#   [g(T(1)) for g in f(T(1))]
def f(x):
    y = x + 1
    return [lambda v: v + y + i for i in range(2)]

# lambdas in comprehensions, whose variable is also one of the frame:
#   [g(T(1)) for g in f(T(1))[0]]
#   f(T(1))[1](), f(T(1))[2:]
def f(x):
    i = 5
    h = lambda: i + x
    r = [lambda v: v + i for i in range(2)]
    d = {i: (lambda v: v * i) for i in range(2)}
    i = i + 1
    return r, h, i, d[1](x), [[k(j) for k in [lambda w: w + i + j for i in range(2)]] for j in range(2)]

# lambdas in comprehensions of inlined functions, and of generators:
#   f(T(1))
def made(y):
    return [lambda v: v + y + i for i in range(2)]
def each(y):
    for g in [lambda: y + i for i in range(3)]: yield g
def f(x):
    return [g(x) for g in made(x + 1)], [g() for g in each(x)]

# graph breaks before and behind lambdas in comprehensions:
#   f(T(1), 2)
def f(x, n):
    x = x + n
    print("before")
    r = [lambda v: v + x + i for i in range(n)]
    a = [g(x) for g in r]
    print("behind")
    i = [g(x) for g in r]
    x = x * 2
    return a, i, [g(x) for g in r], [g(x) for g in [lambda v: v + n + i for i in range(2)]]

# an exception in a comprehension whose variable is captured:
#   f(T(1), [1, 2, 0, 3])
def f(x, l):
    i = x
    try:
        r = [(lambda: i, 6 // i) for i in l]
    except ZeroDivisionError:
        return i * 2
    return r

# graph breaks in a comprehension whose variable is captured (plain):
#   [g(T(1)) for g in f(T(1), 2)]
def f(x, n):
    y = x + 1
    return [(print(i), lambda v: v + y + i)[1] for i in range(n)]

# arguments that live in cells, with graph breaks:
#   f(T(1), 2)
def f(x, n):
    def g(): return x * n
    print(n)
    n = n + 1
    x = x + 1
    r = g()
    print(r)
    n = 10
    return g, g()

# a cell variable is deleted:
#   f(T(1))
def f(x):
    y = x + 1
    def g(): return y
    r = g()
    del y
    return r, x

# keyword defaults and annotations:
#   f(T(3))
def f(x):
    def g(v, *, k=2, j: int = 3) -> int:
        return v * k + j
    return g(x), g(x, k=5)

# annotations of a function that is returned:
#   f(T(1))
#   f(T(1))[1].__annotations__
def f(x):
    def g(v: int, w: "str" = 2) -> float:
        return v * w
    return g(x), g

# lambdas with defaults:
#   f(T(3))
def f(x):
    g = lambda v, k=2: v * k
    return g(x) + g(x, 3) + g(v=x)

# a comprehension over a local variable:
#   f(T(3))
def f(x):
    n = 2
    l = [x * n + i for i in range(3)]
    n = 3
    return l, n

# a function of another module:
#   f(T(1))
#   f(T(1))
import types
ns = {"k": 3}
exec("def h(x): return x + k", ns)
h = ns["h"]
def f(x):
    return h(x)

# a function behind a decorator:
#   f(T(1))
import functools
def d(fn):
    @functools.wraps(fn)
    def w(*a, **k):
        return fn(*a, **k) + 1
    return w
@d
def f(x):
    return x * 2

# a class made in the frame:
#   f(T(1))
def f(x):
    y = x + 1
    class Q:
        k = 2
    return y * Q.k

# a class with methods made in the frame:
#   f(T(1))
def f(x):
    y = x + 1
    class Q:
        k = 2
        def m(self, v): return v * self.k
    return Q().m(y)
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_closures_behave_as_in_plain_python(program):
    program.check()
