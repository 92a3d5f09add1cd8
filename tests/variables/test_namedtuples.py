"""collections.namedtuple and typing.NamedTuple."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# from outside:
#   f(T(2), P(T(2), 3), Q(1))
#   f(T(2), P(T(2), 4), Q(1, 3))
#   f(T(2), P(3, T(2)), Q(1, 3))
from collections import namedtuple
import typing
P = namedtuple("P", "x y")
class Q(typing.NamedTuple):
    a: int
    b: int = 2
    def total(self):
        return self.a + self.b
    @property
    def twice(self):
        return self.a * 2
    kind = "q"
def f(x, p, q):
    a, b = p
    r = [p._fields, q == (1, 2), q < (1, 3), isinstance(p, tuple), type(p) is P, p[0:1], p + (1,), q * 2, q.kind]
    r += [len(p), 2 in q, q.count(1), q.index(1), q.total() + q.twice, list(q), bool(q), hash(q) == hash((1, 3))]
    return p.x + p[1] + a, p, r, {q: 1}, {q} == {(1, 2)}

# made here:
#   f(T(2))
from collections import namedtuple
import typing
P = namedtuple("P", "x y", defaults=(5,))
class Q(typing.NamedTuple):
    a: int
    b: int = 2
    def total(self):
        return self.a + self.b
def f(x):
    r = P(x)
    s = P(y=1, x=x)
    t = s._replace(y=x + 1)
    u = Q(*(7,))
    return r, s, t, t._asdict(), u.total(), u, r.y, t.y is t[1], P._fields, u == Q(7, 2)

# across a break:
#   f(T(2), P(1, 2))
#   f(T(2), P(3, 2))
from collections import namedtuple
P = namedtuple("P", "x y")
def f(x, p):
    r = P(x, p)
    print("a")
    return r.x + 1, r.y.x, r, r.y is p

# wrong calls:
#   f(T(2), 0)
#   f(T(2), 1)
#   f(T(2), 2)
from collections import namedtuple
P = namedtuple("P", "x y")
def f(x, n):
    y = x + 1
    if n == 0:
        return P(y)
    if n == 1:
        return P(y, z=1)
    return P(1, 2)._replace(z=y)

# a changed default:
#   f(T(2))
#   setattr(P.__new__, "__defaults__", (9,))
#   f(T(2))
from collections import namedtuple
P = namedtuple("P", "x y", defaults=(5,))
def f(x):
    return P(x).y * x

# a class with a __new__ of its own:
#   f(T(2), P(T(2)))
from collections import namedtuple
class P(namedtuple("P", "x y")):
    __slots__ = ()
    def __new__(cls, x):
        print("new")
        return super().__new__(cls, x, x)
    def s(self):
        return self.x + self.y
def f(x, p):
    y = x + 1
    return p.s() + y, P(y)

# a class that reads items in its own way:
#   f(T(2), P(1, 2))
from collections import namedtuple
class P(namedtuple("P", "x y")):
    def __getitem__(self, i):
        print("item")
        return 7
def f(x, p):
    y = x + 1
    return y, p[0], p.x
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_named_tuples_behave_as_in_plain_python(program):
    program.check()


def test_one_graph():
    seen = check(
        """
        from collections import namedtuple
        P = namedtuple("P", "x y")
        def step(p):
            return p._replace(x=p.x * p.y)
        def f(x):
            return step(step(P(x, 2))).x
        """,
        "f(T(2))",
    )
    assert seen.graphs == 1 and not seen.breaks
