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


@case(("go", "north"), ("drop",), ("pick", "up", "key"), ("shout", "x", "y"), ())
def match_words(*words):
    match words:
        case ("go", ("north" | "south") as direction):
            return direction
        case ("drop",):
            return "nothing"
        case ("pick", "up", item):
            return item
        case (verb, *rest) if len(rest) == 2:
            return verb, rest
        case ():
            return "silence"
    return "?"


@case(({"type": "circle", "r": 2},), ({"type": "rect", "w": 2, "h": 3},), ({"type": "none"},), ({},), ([],))
def match_dicts(shape):
    match shape:
        case {"type": "circle", "r": r}:
            return 3 * r * r
        case {"type": "rect", "w": w, "h": h}:
            return w * h
        case {"type": str(kind), **rest}:
            return kind, rest
        case {}:
            return "empty mapping"
        case _:
            return "no mapping"


@case((1,), (1.0,), (True,), ("1",), (None,), (b"1",))
def match_types(x):
    match x:
        case bool():
            return "bool"
        case int(n):
            return "int", n
        case float() as f:
            return "float", f
        case str() | bytes():
            return "text"
        case None:
            return "none"


@case(([1, [2, {"k": [3, 4]}]],), ([1, [2, {"k": []}]],), ([1, 2],))
def match_nested(x):
    match x:
        case [a, [b, {"k": [c, *_]}]]:
            return a, b, c
        case [a, [_, {"k": []}]]:
            return "empty", a
        case [_, _]:
            return "pair"


@case((Shape("sq", 1),), (Shape("ci", 2),), (Point(1, 2),), (3,))
def match_classes(x):
    match x:
        case Shape(kind="sq" | "rect", size=size):
            r = "angular", size
        case Shape(kind, size=2):
            r = kind
        case Point(px, py) if px < py:
            r = px + py
        case _:
            r = "other"
    return r


@case((5,), (-5,), (0,))
def match_guards(x):
    log = []

    def check(v):
        log.append(v)
        return v > 0

    match x:
        case n if check(n):
            r = "positive"
        case n if check(-n):
            r = "negative"
        case 0:
            r = "zero"
    return r, log


@case((4,))
def match_in_loop(n):
    out = []
    for i in range(n):
        match i % 3, i:
            case 0, k:
                out.append(k)
            case 1, _:
                continue
            case _:
                break
    return out


@case((1,), (2,))
def match_without_case(x):
    match x:
        case 1:
            y = "one"
    return y


@case((-1,), (1 + 2j,), ("a b",), (2.5,))
def match_literals(x):
    match x:
        case -1:
            return "minus one"
        case 1 + 2j:
            return "complex"
        case "a b":
            return "joined"
        case 2.5:
            return "float"
