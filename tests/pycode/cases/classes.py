"""Classes, decorators, annotations."""

# What the linter would rather not see is what these functions are for.
from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

from tests.pycode.cases.support import Box, Point, Shape, Sub, case


@case((3,))
def local_class(x):
    class Local(Box):
        extra = x

        def get(self):
            return self.extra + x + self.value

        def __repr__(self):
            return f"Local({self.value})"

    one = Local(1)
    return one.get(), Local.extra, repr(one), Local.__name__, Local.__qualname__


@case((3,))
def local_class_super(x):
    class Local(Sub):
        def add(self, other, *, scale=1):
            return super().add(other) * x

    return Local(x).add(1)


@case((3,))
def decorated(x):
    def twice(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args) * 2

        return inner

    @twice
    @twice
    def g(y):
        """Documented."""
        return y + x

    return g(1), g.__doc__, g.__name__


@case((1,))
def annotated(x: int) -> Any:
    y: int = x + 1
    z: list[int]
    z = [y]

    def typed(a: int, *, b: str = "b") -> None:
        return None

    return y, z, typed.__defaults__, typed.__kwdefaults__, typed(1)


@case((2,))
def named_tuples(x):
    p = Point(x, y=3)
    q = p._replace(y=4)
    return p == (x, 3), q.y, [*p], Shape("sq", 2) == Shape("sq", x), OrderedDict(a=1)["a"]
