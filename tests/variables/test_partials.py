"""functools.partial."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# from outside and made here:
#   f(T(2), partial(g, 3))
#   f(T(2), partial(g, 4))
#   f(T(2), partial(lambda a, b: a - b, 4))
#   f(T(2), P)
from functools import partial
def g(a, b, c=0):
    return a * b + c
P = partial(g, 2, c=7)
def f(x, p):
    r = partial(partial(g, x), b=3)
    return p(x), r(), r, p.args, r.keywords, p.func is g, callable(p), bool(p)

# a partial of a partial binds to the function:
#   f(T(2))
from functools import partial
def g(a, b, c=0):
    return a * b + c
def f(x):
    r = partial(partial(g, x, c=2), 3, c=4)
    return r(), r(c=1), r.func is g, r.args, r.keywords

# a partial of one from outside:
#   f(T(2))
from functools import partial
def g(a, b, c=0):
    return a * b + c
P = partial(g, 2, c=7)
def f(x):
    return partial(P, x)()

# its parts change:
#   f(T(2))
#   P.keywords.update(c=9)
#   f(T(2))
#   P.__setstate__((g, (3,), {"c": 1}, {}))
#   f(T(2))
#   P.__setstate__((h, (3,), {"c": 1}, {}))
#   f(T(2))
from functools import partial
def g(a, b, c=0):
    return a * b + c
def h(a, b, c=0):
    return a - b - c
P = partial(g, 2, c=7)
def f(x):
    return P(x)

# torch functions and methods:
#   f(T(2, 3))
from functools import partial
P = partial(torch.sum, dim=0)
def f(x):
    return P(x), partial(torch.add, x)(1), [partial(torch.mul, 2)(i) for i in x], partial(x.sum, 1)(keepdim=True)

# wrong calls:
#   f(T(2), 3)
#   f(T(2), g)
from functools import partial
def g(a):
    return a
def f(x, fn):
    y = x + 1
    try:
        return partial(fn, y)(1)
    except TypeError as e:
        return y

# across a break, one object:
#   f(T(2))
from functools import partial
def g(a, b):
    return a * b
def f(x):
    p = partial(g, x + 1)
    q = [p]
    print("break")
    return p(2), q[0] is p

# subclasses are left to plain Python:
#   f(T(2), P(g, 2))
from functools import partial
class P(partial):
    def __call__(self, x):
        print("called")
        return super().__call__(x)
def g(a, b):
    return a * b
def f(x, p):
    y = x + 1
    return p(y)
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_partials_behave_as_in_plain_python(program):
    program.check()


def test_the_same_function_and_arguments_are_one_graph():
    seen = check(
        """
        from functools import partial
        def g(a, b):
            return a * b
        def f(x, p):
            return p(x)
        """,
        "f(T(2), partial(g, 2))",
        "f(T(2), partial(g, 2))",
    )
    assert seen.graphs == 1 and not seen.breaks
