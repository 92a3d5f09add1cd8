"""match statements."""

# What the linter would rather not see is what these functions are for.
from __future__ import annotations

import math

from tests.pycode.cases.support import Point, Shape, case


@case(
    (1,),
    ("x",),
    ([1, 2],),
    ([1, 2, 3, 4],),
    ({"k": 1, "z": 2},),
    (Shape("sq", 3),),
    (Shape("ci", 3),),
    (Point(0, 4),),
    (None,),
    (7.5,),
)
def match_statement(x):
    match x:
        case 1 | 2:
            return "small"
        case str(s):
            return s
        case Point(x=0, y=y):
            return "point", y
        case [a, b]:
            return a + b
        case [a, *rest]:
            return a, rest
        case {"k": v, **rest}:
            return v, rest
        case Shape("sq", size) if size > 2:
            return size
        case Shape(kind=kind):
            return kind
        case None:
            return "none"
        case _:
            return "other"


@case((3, 2), (0, 0), (5, 1))
def match_values(x, y):
    match x, y:
        case (0, 0):
            r = "origin"
        case (math.tau, _):
            r = "tau"
        case (a, b) if a > b + 2:
            r = a - b
        case (a, _) as whole:
            r = whole, a
    return r
