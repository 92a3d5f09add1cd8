"""Comprehensions: functions of their own up to 3.11, inlined later."""

# ruff: noqa: B023, C416, E731, F821, SIM, UP028, UP031
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

from tests.pycode.cases.support import case


@case((4, 2))
def comprehensions(n, y):
    return [i * y for i in range(n) if i], {i: j for i, j in enumerate("ab")}, {i % 2 for i in range(n)}


@case((3, 2))
def nested_comprehensions(n, m):
    return [[i + j for j in range(m)] for i in range(n)], [
        (i, j) for i in range(n) for j in range(m) if i != j
    ]


@case((3,))
def comprehension_shadows(x):
    y = [x for x in range(x)]
    return x, y, [x for x in y if x]


@case((3,))
def comprehension_closure(n):
    fs = [lambda: i for i in range(n)]
    return [f() for f in fs]


@case((3, 10))
def comprehension_captured(n, k):
    gs = [lambda j=i: i + j + k for i in range(n)]
    k = 100
    return [g() for g in gs], [h(1) for h in [lambda v: v + k]]


@case(([1, 0, 2],))
def comprehension_raises(items):
    return [10 // item for item in items]


@case(([1, 0, 2],))
def comprehension_in_try(items):
    x = "kept"
    try:
        y = [10 // x for x in items]
    except ZeroDivisionError:
        y = None
    return x, y


@case(([[1, 2], [3]],))
def comprehension_unbound_before(rows):
    flat = [cell for row in rows for cell in row]
    if rows:
        cell = "late"
    return flat, cell


@case((3,))
def comprehension_conditions(n):
    return (
        [i for i in range(n * 3) if i % 2 if i % 3],
        [i if i else "zero" for i in range(n)],
        [not i for i in (0, 1)],
    )


@case((3,))
def comprehension_walrus(n):
    out = [last := i for i in range(n)]
    return out, last, any((hit := i) > 0 for i in range(n)), hit


@case(([[1, 2], [], [3]],))
def comprehension_unpack(rows):
    return [a for (a, *_) in rows if [a]] if all(rows) else [r for r in rows if r], {
        k: v for k, v in enumerate(rows)
    }


@case((3,))
def comprehension_nested_scopes(n):
    x = "outer"
    rows = [[(x, y) for y in range(x)] for x in range(n)]
    return x, rows


@case((3,))
def comprehension_in_lambda(n):
    f = lambda k: [i * k for i in range(n)]
    return [f(k) for k in range(2)], (lambda: {i for i in range(n)})()


@case((2,))
def comprehension_nested_closure(n):
    fs = [[lambda: (i, j) for j in range(n)] for i in range(n)]
    return [[f() for f in row] for row in fs]


@case((2,))
def comprehension_captures_outer(n):
    def get():
        return n

    return [get() + i for i in range(n)], {get: n}[get], [(lambda: n + i)() for i in range(n)]


@case((5,))
def comprehension_shadowed_cell(x):
    def get():
        return x

    y = [x for x in range(3)]
    return x, get(), y, [get() for _ in range(2)]


@case((5,))
def comprehension_same_captured_name(x):
    def get():
        return x

    fs = [lambda: x for x in range(3)]
    return x, get(), [f() for f in fs]


@case((["a", "b"],))
def comprehension_of_strings(v):
    return "".join(s.upper() for s in v), [f"{i}{s}" for i, s in enumerate(v)], {s: len(s) for s in v}


@case((2,))
def comprehension_error_in_condition(n):
    try:
        return [i for i in range(n) if i / (i - 1)]
    except ZeroDivisionError as error:
        return str(error), n


@case((2,))
def comprehension_deleted_variable(n):
    i = 10
    del i
    out = [i for i in range(n)]
    try:
        return i
    except UnboundLocalError:
        return out
