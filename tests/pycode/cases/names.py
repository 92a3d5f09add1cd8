"""Globals, imports, truth values, many locals."""

# ruff: noqa: F821, F842
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.pycode.cases.support import CASES, Box, FussyBool, case

counter = 0


@case((3,))
def global_counter(n):
    global counter
    counter = 0
    for i in range(n):
        counter += i
    return counter


@case((2.5,))
def imports(x):
    import math as m
    import os.path
    from collections import Counter
    from os import path as p

    return m.floor(x), p.basename("a/b"), os.path.sep, Counter("aab")["a"]


@case((1,))
def import_error(x):
    try:
        from math import nothing_there  # noqa: F401
    except ImportError as error:
        return type(error).__name__
    return x


@case((True,), (False,), (None,))
def fussy_truth(value):
    f = FussyBool(value)
    try:
        if f:
            r = "yes"
        else:
            r = "no"
        return r, not f, f and 1, f or 2, 1 if f < 3 else 0, bool(f > 1), not f > 1
    except ValueError as error:
        return str(error)


@case((True,), (False,))
def comparison_values(value):
    f = FussyBool(value)
    r = 0
    while f > r:
        r += 1
        if r > 2:
            break
    return r, f > 1 and f > 2


@case((3,))
def many_locals(x):
    a = x
    b = a + 1
    c = b + a
    d = c * b
    e = d - a
    f = [a, b, c, d, e]
    g, h, i, j, k = f
    m = {k: j, h: g}
    n = (a, b, c)
    o = n[0] + m[k]
    return a, b, c, d, e, f, g, h, i, j, k, m, n, o


def _wide(count: int) -> Callable[..., Any]:
    """A function with so many locals and constants that its instructions need EXTENDED_ARG."""
    lines = ["def wide(x):"]
    lines += [f"    v{n} = x + {n + 1000}" for n in range(count)]
    lines += [
        "    total = 0",
        "    for i in range(3):",
        f"        if i < x: total += v{count - 1} * v{count - 2}",
    ]
    lines += [f"        total -= v{n}" for n in range(0, count, 3)]
    lines += ["    return total, [v0 for _ in 'ab']"]
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), __file__, "exec"), names)
    function: Callable[..., Any] = names["wide"]
    return function


CASES.append((_wide(300), ((2,),)))


def _wide_closure(count: int) -> Callable[..., Any]:
    """A function whose free variables have slot numbers on both sides of 255."""
    lines = ["def outer():", "    one, two, three, four = 1, 2, 3, 4", "    def wide_closure(x):"]
    lines += [f"        v{n} = x" for n in range(count)]
    lines += [
        "        out = []",
        "        for i in range(2):",
        "            out.append(max(one, two * i) + (lambda: three + four)())",
    ]
    lines += [
        "        two_ = (one, two, three, four)",
        f"        return out, two_, v{count - 1}",
        "    return wide_closure",
    ]
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), __file__, "exec"), names)
    function: Callable[..., Any] = names["outer"]()
    return function


CASES.append((_wide_closure(249), ((2,),)))
CASES.append((_wide_closure(251), ((2,),)))


@case((2,))
def global_made_and_deleted(x):
    global temporary
    temporary = x
    seen = temporary
    del temporary
    try:
        return temporary
    except NameError as error:
        return seen, str(error)


@case((2,))
def builtins_shadowed(x):
    def inner():
        len = lambda v: x  # noqa: E731
        return len([])

    sum = inner() + x
    return sum, max(sum, 1)


@case((2,))
def local_imports(x):
    import json
    from collections import OrderedDict as Ordered
    from functools import reduce

    return reduce(lambda a, b: a + b, [x, 1]), json.loads("[1, {}]"), list(Ordered(a=1))


@case((2,))
def relative_names(x):
    import os.path as p
    import xml.dom

    return p.join("a", "b"), xml.dom.__name__, x


@case((2,))
def missing_module(x):
    try:
        import no_such_module_here
    except ModuleNotFoundError as error:
        return error.name
    return no_such_module_here


@case((1,), (0,))
def conditional_definition(x):
    if x:

        def f():
            return "defined"

        k = 1
    else:
        f = str
    return f(), x and k


@case((1,), (5,))
def maybe_unbound(x):
    for i in range(x):
        if i == 3:
            found = i
    return found


@case((3,))
def delete_in_loop(n):
    out = []
    for i in range(n):
        v = i * 2
        out.append(v)
        del v
    try:
        out.append(v)
    except UnboundLocalError:
        out.append("gone")
    return out


@case((3,))
def reassigned_parameter(n, m=2):
    n += m
    m = n
    n = [m]
    m, n = n, m
    return n, m


@case((3,))
def truthiness(n):
    values = [0, 1, "", "a", [], [0], {}, {1}, None, 0.0, Box(0), Box(1), FussyBool(False), FussyBool(True)]
    return ["t" if v else "f" for v in values], [bool(v) for v in values], n


@case((True,), (False,))
def bool_of_comparison(value):
    f = FussyBool(value)
    a = not not (f > 1)
    b = not not f
    c = bool(f > 1)
    d = (f > 1) is True
    while not (f > 1):
        return a, b, c, d, "empty"
    return a, b, c, d, "full"


@case(([],), ([1],))
def empty_or_not(v):
    if not v:
        v.append(0)
    elif v and v[0]:
        v[0] = "first"
    assert v
    return v or None, v and v[0]


@case((3,))
def docstring_only(x):
    """Nothing but this."""


@case((3,))
def nothing_much(x):
    if False:
        x = 1
    while 0:
        x = 2
    return x


@case((3,))
def type_hints(x: int, *rest: str, key: float = 1.0) -> tuple:
    y: int
    z: list[int] = [x]
    return z, rest, key
