"""Small programs of the captured language and of its edges: name -> (source, calls). Each is run in many ways by the tests around."""

from __future__ import annotations

PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {}
TEXT = """
# arithmetic: f(T(3), 2)
def f(x, n):
    y = x * n + 1
    z = -y / (n - 0.5)
    return z ** 2 - x // 2, n % 2, n << 3

# chain of comparisons: f(T(3), 2); f(T(3), 7)
def f(x, n):
    if 0 < n < 5 and n != 3:
        return x + n
    return x - n

# stack values live: f(T(2))
def f(x):
    return (x + 1) * (len([x, x * 2]) + (x - 1)) - [x, x + 3][1]

# calls in all forms: f(T(2), 3)
def g(a, b=1, *rest, c=2, d=3):
    return a * b + c - d + len(rest)
def f(x, n):
    return g(x), g(x, n), g(x, n, 4, 5, c=n), g(b=n, a=x, d=1), g(*[x, n]), g(*(x,), n)

# positional only: f(T(2), 3)
def g(a, b, /, c=1, *, d=2):
    return a + b * c - d
def f(x, n):
    return g(x, n), g(x, n, 3), g(x, n, c=4, d=5)

# lambdas and defaults: f(T(2))
def f(x):
    twice = lambda v, k=2: v * k
    by_index = [lambda v, i=i: v + i for i in range(3)]
    return twice(x) + twice(x, 3), [g(x) for g in by_index]

# closure: f(T(2), 3)
def f(x, n):
    y = x + n
    def g(v):
        return v * y + n
    n = n + 1
    return g(x), g(y)

# closure that escapes: [g() for g in f(T(2), 3)]
def f(x, n):
    y = x + n
    parts = [y]
    def g():
        return y, parts, n
    def h():
        return parts
    return g, h

# a function over a new cell is called at once: f(T(1))
def f(x):
    a = x + 1
    def g():
        b = a * 2
        def h():
            return a + b
        return h
    return g()(), [k(x) for k in [lambda v: v + i for i in range(2)]]

# counter in a cell: f(T(2))
def f(x):
    n = 0
    def step(v):
        nonlocal n
        n = n + 1
        return v * n
    a = step(x)
    b = step(a)
    return a, b, n

# cells of arguments: f(T(2), 3)
def f(x, n):
    def g():
        return x * n
    a = g()
    x = x + 1
    n = n + 1
    return a, g(), g

# recursion: f(T(2), 4)
def f(x, n):
    if n == 0:
        return x
    return f(x + n, n - 1) * 2

# local recursion: f(T(2), 4)
def f(x, n):
    def down(m):
        return x if m == 0 else down(m - 1) * m
    return down(n)

# for over a range: f(T(2), 4)
def f(x, n):
    total = x
    for i in range(n):
        if i == 1:
            continue
        if i == 3:
            break
        total = total + x * i
    else:
        total = total * 100
    return total

# for over lists and tuples: f(T(2), [1, 2], (3, 4))
def f(x, l, t):
    for a in l:
        for b in t:
            x = x + a * b
    return x, l, t

# while: f(T(2), 4)
def f(x, n):
    while n > 0:
        x = x + n
        n -= 1
        if n == 2:
            break
    return x, n

# list grows while it is walked: f(T(2))
def f(x):
    l = [x, x + 1]
    out = x
    for i, v in enumerate(l):
        out = out + v * i
        if len(l) < 4:
            l.append(v * 2)
    return out, l

# zip and reversed: f(T(2))
def f(x):
    l = [x, x + 1, x + 2]
    out = x
    for a, b in zip(l, (1, 2, 3, 4)):
        out = out + a * b
    for v in reversed(l):
        out = out - v
    return out, l

# map, filter, sorted: f(T(2))
def f(x):
    a = [v for v in map(lambda v, w: v * w + x, [1, 2, 3], (4, 5))]
    b = list(filter(lambda v: v != 2, range(4)))
    return a, b, sorted(b, key=lambda v: -v), sum(a), sum(b)

# comprehensions: f(T(2))
def f(x):
    n = 2
    rows = [[x + i * j for j in range(i)] for i in range(3) if i]
    flat = [v for row in rows for v in row]
    return rows, flat, [x * n for n in range(2)], n

# unpacking: f(T(2), (T(3), (4, 5)))
def f(x, t):
    a, (b, c) = t
    d, *e = [a, b, c, x]
    *g, h = x
    first, second = x.shape[0], x + 1
    a, b = b, a
    return a, b, c, d, e, g, h, first, second

# tensor methods and attributes: f(T(2, 3))
def f(x):
    b, c = x.shape
    y = x.reshape(b * c).view(c, b).t()
    return y + x.T.sum() * 0, x.size(0), x.dim(), x.dtype, x.mean(dim=1, keepdim=True), y.stride(), x.is_contiguous()

# subscripts: f(T(4, 4), 1)
def f(x, n):
    return x[n:], x[:, n], x[..., None], x[n:3, ::2], x[[0, n]], x[-1][0], (1, 2, 3)[n:], [x, n][0]

# in-place: (lambda a: (f(a), a))(T(4))
def f(x):
    y = x[:2]
    y += 1
    x[3] = 9
    x.mul_(2)
    z = x.view(2, 2)
    z[0, 1] = y[0]
    return y, z, x

# aliased arguments: (lambda a: (f(a, a), a))(T(3)); (lambda a, b: (f(a, b), a, b))(T(3), T(3))
def f(x, y):
    x += 1
    z = x + y
    return z, x is y

# branch on a tensor: f(T(2)); f(-T(2))
def f(x):
    y = x * 2 if x.sum() > 0 else x - 1
    if y.sum() > 100 or not y.any():
        return y
    return y + x

# loop on a tensor: f(T(2))
def f(x):
    n = 0
    while x.sum() < 30:
        x = x * 2
        n += 1
    return x, n

# prints: f(T(2), 3)
def f(x, n):
    y = x + 1
    print("first", n)
    z = y * n
    print("second", z, sep="|", end=".")
    return z - y

# print inside a loop: f(T(2), 3)
def f(x, n):
    for i in range(n):
        x = x + i
        print(i, x)
    return x

# break inside an expression: f(T(2))
def f(x):
    return [x + 1, (print("a"), x * 2), [x, print("b")]], x + 3

# break inside a call's arguments: f(T(2))
def g(*parts):
    return sum(parts[1:], parts[0])
def f(x):
    return g(x + 1, len([print("a")]), x * 2, [print("b"), x][1])

# break in an inlined function: f(T(2))
def g(x):
    y = x + 1
    print("inside")
    return y * 2
def f(x):
    a = g(x)
    return g(a) + a

# stores: (lambda o, l: (f(o, l, T(2)), o.a, l, total))(C(), [1, 2])
class C:
    pass
total = 0
def f(o, l, x):
    global total
    o.a = x + 1
    l[0] = o.a * 2
    total = total + 1
    l.append(x)
    return o.a + l[0] + total

# nonlocal of an outer function: g(T(2)); g(T(3))
def make():
    n = 1
    def f(x):
        nonlocal n
        n = n * 2
        return x + n
    return f
f = make()
def g(x):
    return f(x)

# user object: f(T(2), O())
class O:
    def __add__(self, other):
        print("add")
        return 5
    def __bool__(self):
        print("bool")
        return False
    def __getitem__(self, key):
        print("item", key)
        return key
    def __call__(self, v):
        return v + 1
    @property
    def p(self):
        print("p")
        return 3
def f(x, o):
    a = x + 1
    b = o + 1
    c = a * o[2] + o.p
    if o:
        c = c + 1
    return a, b, c, o(c), not o

# with and try: f(T(2), 0); f(T(2), 1)
class M:
    def __enter__(self):
        print("in")
        return 2
    def __exit__(self, *e):
        print("out", e[0])
def f(x, n):
    y = x + 1
    with M() as m:
        z = y * m
    try:
        z = z + 1 // n
    except ZeroDivisionError as e:
        print(e)
        z = z - 1
    finally:
        print("end")
    return z * 2

# all clauses: f(T(2), 0); f(T(2), 1); f(T(2), 2)
import sys
def f(x, n):
    y = x + 1
    try:
        y = y * 2
        k = [7, 8][n]
        y = y + k // n
    except ZeroDivisionError as e:
        print("zero", e, sys.exc_info()[1] is e)
        y = y - 1
    except (IndexError, KeyError):
        print(sys.exc_info()[0])
        y = y * 3
    else:
        print("else")
        y = y * 5
    finally:
        print("finally", sys.exc_info()[0])
        y = y + 0.5
    return y, sys.exc_info()

# exceptions raised while others are handled: f(T(2), 0); f(T(2), 1); f(T(2), 2)
import sys
def f(x, n):
    y = x + 1
    try:
        try:
            raise ValueError("first")
        except ValueError as first:
            y = y * 2
            try:
                if n == 0:
                    raise KeyError("second")
                if n == 1:
                    raise
                y = y * [1][n]
            except LookupError as second:
                print(repr(second), repr(second.__context__), sys.exc_info()[1] is second)
                y = y + len(second.args)
            print(sys.exc_info()[1] is first, first.__context__)
        print(sys.exc_info())
    except ValueError as e:
        print("outer", e, e.__context__)
        y = y - 5
    return y

# an exception passes finally, with and handlers of other kinds: f(T(2), 0); f(T(2), 1)
import sys
class M:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        return self
    def __exit__(self, kind, value, trace):
        print(self.name, kind, value, trace is None)
def g(n):
    return 4 // n
def f(x, n):
    y = x * 2
    try:
        with M("a") as a, M("b"):
            try:
                y = y * g(n)
            except KeyError:
                y = y - 1
            finally:
                y = y + 1
                print("finally", a.name)
        y = y * 7
    except ArithmeticError as e:
        print(e, [w for w in "ab"])
    return y

# the exception leaves: f(T(2), 0); f(T(2), 1)
def g(n):
    try:
        return 4 // n
    finally:
        print("g")
def f(x, n):
    y = x + 1
    try:
        try:
            z = y * g(n)
        except ZeroDivisionError as e:
            y = y + 1
            raise ValueError("other", y.shape) from e
    finally:
        print("end", y)
    return z

# a manager that swallows: f(T(2), 0); f(T(2), 1)
class M:
    log = []
    def __enter__(self):
        self.log.append("in")
        return self.log
    def __exit__(self, *details):
        self.log.append(details[0])
        return details[0] is ZeroDivisionError
def f(x, n):
    m = M()
    y = x + 1
    with m as log:
        y = y * 2
        y = y + 4 // n
        log.append("end")
    with m:
        return y * 3, log

# return, break and continue through finally: f(T(2), 3)
def f(x, n):
    for i in range(n):
        try:
            if i == 0:
                continue
            if i == 2:
                break
            x = x + i
        finally:
            print("leaving", i)
            x = x * 2
    try:
        return x + 1
    finally:
        print("last", x)

# branches and iteration on tensors in blocks: f(T(2)); f(-T(2))
def f(x):
    y = x
    try:
        if x.sum() > 0:
            y = y + 1
        for row in x:
            y = y + row
        for p in iter([1, 2]):
            y = y * p
        assert y.sum() > 0, "positive"
    except AssertionError as e:
        print(e)
        y = y - 1
    return y

# errors of the program's objects: f(T(2), O()); f(T(2), O(1))
import sys
class O:
    def __init__(self, n=0):
        self.n = n
    def __bool__(self):
        print("bool", sys.exc_info()[0])
        raise OverflowError("bool", self.n)
    def __iter__(self):
        return self
    def __next__(self):
        self.n += 1
        if self.n > 2:
            raise LookupError("next")
        return self.n
def f(x, o):
    y = x + 1
    try:
        for i in o:
            y = y * i
    except LookupError:
        y = y + 10
        try:
            if o:
                y = y * 0
        except OverflowError as e:
            print(e, type(e.__context__), e.__context__)
            y = y + 100
    return y

# gradients are off inside: f(T(2, requires_grad=True), 0); f(T(2, requires_grad=True), 1)
def f(x, n):
    y = x * 2
    try:
        with torch.no_grad():
            z = y * 3
            print(torch.is_grad_enabled(), z.requires_grad)
            z = z + 1 // n
            with torch.enable_grad():
                w = y * z
                print(w.requires_grad, torch.is_grad_enabled())
            print(torch.is_grad_enabled())
    except ZeroDivisionError:
        print(torch.is_grad_enabled())
        w = y * 5
    return y.requires_grad, z.requires_grad, w, torch.is_grad_enabled()

# managers of contextlib: f(T(2), 0); f(T(2), 1)
import contextlib
@contextlib.contextmanager
def noting(name):
    print("in", name)
    try:
        yield len(name)
    except ZeroDivisionError as e:
        print("saw", e)
        raise
    finally:
        print("out", name)
def f(x, n):
    y = x + 1
    with contextlib.suppress(ArithmeticError), noting("one") as k:
        y = y * k
        y = y // (1 // n)
        with contextlib.nullcontext(y) as z, contextlib.ExitStack() as stack:
            stack.callback(print, "callback")
            y = z + stack.enter_context(noting("two"))
    return y

# an exception of the caller is handled meanwhile: f(T(2))
import sys
def g(x):
    y = x + 1
    try:
        [][y.dim()]
    except IndexError as e:
        print(type(e.__context__), sys.exc_info()[0])
        y = y * 2
    print(sys.exc_info()[0])
    return y
def f(x):
    try:
        {}["k"]
    except KeyError:
        y = g(x)
        try:
            raise ValueError
        except ValueError as e:
            print(type(e.__context__))
        return y, sys.exc_info()[0]

# called while an exception is handled: g(T(2), 0); g(T(2), 1)
import sys
def f(x, n):
    y = x + 1
    try:
        y = y + 4 // n
    except ZeroDivisionError as e:
        y = y * 2
        print(type(e.__context__), sys.exc_info()[0])
        if n:
            raise
    finally:
        print(sys.exc_info()[0])
    return y
def g(x, n):
    try:
        raise OSError("outside")
    except OSError as e:
        y = f(x, n)
        return y, sys.exc_info()[1] is e

# cells in handlers: f(T(2), 0); f(T(2), 1)
def f(x, n):
    seen = []
    def note(what):
        seen.append((what, n))
        return what
    y = x + 1
    try:
        z = y * (note(6) // n)
    except ZeroDivisionError as e:
        z = y + note(len(e.args))
        n = 9
        get = lambda: (n, z)
    else:
        get = lambda: seen
    return get(), seen, note(y)

# default that is mutated: f(T(2)); f(T(2))
def f(x, seen=[]):
    seen.append(x + 1)
    return seen, len(seen)

# unbound and deleted: f(T(2), True); f(T(2), False)
def f(x, c):
    if c:
        y = x + 1
    z = x * 2
    del x
    return y + z

# error in a graph: f(T(3), T(4))
def f(x, y):
    a = x * 2
    return a + y

# error after a break: f(T(2))
def f(x):
    y = x + 1
    print("a")
    z = y * 2
    return z + [1, 2][5]

# error inside an inlined function: f(T(2))
def g(x):
    z = x * 2
    return z[7]
def f(x):
    y = x + 1
    return g(y)

# constants: f(T(1), -0.0, True, 1, 1.0)
def f(x, z, t, i, r):
    return x * z, (t, i, r), 0.0, -0.0, (0.0, -0.0), 1j, [1, (2, None)], "s", b"b", ..., x + 1

# identity: (lambda t, l: f(t, t, l, l))(T(2), [1])
def f(x, y, l, m):
    z = x + 1
    w = z
    return x is y, l is m, z is w, z is x, z is not None, l is x, x.dtype is torch.float32

# f-strings and strings: f(T(2), 3, "ab")
def f(x, n, s):
    return x + len(s), f"{n:03d}|{s!r:>6}|{1.5:.2f}", s.upper() + "-".join([s, "c"]), "%s %d" % (s, n)

# locals: f(T(2))
def f(x):
    y = x + 1
    unused = 3
    names = sorted(locals())
    return names, y * 2
"""


def _read(text: str) -> None:
    for block in text.split("\n# ")[1:]:
        head, _, source = block.partition("\n")
        name, _, calls = head.partition(": ")
        if name in PROGRAMS:
            raise ValueError(f"two programs named {name!r}")
        PROGRAMS[name] = (source, tuple(calls.split("; ")))


_read(TEXT)
