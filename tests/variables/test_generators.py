"""Generators made in the trace."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# generators consumed in every way:
#   f(T(1))
def gen(x, n):
    for i in range(n):
        yield x + i
    return 5
def f(x):
    out = [v * 2 for v in gen(x, 3)]
    g = gen(x, 2)
    a = next(g)
    b = next(g)
    c = next(g, None)
    d = sum(gen(x, 2)), sum(v for v in gen(x, 3)), tuple(i for i in range(3))
    return out, a, b, c, d, all(v > 0 for v in [1, 2]), any(v > 1 for v in (1, 2)), max(v for v in [1, 3])

# a generator is returned:
#   list(f(T(1)))
def gen(x, n):
    for i in range(n):
        yield x + i
def f(x):
    y = x + 1
    return gen(y, 3)

# a half used generator is returned:
#   (lambda r: (r[0], list(r[1])))(f(T(1)))
def gen(x, n):
    for i in range(n):
        print("step", i)
        yield x + i
def f(x):
    y = x + 1
    g = gen(y, 3)
    a = next(g)
    return a, g

# a generator is dropped inside of try:
#   f(T(1))
def gen(x):
    try:
        yield x
        yield x + 1
    finally:
        print("closed")
def f(x):
    x = x + 1
    for v in gen(x):
        y = v * 2
        break
    print("after")
    return y

# an endless generator under zip:
#   f(T(1))
def cnt():
    n = 0
    while True:
        n += 1
        yield n
def f(x):
    out = []
    for a, b in zip(cnt(), [x, x + 1]):
        out.append(a * b)
    return out

# zip leaves a generator in a block whose handlers are not for its end:
#   f(T(1))
ERRORS = KeyError, IndexError
def gen(x):
    try:
        try:
            while True:
                yield x
                x = x + 1
        except IndexError:
            print("not here")
    except ERRORS:
        print("nor here")
def f(x):
    out = []
    for a, b in zip([1, 2], gen(x + 1)):
        out.append(a * b)
    return out

# what a handler names is changed after the generator died:
#   f(T(1))
ERRORS = GeneratorExit
def gen(x):
    try:
        yield x
        yield x
    except ERRORS:
        print("ended")
def f(x):
    global ERRORS
    y = [a * b for a, b in zip([1], gen(x + 1))]
    ERRORS = KeyError
    return y

# zip leaves the iterator of a Sequence:
#   f(T(1), Rows([1, 2, 3]))
from collections.abc import Sequence
class Rows(Sequence):
    def __init__(self, rows):
        self.rows = rows
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return self.rows[i]
def f(x, rows):
    return [a * b + x for a, b in zip([1, 2], rows)], [x * v for v in rows]

# zip leaves a generator whose handlers see its end:
#   f(T(1))
def plain(x):
    try:
        yield x
        yield x
    except BaseException as e:
        print("end", type(e))
def state(x, seen):
    try:
        yield x
        yield x
    except ValueError:
        pass
    except (GeneratorExit, KeyError):
        seen.append(1)
        raise
def f(x):
    x, seen = x + 1, []
    a = [p * q for p, q in zip([1], plain(x))]
    b = [p * q for p, q in zip([1], state(x, seen))]
    for q in state(x, seen):
        break
    n = len(seen)
    q = None
    return a, b, n, seen

# send:
#   f(T(1))
def gen(x):
    v = yield x
    yield v + 1
def f(x):
    g = gen(x)
    next(g)
    return g.send(x * 2)

# yield from:
#   f(T(1))
def inner(x):
    yield x
    yield x + 1
def gen(x):
    yield from inner(x)
    yield x * 2
def f(x):
    x = x + 1
    return list(gen(x))

# a search:
#   f(T(1))
def first(l):
    for v in l:
        if v > 1:
            return v
def f(x):
    return x + first([1, 2, 3]) + next(v for v in [1, 5] if v > 2)

# local generators:
#   f(T(1))
def f(x):
    def g():
        yield x + 1
        yield x + 2
    return list(g()), sum(v for v in g())
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_generators_behave_as_in_plain_python(program):
    program.check()
