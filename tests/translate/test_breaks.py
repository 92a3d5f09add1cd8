"""Graph breaks: what plain Python does in between, and how the frame goes on."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# print inside a loop over a range:
#   f(T(1), 3)
def f(x, n):
    for i in range(n):
        x = x + i
        print(i)
    return x

# print inside a loop over a list:
#   f(T(1), [1, 2, 3])
def f(x, l):
    for i in l:
        x = x + i
        print(i)
    return x

# print inside a loop of two thousand rounds:
#   f(T(1))
def f(x):
    for i in range(2000):
        x = x + i
        print(i)
    return x

# a loop on a tensor, of two thousand rounds:
#   f(T(1))
def f(x):
    while x.sum() < 2000:
        x = x + 1
    return x

# breaks inside of functions that are called:
#   f(T(1))
def g(x):
    y = x + 1
    print("g")
    return y * 2
def f(x):
    a = g(x)
    b = g(a)
    return a + b

# values on the stack while a call breaks:
#   f(T(1))
def f(x):
    return (x + 1) + len([print("a"), x * 2]) * (x - 1)

# several breaks in one frame:
#   f(T(1))
def f(x):
    a = x + 1
    print("1")
    b = a * 2
    print("2", b)
    c = b - a
    print("3")
    d = c + a
    return a, b, c, d

# breaks inside of arguments:
#   f(T(1))
def g(*a): return sum(a[1:], a[0])
def f(x):
    return g(x + 1, len([print("a")]), x * 2, [print("b"), x][1])

# breaks inside of displays:
#   f(T(1))
def f(x):
    return [x + 1, (print("a"), x * 2), [x, print("b")], x + 3]

# a property that prints:
#   f(T(1), o)
class C:
    @property
    def p(self):
        print("p")
        return 3
o = C()
def f(x, o):
    return x + o.p * 2, o.p

# branches on tensors in expressions:
#   f(T(1))
def f(x):
    y = (x + 1) if x.sum() > 0 and x.mean() < 5 else (x - 1)
    return y if y.sum() > 100 or y.mean() > 1 else x

# not, and, assert on tensors:
#   f(T(1))
def f(x):
    if not x.any():
        return x + 1
    assert x.sum() > 0, "bad"
    return x * 2

# a chained comparison of tensors:
#   f(T(1))
def f(x):
    if 0 < x.sum() < 10:
        return x + 1
    return x - 1

# a conditional expression on a tensor:
#   f(T(1))
#   f(-T(1))
def f(x):
    y = x * 2 if x.sum() > 0 else x - 1
    return y + 1

# a call with keywords breaks:
#   f(T(1))
def f(x):
    print("a", x + 1, sep="-", end="!\n")
    return x

# a comprehension breaks:
#   f(T(1))
def f(x):
    y = x + 1
    l = [print(i) for i in range(2)]
    return l, y * 2

# a comprehension with a condition on a tensor:
#   f(T(1))
def f(x):
    y = x + 1
    return [y for i in range(2) if y > 0]

# tensors become Python numbers:
#   f(torch.tensor(2.0))
def f(x):
    y = x + 1
    return float(y), int(y), bool(y), y.item()

# item() in a loop:
#   f(T(3))
def f(x):
    s = 0
    for v in x:
        s = s + v.item()
    return s + x

# tolist():
#   f(T(3))
def f(x):
    y = x * 2
    return y.tolist(), y + 1

# numpy:
#   f(T(3))
def f(x):
    y = x * 2
    n = y.numpy()
    return n.sum().item(), y + 1

# item() of a tensor without dimensions:
#   f(torch.tensor(3.0))
#   f(torch.tensor(4))
def f(x):
    return x * 2 + x.item()

# backward():
#   (lambda x: (f(x), x.grad))(T(3, requires_grad=True))
def f(x):
    y = (x * 2).sum()
    y.backward()
    return y

# a generator as argument (plain):
#   f(T(1), (i for i in range(3)))
def f(x, g):
    for i in g:
        x = x + i
    return x

# an iterator as argument, advanced here:
#   (lambda it: (f(T(1), it), list(it)))(iter([1, 2, 3]))
def f(x, it):
    a = next(it)
    for b in it:
        return x + a + b

# an object that is its own iterator:
#   f(T(1), It())
class It:
    def __init__(self): self.n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        if self.n > 3: raise StopIteration
        return self.n
def f(x, it):
    for v in it:
        x = x * v
    return x, it.n

# iteration by __getitem__:
#   f(T(1), G())
class G:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i * 2
def f(x, g):
    y = x + 1
    return [v for v in g], y, 4 in g

# a context manager of contextlib:
#   f(T(1))
import contextlib
@contextlib.contextmanager
def ctx():
    print("in")
    yield 1
    print("out")
def f(x):
    y = x + 1
    with ctx() as c:
        z = y + c
    return z * 2

# functools.partial:
#   f(T(1))
import functools
def g(a, b): return a * b
p = functools.partial(g, b=3)
def f(x):
    return p(x) + 1

# a break inside of a mapped function:
#   f(T(1))
def show(v):
    print(v)
    return v + 1
def f(x):
    m = map(show, [1, 2, 3])
    y = x + 1
    a = next(m)
    z = y * a
    for v in m:
        z = z + v
    return z, list(m)

# a dict iterator lives on after a break:
#   f(T(1), {"a": 1, "b": 2, "c": 3})
def f(x, d):
    y = x + 1
    it = iter(d.items())
    a = next(it)
    print("mid")
    b = next(it)
    return y, a, b, list(it)

# an iterator over a dict made here lives on:
#   f(T(1))
def f(x):
    d = {"a": x, "b": x + 1}
    d["q"] = 5
    it = iter(d.values())
    a = next(it)
    d["a"] = 7
    print("mid")
    b = next(it)
    return a, b, list(it), d

# a generator lives on after a break:
#   f(T(1))
def gen(x, n):
    for i in range(n):
        yield x + i
def f(x):
    x = x * 2
    g = gen(x, 4)
    a = next(g)
    print("mid")
    b = next(g)
    for v in g:
        b = b + v
    return a + b

# a warning:
#   f(T(1))
import warnings
def f(x):
    y = x + 1
    warnings.warn("hey")
    return y * 2

# logging:
#   f(T(1))
import logging
def f(x):
    y = x + 1
    logging.getLogger("q").info("hey %s", 1)
    return y * 2

# sys._getframe sees all variables:
#   f(T(1))
import sys
def f(x):
    y = x + 1
    fr = sys._getframe()
    z = y * 2
    return sorted(fr.f_locals), fr.f_code.co_name, fr.f_lineno, z

# sys._getframe under another name:
#   f(T(1))
import sys
gf = sys._getframe
def f(x):
    y = x + 1
    q = 3
    fr = gf()
    z = y * 2
    return sorted(fr.f_locals), fr.f_code.co_name

# locals():
#   f(T(1))
def f(x):
    y = x + 1
    z = 3
    return sorted(locals())

# locals() under another name:
#   f(T(1))
L = locals
def f(x):
    y = x + 1
    q = L()
    return sorted(q), y * 2

# a function that breaks, then looks at its caller:
#   g(T(1))
import sys
def f(x):
    y = x + 1
    print("before")
    fr = sys._getframe(1)
    return y, fr.f_code.co_name, fr.f_lineno
def g(x):
    return f(x)

# a warning for the caller:
#   g(T(1))
import warnings
def f(x):
    y = x + 1
    print("before")
    warnings.warn("for the caller", stacklevel=2)
    return y
def g(x):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        f(x)
    return [(w.lineno, str(w.message)) for w in told]

# a function that looks at its caller:
#   f(T(1))
import sys
def who():
    fr = sys._getframe(1)
    return fr.f_code.co_name, fr.f_lineno
def f(x):
    y = x + 1
    w = who()
    return y * 2, w

# eval sees the variables:
#   f(T(1))
def f(x):
    y = x + 1
    return eval("y + x")

# exec with a dict:
#   f(T(1))
def f(x):
    y = x + 1
    d = {}
    exec("z = 3", globals(), d)
    return y * d["z"]

# eval, and its result is used:
#   f(T(1))
def f(x):
    y = x + 1
    z = eval("y * 2")
    w = z + 1
    return w
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_frame_goes_on_after_breaks_as_in_plain_python(program):
    program.check()
