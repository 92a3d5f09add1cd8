"""Iterators advance with what they walk over, also when it changes meanwhile."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# a list grows while it is walked:
#   f(T(3))
def f(x):
    l = [x, x + 1]
    out = 0
    for v in l:
        out = out + v
        if len(l) < 5:
            l.append(v * 2)
    return out, l

# the same under enumerate:
#   f(T(3))
def f(x):
    l = [x, x + 1]
    out = 0
    for i, v in enumerate(l):
        out = out + v * i
        if len(l) < 5:
            l.append(v * 2)
    return out, l

# the same under zip:
#   f(T(3))
def f(x):
    l = [x, x + 1]
    m = [x * 2, x, x, x]
    out = 0
    for a, b in zip(l, m):
        out = out + a * b
        if len(l) < 5:
            l.append(b * 2)
    return out, l

# a list shrinks under reversed:
#   f(T(3))
def f(x):
    l = [x, x + 1, x + 2]
    out = 0
    for a in reversed(l):
        out = out + a
        if len(l) > 1:
            l.pop(0)
    return out, l

# enumerate with a start:
#   f(T(3), 2)
#   f(T(3), 5)
def f(x, n):
    out = []
    for i, v in enumerate([x, x + 1], n):
        out.append(v * i)
    return out

# enumerate with a tensor as start:
#   f(T(3), torch.tensor(2))
def f(x, n):
    out = []
    for i, v in enumerate([x, x + 1], n):
        out.append(v * i)
    return out

# map:
#   f(T(1))
def f(x):
    return list(map(lambda v: x + v, [1, 2]))

# map, filter, sorted, next, zip, dict of zip:
#   f(T(1))
def f(x):
    a = list(map(lambda v, w: v * w + x, [1, 2, 3], (4, 5)))
    b = list(filter(None, [0, 1, "", 2]))
    c = list(filter(lambda v: v > 1, range(4)))
    d = sorted([3, 1, 2], key=lambda v: -v)
    e = sorted(["b", "A"], key=str.lower, reverse=True)
    g = next(iter([]), 5)
    h = list(zip(*[(1, 2), (3, 4)]))
    i = dict(zip("ab", [1, 2]))
    return a, b, c, d, e, g, h, i, tuple(enumerate("ab", 1)), list(reversed(range(3))), list(zip())

# iterators that are returned half used:
#   [list(i) for i in f(T(1))]
def f(x):
    l = [1, 2, 3]
    e = enumerate(l, 5)
    next(e)
    z = zip(l, "abc")
    next(z)
    r = reversed(l)
    next(r)
    rr = reversed((1, 2, 3))
    next(rr)
    i = iter(l)
    next(i)
    m = map(lambda v: v + x, l)
    next(m)
    q = filter(lambda v: v > 1, l)
    next(q)
    ex = iter(l)
    for _ in ex: pass
    g = iter(range(4)); next(g)
    l.append(9)
    return e, z, r, rr, i, m, q, ex, g

# a half used iterator over a list from outside that grows (plain):
#   (lambda i: (list(i), g))(f(T(1), g))
g = []
def f(x, l):
    l.extend((1, 2, 3))
    i = iter(l)
    next(i)
    y = x + 1
    l.append(y)
    return i

# an iterator over a list that was cleared (plain):
#   [list(i) for i in f(T(1))]
def f(x):
    l = [1, 2, 3]
    i = iter(l)
    r = reversed(l)
    next(i); next(i)
    y = x + 1
    l.clear()
    return i, r

# values of a dict change while it is walked:
#   f(T(1), {"a": 1, "b": 2})
def f(x, d):
    r = []
    for k, v in d.items():
        r.append(x * v)
        d["b"] = 10
    for v in d.values():
        d["b"] = 20
        r.append(x + v)
    return r, d

# a dict iterator after the dict grew, over a break (plain):
#   f(T(1), {"a": 1, "b": 2, "c": 3})
def f(x, d):
    y = x + 1
    d["q"] = 5
    it = iter(d)
    a = next(it)
    print("mid")
    b = next(it)
    return y, a, b, list(it)

# a range as argument:
#   f(T(1), range(3))
def f(x, r):
    for i in r:
        x = x + i
    return x, r, r[1], len(r), list(r)
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_iteration_sees_what_plain_python_sees(program):
    program.check()
