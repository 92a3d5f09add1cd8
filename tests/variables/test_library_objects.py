"""Objects of the standard library: followed, or left to plain Python."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# functools.partial is replaced:
#   f(T(1))
#   globals().__setitem__("p", functools.partial(g, b=5)) or f(T(1))
#   globals().__setitem__("p", functools.partial(h, b=5)) or f(T(1))
#   globals().__setitem__("p", functools.partial(g, T(1))) or f(2)
import functools
def g(a, b): return a * b
def h(a, b): return a - b
p = functools.partial(g, b=3)
def f(x): return p(x) + 1

# members of enums:
#   f(T(1), E.A)
#   f(T(1), E.B)
#   f(T(1), F2.A)
import enum
class E(enum.Enum):
    A = 1
    B = 2
class F2(enum.IntEnum):
    A = 1
def f(x, e):
    if e is E.A: return x + 1, e.name
    if e == 1: return x + 100
    return x * e.value, e in (E.A, E.B), {E.B: 5}[e]

# namedtuples and tuples:
#   f(P(T(1), 2))
#   f(P(T(1), 3))
#   f((T(1), 2))
import collections
P = collections.namedtuple("P", "a b")
def f(p):
    x, n = p
    if isinstance(p, P):
        return p.a + p.b, p._replace(b=5), P(x, n), p[0], len(p), p == (1, 2) if False else 0
    return x * n

# sets, as argument and made here:
#   f(T(1), {1, 2})
#   f(T(1), {1, 2, 3})
#   f(T(1), {2, 1})
#   f(T(1), frozenset({1}))
def f(x, s):
    t = {1, 5}
    t.add(7)
    u = s | t if isinstance(s, set) else t
    return x + len(s), 2 in s, sorted(u), t - {5}, t & {1}, t == {1, 5, 7}

# a set from outside is changed:
#   (lambda s: (f(T(1), s), s))({1})
def f(x, s):
    s.add(2)
    s.discard(1)
    s.update([4, 5])
    s |= {9}
    return x + len(s)

# bound methods as arguments:
#   f(T(1), o.m)
#   f(T(1), o2.m)
#   f(T(1), o.n)
#   setattr(o, "k", 9) or f(T(1), o.m)
class O:
    def __init__(self, k): self.k = k
    def m(self, x): return x * self.k
    def n(self, x): return x - self.k
o = O(2); o2 = O(3)
def f(x, fn): return fn(x) + 1

# methods of builtins as arguments:
#   f(T(1), [].append)
#   f(T(1), "a,b".split)
#   f(T(1), {}.get)
#   f(T(1), T(2).add)
def f(x, fn):
    y = x + 1
    return y, fn(",")

# imports in every form:
#   f(T(1))
def f(x):
    import os.path
    import os.path as osp
    from os import path as pp
    y = x + 1
    return y, osp is pp, os.path is osp

# attributes of a class and of its base:
#   f(T(1))
#   C.l.append(2) or f(T(1))
#   setattr(C, "t", T(1) * 5) or f(T(1))
#   setattr(B, "q", 5) or f(T(1))
#   setattr(C, "q", 6) or f(T(1))
class B: q = 1
class C(B):
    l = [1]
    t = T(1)
def f(x): return x + len(C.l) + C.t + C.q

# instances are made through super().__init__:
#   f(T(1))
class A:
    def __init__(self, x): self.x = x
    def __repr__(self): return "A"
class B(A):
    def __init__(self, x, y):
        super().__init__(x)
        self.y = y
    def total(self): return self.x + self.y
def f(x):
    b = B(x, x * 2)
    return b.total(), b

# a class with __new__:
#   f(T(1))
class A:
    def __new__(cls, x):
        s = super().__new__(cls)
        s.z = 1
        return s
    def __init__(self, x): self.x = x
def f(x):
    y = x + 1
    a = A(y)
    return a.x + a.z

# a metaclass that makes instances:
#   f(T(1))
class M(type):
    def __call__(cls, *a):
        o = super().__call__(*a)
        o.extra = 1
        return o
class A(metaclass=M):
    def __init__(self, x): self.x = x
def f(x):
    y = x + 1
    a = A(y)
    return a.x + a.extra

# a class with __del__:
#   f(T(1))
log = []
class A:
    def __init__(self, x): self.x = x
    def __del__(self): log.append("del")
def f(x):
    a = A(x + 1)
    y = a.x
    del a
    return y * 2, log

# weak references:
#   f(T(1), o)
import weakref
class O: pass
o = O()
def f(x, o):
    r = weakref.ref(o)
    y = x + 1
    return y, r() is o

# frozen dataclasses:
#   f(T(1))
import dataclasses
@dataclasses.dataclass(frozen=True)
class D:
    a: object
    b: int = 2
    c: list = dataclasses.field(default_factory=list)
def f(x):
    d = D(x + 1)
    e = dataclasses.replace(d, b=5)
    return d.a * d.b + e.b, d == e, dataclasses.asdict(e)

# lru_cache, wraps, reduce:
#   f(T(1))
import functools
@functools.lru_cache
def g(n): return n * 2
@functools.wraps(g)
def h(n): return n
def f(x):
    y = x + g(3)
    return y + functools.reduce(lambda a, b: a + b, [1, 2, 3]) + h(2)

# itertools (plain):
#   f(T(1))
import itertools, operator
def f(x):
    r = [x * a for a in itertools.chain([1], (2,))]
    for i, a in zip(itertools.count(), [x, x]): r.append(a + i)
    r += [a + b for a, b in itertools.product([x], [1, 2])]
    r.append(list(itertools.islice(range(10), 2, 5)))
    r.append(list(itertools.accumulate([1, 2, 3])))
    return r, operator.itemgetter(1)([5, 6]), operator.attrgetter("shape")(x)

# copy and deepcopy:
#   f(T(1), [1, [2]])
import copy
def f(x, l):
    y = x + 1
    a = copy.copy(l)
    b = copy.deepcopy(l)
    return y, a[1] is l[1], b[1] is l[1]

# Python's random numbers:
#   (random.seed(3), f(T(1)))
#   (random.seed(3), f(T(1)))
import random
def f(x):
    return x + random.random() + random.randint(0, 5)

# the clock:
#   f(T(1))
import time
def f(x):
    t = time.time()
    y = x + 1
    return y, time.time() >= t

# annotations and cast:
#   f(T(1))
from typing import cast, Optional
def f(x: "torch.Tensor") -> Optional[int]:
    y: int = 3
    return cast(int, x) + y

# deque, OrderedDict, defaultdict, Counter:
#   f(T(1))
import collections
def f(x):
    d = collections.deque([1, 2])
    d.append(x)
    d.popleft()
    o = collections.OrderedDict(a=1)
    o["b"] = x
    o.move_to_end("a")
    dd = collections.defaultdict(list)
    dd["k"].append(x)
    c = collections.Counter("aab")
    return d[1] + 1, list(o), dd, c["a"]

# the order of an OrderedDict:
#   f(T(1), collections.OrderedDict(a=1, b=2))
#   f(T(1), (lambda o: (o.move_to_end("a"), o)[1])(collections.OrderedDict(a=1, b=2)))
import collections
def f(x, o):
    r = [k for k in o]
    return x + o["a"], r

# a defaultdict that makes a value:
#   f(T(1), collections.defaultdict(list))
#   f(T(1), collections.defaultdict(int))
import collections
def f(x, d):
    y = x + 1
    v = d["new"]
    return y, v, len(d), d
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_objects_of_the_library_behave_as_in_plain_python(program):
    program.check()
