"""Globals, imports, truth values, many locals."""

# What the linter would rather not see is what these functions are for.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.pycode.cases.support import CASES, FussyBool, case

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
