"""Errors are those of plain Python: type, message, line, and what happened before."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# a deleted variable:
#   f(T(1))
def f(x):
    y = x + 1
    del y
    return y

# a variable that is bound on one path only:
#   f(T(1), True)
#   f(T(1), False)
def f(x, c):
    if c:
        y = x + 1
    z = x * 2
    return y + z

# a name that does not exist:
#   f(T(1))
def f(x):
    y = x + 1
    return nope + y

# int of a list:
#   f(T(1))
def f(x):
    try_ = x + 1
    return int([1])

# float of a list:
#   f(T(1))
def f(x):
    y = x + 1
    return y, float([])

# a slice with step zero:
#   f(T(1))
def f(x):
    y = x + 1
    return [1, 2][::0]

# a sequence times a huge number:
#   f(T(3), 10**30)
#   f(T(3), -10**30)
def f(x, n):
    y = x + 1
    return y, [] * n

# an order that is not defined:
#   f(T(3))
def f(x):
    y = x + 1
    return [1] < (1,)

# too many arguments:
#   f(T(3))
def g(a): return a
def f(x):
    y = x + 1
    return g(y, y)

# too many arguments by a star:
#   f(T(1))
def g(a): return a
def f(x):
    y = x + 1
    return g(*[y, y])

# an argument twice:
#   f(T(1))
def g(a, b=1): return a
def f(x):
    y = x + 1
    return g(y, a=2)

# a missing argument:
#   f(T(1))
def g(a, b): return a
def f(x):
    y = x + 1
    return g(y)

# a missing argument of a lambda:
#   f(T(1))
def f(x):
    y = x + 1
    g = lambda a, b: a
    return g(y)

# a positional-only argument by keyword:
#   f(T(1), 2)
def g(a, b, /, c=1): return a + b + c
def f(x, n):
    y = x + 1
    return g(y, b=n)

# a call of a number:
#   f(T(1))
def f(x):
    y = x + 1
    return 5(y)

# iteration over a number:
#   f(T(1))
def f(x):
    y = x + 1
    for i in 5: pass
    return y

# too many values to unpack:
#   f(T(1))
def f(x):
    y = x + 1
    a, b = (1, 2, 3)
    return y

# a tensor unpacked to too few names:
#   f(T(3))
def f(x):
    y = x + 1
    a, b = y
    return y

# an index out of range:
#   f(T(3))
def f(x):
    y = x + 1
    return y, (1, 2)[5]

# a string index out of range:
#   f(T(3))
def f(x):
    y = x + 1
    return y, "abc"[7]

# iteration over a tensor without dimensions:
#   f(torch.tensor(1.0))
def f(x):
    y = x + 1
    for v in y: pass
    return y

# len of a tensor without dimensions:
#   f(torch.tensor(1.0))
def f(x):
    y = x + 1
    return len(y)

# the truth of a tensor with several elements:
#   f(T(3))
def f(x):
    y = x + 1
    if y: return 1
    return y

# an exception of an unusual class:
#   f(T(1))
def f(x):
    y = x + 1
    raise SystemError("q")

# an iterator without items:
#   f(T(1))
def f(x):
    y = x + 1
    return next(iter([])), y

# an error of the operating system:
#   f(T(1))
def f(x):
    y = x + 1
    open("/nonexistent/x")
    return y

# an exception raised while another is handled:
#   f(T(1))
def g(x):
    try:
        1 // 0
    except ZeroDivisionError:
        raise ValueError("v")
def f(x):
    y = x + 1
    g(y)
    return y

# a call inside of an except clause:
#   h(T(1))
def h(x):
    try:
        1 // 0
    except ZeroDivisionError:
        return f(x)
def f(x):
    y = x + 1
    print(sys.exc_info()[0])
    return y * 2
import sys

# an error inside of a call in an except clause:
#   h(T(1))
def h(x):
    try:
        1 // 0
    except ZeroDivisionError:
        return f(x)
def f(x):
    y = x + 1
    y[7]
    return y

# an exception in a function that is not captured:
#   f(T(1))
def bad(v): raise KeyError(v)
def f(x):
    y = x + 1
    z = bad("k")
    return y + z

# an error after a graph break:
#   f(T(1))
def f(x):
    y = x + 1
    print("a")
    z = y * 2
    return z + [1, 2][5]

# an error in an inlined function after a break:
#   f(T(1))
def g(x):
    print("g")
    return x[5]
def f(x):
    y = x + 1
    print("a")
    return g(y)

# a string plus a number:
#   f(T(1), "a")
def f(x, s):
    y = x * 2
    return y + (s + 1)

# a division by zero:
#   f(T(1), 0)
def f(x, n):
    y = x * 2
    return y + 1 // n

# a missing attribute of a tensor:
#   f(T(1))
def f(x):
    y = x * 2
    return y.nope

# a missing attribute of torch:
#   f(T(1))
def f(x):
    y = x * 2
    return torch.nope(y)

# shapes that do not fit:
#   f(T(3), T(4))
def f(x, y):
    a = x * 2
    return a + y

# shapes that do not fit, in an inlined function:
#   f(T(3), T(4))
def g(a, b):
    return a + b
def f(x, y):
    a = x * 2
    return g(a, y)

# a leaf that requires a gradient, changed in place:
#   f(T(3, requires_grad=True))
def f(x):
    y = x * 2
    x += 1
    return x + y

# an index that is out of range at run time:
#   f(T(3), torch.tensor([7]))
def f(x, i):
    y = x + 1
    return y[i]

# an index in range at run time, after a write:
#   (lambda x: [x, f(x, torch.tensor([1])), x])(T(3))
def f(x, i):
    x += 1
    return x[i]

# raise:
#   f(T(3))
def f(x):
    y = x + 1
    raise ValueError("no")

# assert:
#   f(T(3), 3)
#   f(T(3), 4)
def f(x, n):
    y = x + 1
    assert n == 3, "n"
    return y

# an unhashable key:
#   f(T(1), o)
class C:
    def __eq__(self, o): return True
o = C()
def f(x, o):
    y = x + 1
    d = {o: 1}
    return y

# a dict that grows while it is walked:
#   f(T(1), {"a": 1, "b": 2})
def f(x, d):
    y = x + 1
    for k in d:
        d[k + "z"] = 1
    return y

# a dict whose keys change while it is walked:
#   f(T(1), {"a": 1, "b": 2})
def f(x, d):
    y = x + 1
    for k in d:
        del d[k]
        d[k] = 5
    return y

# operands that both decline:
#   f(T(1), A(), A())
class A:
    def __sub__(self, o): return NotImplemented
    def __rsub__(self, o): return 3
def f(x, a, b):
    y = x + 1
    return y, a - b

# an error in __enter__:
#   f(T(1))
class M:
    def __enter__(self):
        raise ValueError("e")
    def __exit__(self, *e):
        print("exit")
def f(x):
    y = x + 1
    with M():
        y = y * 2
    return y

# an exception is raised again:
#   f(T(1), 0)
def f(x, n):
    y = x + 1
    try:
        raise ValueError("a")
    except ValueError:
        raise
    return y

# an exception in a handler:
#   f(T(1), 0)
def f(x, n):
    y = x + 1
    try:
        raise ValueError("a")
    except ValueError:
        raise KeyError("b")

# something that is no exception is raised:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        raise 5
    except TypeError as e:
        return y, str(e)

# an except clause with something that is no class:
#   f(T(1))
def f(x):
    y = x + 1
    try:
        raise ValueError("a")
    except 5:
        pass
    return y
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_error_is_that_of_plain_python(program):
    program.check()
