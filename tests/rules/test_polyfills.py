"""Builtins that are traced as plain Python."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# reduce:
#   f(T(2))
import functools, operator
def f(x):
    return functools.reduce(operator.add, [x, x + 1, x * 2]) + functools.reduce(lambda a, b: a * b, (1, 2, 3), 4)

# itertools chain:
#   f(T(2))
import itertools
def f(x):
    for i in itertools.chain([1, 2], (3,)): x = x + i
    for i in itertools.chain.from_iterable([[1], [2]]): x = x * i
    return x

# itertools various:
#   f(T(2))
import itertools as it
def f(x):
    for a, b in it.product([1, 2], [3, 4]): x = x + a * b
    for a in it.islice(it.count(2, 3), 4): x = x + a
    for a in it.islice([1,2,3,4,5], 1, None, 2): x = x + a
    for a, b in it.combinations([1, 2, 3], 2): x = x + a * b
    for a, b in it.permutations([1, 2, 3], 2): x = x + a * b
    for a in it.accumulate([1, 2, 3]): x = x + a
    for a in it.repeat(2, 3): x = x + a
    for a, b in it.zip_longest([1, 2], [3], fillvalue=7): x = x + a * b
    for a, b in it.pairwise([1, 2, 3]): x = x + a * b
    for a in it.takewhile(lambda v: v < 3, [1, 2, 3, 1]): x = x + a
    for a in it.dropwhile(lambda v: v < 3, [1, 2, 3, 1]): x = x + a
    for a in it.filterfalse(lambda v: v < 3, [1, 2, 3, 1]): x = x + a
    for a in it.starmap(lambda p, q: p * q, [(1, 2), (3, 4)]): x = x + a
    for a in it.compress([1, 2, 3], [1, 0, 1]): x = x + a
    for k, g in it.groupby([1, 1, 2], lambda v: v): x = x + k * len(list(g))
    for a, b in it.combinations_with_replacement([1, 2], 2): x = x + a * b
    a, b = it.tee([1, 2, 3])
    x = x + sum(a) + sum(b)
    c = it.cycle([1, 2])
    for i in range(5): x = x + next(c)
    return x

# islice sweep:
#   f(T(2))
import itertools as it
def f(x):
    out = []
    for a in [(3,), (None,), (0,), (1, 4), (1, None), (0, 9, 2), (2, 7, 3), (None, None, None), (5, 2)]:
        i = iter(range(8))
        out.append(list(it.islice(i, *a)))
        out.append(list(i))
    return x + 1, out

# itertools results:
#   f(T(2))
import itertools as it, operator
def f(x):
    o = []
    o.append(list(it.permutations("abc"))); o.append(list(it.permutations("abcd", 2)))
    o.append(list(it.permutations("ab", 3))); o.append(list(it.permutations("ab", 0)))
    o.append(list(it.combinations("abcd", 3))); o.append(list(it.combinations("ab", 0))); o.append(list(it.combinations("ab", 3)))
    o.append(list(it.combinations_with_replacement("abc", 2))); o.append(list(it.combinations_with_replacement("", 2)))
    o.append(list(it.combinations_with_replacement("", 0)))
    o.append(list(it.product("ab", [1, 2], repeat=2))); o.append(list(it.product())); o.append(list(it.product("ab", "")))
    o.append(list(it.accumulate([1, 2, 3], operator.mul, initial=5))); o.append(list(it.accumulate([])))
    o.append(list(it.zip_longest("ab", "xyz", "", fillvalue=0))); o.append(list(it.zip_longest()))
    o.append([(k, list(g)) for k, g in it.groupby("aabbbca")])
    o.append([k for k, g in it.groupby("aabbbca")])
    g = it.groupby([1, 1, 2, 2, 3])
    k1, g1 = next(g); a = next(g1); k2, g2 = next(g)
    o.append([k1, a, k2, list(g1), list(g2)])
    o.append(list(it.islice(it.cycle("ab"), 5))); o.append(list(it.cycle("")))
    o.append(list(it.repeat(3, times=2))); o.append(list(it.repeat(3, -1)))
    a, b, c = it.tee("abc", 3)
    o.append([next(a), next(a), next(b), list(c), list(a), list(b)])
    o.append(list(it.filterfalse(None, [0, 1, 2]))); o.append(list(it.pairwise([1]))); o.append(list(it.starmap(pow, [(2, 3)])))
    o.append(list(it.islice(it.count(1.5, 0.5), 3)))
    i = iter([1, 2, 3])
    o.append(list(iter(lambda: next(i), 3)))
    return x + 1, o

# itertools errors:
#   f(T(2))
import itertools as it, functools
def f(x):
    o = []
    for g in (lambda: it.islice([1], -1), lambda: it.islice([1], 0, -1), lambda: it.islice([1], 0, 1, 0), lambda: it.combinations([1], -1),
              lambda: it.product([1], repeat=-1),
              lambda: functools.reduce(max, []), lambda: max([], key=abs), lambda: min([])):
        try:
            g()
        except (ValueError, TypeError) as e:
            o.append(str(e))
    return x + 1, o

# lazy order:
#   f(T(2))
import itertools as it
log = []
def gen(n):
    log.append(("start", n))
    for i in range(3):
        log.append((n, i))
        yield i
    log.append(("end", n))
def f(x):
    c = it.chain(gen(1), gen(2))
    log.append("made")
    a = next(c)
    z = it.zip_longest(gen(3), [1])
    for p in z: log.append(p)
    q = list(it.takewhile(lambda v: v < 1, gen(4)))
    r = list(it.islice(gen(5), 1))
    s = list(it.compress(gen(6), [1, 0]))
    for i in c: x = x + i
    return x

# tensors in itertools:
#   f(T(2))
import itertools as it, functools
def f(x):
    y = list(it.accumulate([x, x + 1, x * 2]))[-1]
    return functools.reduce(torch.add, [y, x, x]) + max([x, x], key=lambda t: t.shape[0])

# types of iterators:
#   f(T(2))
import itertools as it
def f(x):
    c = it.chain([1])
    return x + 1, type(c) is it.chain, isinstance(it.count(), it.count)

# sorted key:
#   f(T(2), [3, 1, 2])
def f(x, l):
    l.sort(key=lambda v: -v)
    m = sorted(["aa", "b"], key=len)
    return x * l[0] + max([1, -5], key=abs) + min(l, key=lambda v: v % 3), m, max((1, 2), default=3), min([], default=4)

# total_ordering:
#   f(T(2))
import functools
@functools.total_ordering
class V:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
def f(x):
    a, b = V(1), V(2)
    if a <= b and not a >= b and b > a: x = x + 1
    return x
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
