"""Unpacking."""

# What the linter would rather not see is what these functions are for.
from __future__ import annotations

from tests.pycode.cases.support import Box, case


@case(((1, 2),), ((1, 2, 3),), ((1,),), (5,))
def unpack(pair):
    a, b = pair
    return b, a


@case(([1, 2, 3, 4],), ([1, 2],), ([1],))
def unpack_star(items):
    a, *b, c = items
    (d, *e), f = [items, a]
    return a, b, c, d, e, f


@case((1, 2))
def swaps(x, y):
    x, y = y, x
    x, y, z = y, x, x + y
    a = b = c = z
    return x, y, a, b, c


@case(({"a": 1, "b": 2},))
def loop_unpack(d):
    out = []
    for key, value in d.items():
        out.append((value, key))
    for i, (key, _) in enumerate(d.items()):
        out.append((i, key))
    return out


@case(({1: 2, 3: 4},))
def unpack_mapping(d):
    a, b = d
    (c, d1), (e, f) = d.items()
    return a, b, c, d1, e, f


@case(("abc",), ("ab",), ("abcd",))
def unpack_string(s):
    a, b, c = s
    return c + b + a


@case((3,))
def unpack_generator(n):
    a, *b = (i * i for i in range(n))
    *c, d = iter([1])
    return a, b, c, d


@case(([1, [2, [3, 4]]],))
def unpack_nested(v):
    a, (b, (c, d)) = v
    [e, [f, *g]] = v
    return a, b, c, d, e, f, g


@case(([0, 0, 0],))
def unpack_into_items(v):
    v[0], v[1], *v[1:] = 1, 2, 3, 4
    box = Box()
    box.a, (box.b, v[0]) = 5, (6, 7)
    return v, vars(box)


@case((1,))
def unpack_order(x):
    i = 0
    v = [10, 20, 30]
    i, v[i] = 2, x
    return i, v


@case((4,))
def unpack_in_for(n):
    out = []
    for i, (a, *b) in enumerate([(1, 2, 3), (4,), "xyz"]):
        out.append((i, a, b))
    for out[0] in range(n):
        pass
    return out


@case((1, 2, 3, 4))
def rotations(a, b, c, d):
    a, b = b, a
    b, c, d = d, b, c
    a, b, c, d = d, c, b, a
    return a, b, c, d


@case(((1, 2), 3))
def chained_targets(x, y):
    (a, b) = c = x
    d = e, f = [a, y]
    return a, b, c, d, e, f
