"""Sets, dicts, lists and strings, down to their order."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# the order of sets:
#   f(T(1))
def f(x):
    s = {"b", "a", "c", "zz", 8, 0, 16, -1}
    r = [v for v in s]
    t = {8, 0}
    u = {0, 8}
    return x + 1, r, list(t), list(u), tuple(s), list({1, 2} | {8, 0, 16}), list({8, 0, 16} - {8}), list(s & {8, 0, 16})

# sets from outside that are equal and in another order:
#   f(T(1), {0, 8})
#   f(T(1), {8, 0})
#   f(T(1), mk())
def mk():
    s = set(range(50))
    for i in range(45): s.discard(i)
    s.add(8); s.add(0)
    for i in range(45, 50): s.discard(i)
    return s
def f(x, s):
    r = x
    l = []
    for v in s:
        r = r * 2 + v
        l.append(v)
    return r, l, list(s), s.copy()

# pop of a set:
#   f(T(1), {"a", "b", "c"})
def f(x, s):
    y = x + 1
    a = s.pop()
    return y, a, s

# a set made here lives on after a break:
#   f(T(1))
def f(x):
    s = set()
    for i in range(5): s.add(i * 8)
    s.discard(8)
    s.add(3)
    y = x
    for v in s: y = y * 2 + v
    print("brk")
    return y, list(s), s

# a set that grows while it is walked (plain):
#   f(T(1), {1, 2, 3})
def f(x, s):
    y = x
    for v in s:
        s.add(v + 10)
    return y

# frozensets:
#   f(T(1), frozenset({8, 0}))
#   f(T(1), frozenset({0, 8}))
def f(x, s):
    return x * 2 + list(s)[0], [v for v in s]

# views and unions of dicts:
#   f(T(1))
def f(x):
    s = {1: 2}.keys() | {5, 3}
    d = {"a": 1, "b": 2}
    e = {"b": 3, "c": 4}
    return x + 1, sorted(s), sorted(d.keys() & e.keys()), d.items() & e.items(), d | e, d == {"b": 2, "a": 1}, list(d | e)

# equal keys keep the first object:
#   f(T(1), 1, True, 1.0)
def f(x, a, b, c):
    s = {a, b, c}
    d = {a: "int", b: "bool"}
    d[c] = "float"
    return x + 1, list(s), list(d.items()), type(list(s)[0]), {c: 1}, {b, a}

# dicts in dicts:
#   f(T(1), {"a": {"b": [1]}})
#   f(T(1), {"a": {"b": [1, 2]}})
#   f(T(1), {"a": {"c": [1]}})
def f(x, d):
    if "b" in d["a"]:
        return x + len(d["a"]["b"])
    return x

# a dict as keywords:
#   f(T(1), d)
#   d.__setitem__("j", 5) or f(T(1), d)
d = {"k": 2}
def g(x, **kw): return x * kw["k"] + len(kw)
def f(x, d): return g(x, **d)

# keys of a subclass of str:
#   f(T(1), {S("a"): 1})
class S(str): pass
def f(x, d):
    y = x + 1
    return y, d["a"], "a" in d, list(d)[0]

# keys of every kind:
#   f(T(1), {(1, 2): 3, None: 4, 1.5: 5, b"x": 6, torch.float32: 7, int: 8})
def f(x, d):
    return x + d[(1, 2)] + d[None], d[1.5], d[b"x"], d[torch.float32], d[int], len(d)

# a tensor as key:
#   f(T(1), {})
def f(x, d):
    y = x + 1
    d[y] = 1
    return d[y], y in d, len(d)

# objects as keys:
#   f(T(1), {o: 1})
#   f(T(1), {O(): 1, o: 2})
class O: pass
o = O()
def f(x, d):
    return x + d[o], o in d, [k is o for k in d]

# getattr with a name as argument:
#   f(T(1), "a")
#   f(T(1), "b")
class C: a = 1; b = 2
c = C()
def f(x, n):
    return x + getattr(c, n) + getattr(C, n)

# minus of a string:
#   f(T(1), "a")
def f(x, s):
    y = x + 1
    return -s

# methods of numbers and strings:
#   f(T(1), 5)
def f(x, n):
    a = (2.5).is_integer(), n.to_bytes(2, "big"), "ab".encode(), b"ab".decode(), "a-b".partition("-")
    return x + n.bit_length(), a, "%.2f" % 1.234, "x".join(map(str, range(3))), n.__add__(3), n.real, (1 + 2j).imag

# assignment to slices:
#   (lambda l: (f(T(1), l), l))([1, 2, 3, 4])
def f(x, l):
    l[1:3] = [9]
    l[::2] = [7, 7]
    m = [1, 2, 3]
    m[1:] = (5, 6, 7)
    del m[0:2]
    del l[0]
    return x + 1, m

# comparison of lists:
#   f(T(1), [1, [2, 3]])
def f(x, l):
    return x + 1, l == [1, [2, 3]], l != [1], l < [2], [x] == 5, (1, 2) < (1, 3), [1] + l, l * 2, l[-1] is l[1], 2 in l[1]

# assignment out of range:
#   f(T(1), [1])
def f(x, l):
    y = x + 1
    l[5] = 3
    return y

# pop of an empty list:
#   f(T(1), [])
def f(x, l):
    y = x + 1
    l.append(1)
    l.pop()
    l.pop()
    return y

# remove of what is not there:
#   f(T(1), [1])
def f(x, l):
    y = x + 1
    l.remove(7)
    return y

# deletion of a key twice:
#   f(T(1), {})
def f(x, d):
    y = x + 1
    d["q"] = 1
    del d["q"]
    del d["q"]
    return y

# a global list grows in inlined calls:
#   f(T(1))
#   f(T(1))
acc = []
def push(v):
    acc.append(v)
    return len(acc)
def f(x):
    a = push(1)
    b = push(2)
    return x * a + b, acc[-1]

# nested unpacking:
#   f(T(1), [3, 4])
def f(x, l):
    a, (b, *c), d = 1, [2, *l], x
    (e, f_), g = (a, b), c
    return d + a, b, c, e, f_, g

# augmented assignment to items:
#   f(T(1), [1, 2], {"a": 1})
#   f(T(1), [1, 2], {"a": T(2)})
def f(x, l, d):
    l[0] += 5
    l[1] *= x
    d["a"] += 1
    i = 0
    l[i] -= 1
    return x + l[0], d["a"], l

# conditional expressions in a row:
#   f(T(1), 3)
def f(x, n):
    return x + (1 if n < 0 else 2 if n < 2 else 3 if n else 4)

# and, or, not:
#   f(T(1), 0, [], "a", None)
def f(x, a, b, c, d):
    return x + 1, a or b, a and b, b or c, c and d, not (a or c), (a or b or d), (c and (b or 5))

# any and all:
#   f(T(1), [1, 0])
def f(x, l):
    return x + 1, any(l), all(l), any([]), all([]), any(v > 0 for v in l), all(isinstance(v, int) for v in l)

# min and max:
#   f(T(1), [3, 1, 2])
def f(x, l):
    a = min(l), max(l, key=lambda v: -v), max(*l), min(l, default=5), max([], default=x)
    return x + max(l), a, sum(l), sorted(l, reverse=True), max("ab", "b")

# zip that is strict:
#   f(T(1), [1, 2], (3, 4))
#   f(T(1), [1, 2], (3,))
def f(x, a, b):
    y = x + 1
    return y, [p for p in zip(a, b, strict=True)]

# a string is walked:
#   f(T(1), "abc")
def f(x, s):
    r = x
    for i, c in enumerate(s): r = r + i * ord(c)
    return r, [c for c in s], list(reversed(s)), s[::-1], tuple(s)

# ranges:
#   f(T(1), 4)
def f(x, n):
    r = range(1, n)
    return x + len(r), r[0], r[-1], r[1:], 2 in r, r == range(1, 4), list(r)[::-1], r.start, r.index(2), sum(r), r.step

# in-place operators with a tensor on the right:
#   f(2, T(1), [1], 1.5)
#   (lambda t: (f(t, T(1), [1], 1.5), t))(T(1))
def f(a, x, l, c):
    a += x
    b = c
    b -= x
    b **= 2
    b @= x
    e = True
    e &= x > 0
    return a, b, e

# a list plus a tensor in place:
#   f(T(2), [1, 2])
def f(x, l):
    y = x * 1
    l += x
    return y, l

# a string formats a tensor in place:
#   f(T(2), "a%s")
def f(x, s):
    y = x * 1
    s %= y
    return y, s

# in-place operators of integers:
#   f(T(2).long(), 3)
def f(x, n):
    n <<= x
    n |= 1
    m = 7
    m //= x
    k = 7
    k %= x
    return n, m, k
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_containers_behave_as_in_plain_python(program):
    program.check()
