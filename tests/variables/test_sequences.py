"""Lists, tuples, torch.Size."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# torch.Size in every operation:
#   f(T(2, 3))
def f(x):
    s = x.shape + x.shape
    t = x.size() + (1,)
    u = x.shape[:1]
    return s, t, u, x.shape * 2, x.shape == (2, 3), (2, 3) + x.shape, type(u) is torch.Size, x + 1

# repetition:
#   f(T(2), 2)
def f(x, n):
    return [x] * n, (x,) * n, n * [1], [] * n, [x + 1] * -1

# equality of sequences with tensors:
#   f(T(1))
def f(x):
    y = x + 1
    return [y] == [y], (x, 1) == (x, 1)

# in-place operators on lists and tuples:
#   (lambda l: (f(T(1), l), l))([1])
def f(x, l):
    m = [x + 1]
    n = m
    m += (1, 2)
    m += l
    t = (1,)
    u = t
    t += (x,)
    t *= 2
    m *= 2
    return m, n is m, t, u, m[1:2] == [1], [1, 2] == [1, 2], l == [1], l < [2], 1 in l, l.count(1), l.index(1)

# insert, pop, indexes that are bools:
#   f(T(1))
def f(x):
    l = [x + 1, 1]
    l.insert(0, 5)
    l.insert(100, 6)
    l.insert(-100, 7)
    a = l.pop(True)
    l[True] = 9
    return l, a, l[::-1], [] * 3, [1] * True

# a slice as argument:
#   f(T(3), slice(1, None))
#   f(T(3), slice(0, 2))
#   f(T(3), slice(0, x))
x = torch.tensor(2)
def f(x, s):
    return x[s] + 1, s, [1, 2, 3][s]

# a tensor in a list:
#   f(T(1), [T(1)])
def f(x, l):
    y = x + 1
    return y in l

# a tensor as index of a list:
#   f(T(3), torch.tensor(1))
def f(x, i):
    y = x + 1
    return [1, 2][i], y[i], range(i)

# a list that contains itself (plain):
#   f(T(1))
def f(x):
    l = [x + 1]
    l.append(l)
    return l

# nan is found by identity:
#   f(T(1), nan, [nan], (nan,))
#   f(T(1), float("nan"), [nan], (nan,))
nan = float("nan")
def f(x, n, l, t):
    return x + 1, n in l, l == [n], t == (n,), t.count(n), n == n, n is n

# nan in tuples:
#   f(T(1), float("nan"))
def f(x, n):
    return x + 1, (n,) == (n,), (n,) == (float("nan"),), [n].count(n)

# comparisons and arithmetic of instances of builtin classes' subclasses:
#   f(T(1), S("ab"), F(1.5), Fs("ab"), N(a=1))
import types
class S(str):
    def __init__(self, *args): self.extra = 1
class F(float): extra = 2
class Fs(frozenset): pass
class N(types.SimpleNamespace): pass
class Other:
    def __radd__(self, other): return "radd"
    def __eq__(self, other): return "eq"
def f(x, s, d, t, n):
    y = x + 1
    r = [s == "ab", "ab" == s, s != "ab", s < "b", "a" < s, d == 1.5, 1.5 == d, d > 1, d + 1, 1 + d, -d, t == {"a", "b"}]
    r += [n == N(a=1), n != N(a=1), s == Other(), d + Other(), "a" in t, t | {"c"} == frozenset("abc"), S("x") == "x"]
    return y * d, r, s.extra, d.extra, bool(s), bool(d), bool(t), len(s), f"{s}{d}", {s: 1}["ab"], hash(s) == hash("ab")

# subclasses of builtin types:
#   f(T(1), I(3), S("ab"), L([1, 2]), D(a=1), Tp((1, 2)))
class I(int): pass
class S(str): pass
class L(list): pass
class D(dict): pass
class Tp(tuple): pass
def f(x, i, s, l, d, t):
    y = x + 1
    r = [i + 1, s + "c", l + [3], d["a"], t[0], len(l), len(s), i == 3, s == "ab", 1 in l, "a" in d]
    r += [t == (1, 2), bool(i), i < 5, x + i, x[t[0] - 1]]
    for v in l: r.append(v)
    l.append(5)
    d["z"] = 1
    return y, r, l, d
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_sequences_behave_as_in_plain_python(program):
    program.check()
