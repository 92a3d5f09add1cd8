"""Classes, metaclasses, descriptors and special methods that change between calls are seen; effects keep their order."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# factory changed:
#   (f(T(2), d), d.clear(), setattr(d, "default_factory", lambda: 5), f(T(2), d))
from collections import defaultdict
d = defaultdict(int)
def f(x, d): return x * (d["a"] + 1)

# deque changed:
#   f(T(2), deque([1, 2], 3))
#   f(T(2), deque([1, 2], 2))
#   f(T(2), deque([1, 3], 2))
#   f(T(2), deque([1, 3]))
#   f(T(2), deque([1, 3, 4]))
from collections import deque
def f(x, d):
    d.append(5)
    return x * d[0] + len(d)

# one deque twice:
#   f(T(2), D, D)
#   f(T(2), D, deque([1]))
from collections import deque
D = deque([1])
def f(x, a, b):
    a.append(4)
    return x * len(b)

# ordered dict order:
#   f(T(2), OrderedDict(a=1, b=2))
#   f(T(2), OrderedDict(b=2, a=1))
from collections import OrderedDict
def f(x, d):
    return x * next(iter(d.values())), d == OrderedDict(a=1, b=2), d == {"a": 1, "b": 2}

# match args changed:
#   (f(T(2), P()), setattr(P, "__match_args__", ("b",)), f(T(2), P()))
class P:
    __match_args__ = ("a",)
    a, b = 2, 5
def f(x, p):
    match p:
        case P(v): return x * v

# init appears:
#   (f(T(2)), setattr(P, "__init__", lambda self: setattr(self, "k", 9)), f(T(2)))
class P: k = 1
def f(x): return x * P().k

# new appears:
#   (f(T(2)), setattr(P, "__new__", staticmethod(lambda cls: Q())), f(T(2)))
class Q: k = 6
class P: k = 1
def f(x): return x * P().k

# setattr appears:
#   (f(T(2)), setattr(P, "__setattr__", lambda s, n, v: object.__setattr__(s, n, v + 1)), f(T(2)))
class P: pass
def f(x):
    p = P()
    p.k = 2
    return x * p.k

# str and format appear:
#   (f(T(2), p), setattr(P, "__str__", lambda s: "four"), f(T(2), p), setattr(P, "__format__", lambda s, t: "x"), f(T(2), p))
class P:
    def __repr__(self): return "ab"
p = P()
def f(x, p): return x * len(f"{p}")

# exception init and str appear:
#   (f(T(2)), setattr(E, "__str__", lambda s: "long text"), f(T(2)), setattr(E, "__init__", lambda s, *a: None), f(T(2)))
class E(Exception): pass
def f(x):
    x = x + 1
    try:
        raise E("a", 1)
    except E as e:
        return x * len(str(e)) + len(e.args)

# exception bases change:
#   (f(T(2)), setattr(E, "__bases__", (KeyError,)), f(T(2)))
class E(ValueError): pass
def f(x):
    x = x + 1
    try:
        raise E("a")
    except ValueError: return x * 2
    except KeyError: return x * 3

# metaclass attribute changes:
#   (f(T(2)), setattr(M, "p", property(lambda c: 5)), f(T(2)), setattr(M, "q", 8), f(T(2)))
class M(type):
    q = 1
    @property
    def p(cls): return 2
class A(metaclass=M): pass
def f(x): return x * A.p + A.q

# metaclass shadows:
#   (f(T(2)), setattr(M, "k", property(lambda c: 5)), f(T(2)))
class M(type): pass
class A(metaclass=M): k = 2
def f(x): return x * A.k

# descriptor replaced:
#   (f(T(2), A()), setattr(A, "d", 4), f(T(2), A()), setattr(D, "__get__", lambda s, o, t: 9), setattr(A, "d", D()), f(T(2), A()))
class D:
    def __get__(self, o, t=None): return 2
class A: d = D()
def f(x, a): return x * a.d

# class name changes:
#   (f(T(2), A()), setattr(A, "__name__", "Longer"), f(T(2), A()))
class A: pass
def f(x, a): return x * len(type(a).__name__)

# union and instance check change:
#   (f(T(2)), setattr(M, "__instancecheck__", lambda c, o: False), f(T(2)))
class M(type):
    def __instancecheck__(cls, o): return True
class A(metaclass=M): pass
def f(x): return x * 2 if isinstance(3, A) else x * 3

# slot property order of effects:
#   f(T(2), A(), [])
class A:
    def __init__(self): self.v = 0
    def __setattr__(self, n, v): object.__setattr__(self, n, v); LOG.append((n, v))
LOG = []
def f(x, a, l):
    l.append(1); a.v = 5; l.append(a.v); a.v = 6
    try:
        l.append(2)
        raise ValueError
    except ValueError:
        a.v = 7
    return x + a.v

# generator closes over effects:
#   f(T(2), [])
def g(l):
    try:
        while True:
            v = yield len(l)
            l.append(v)
    except KeyError as e:
        l.append(e.args)
        yield 5
    finally:
        l.append("end")
def f(x, l):
    it = g(l)
    next(it); it.send(3); a = it.throw(KeyError("k"))
    it.close()
    return x * a + len(l)

# context manager order:
#   f(T(2), [])
import contextlib
@contextlib.contextmanager
def cm(l, n):
    l.append(("in", n))
    try: yield n
    except ValueError as e: l.append(("caught", n, str(e))); raise KeyError("other") from e
    finally: l.append(("out", n))
def f(x, l):
    try:
        with cm(l, 1) as a, cm(l, 2) as b:
            x = x * a + b
            raise ValueError("v")
    except KeyError as e:
        l.append((type(e.__cause__).__name__, type(e.__context__).__name__, e.__suppress_context__))
    return x

# StopIteration in a generator:
#   f(T(2))
def g():
    yield 1
    raise StopIteration(4)
def f(x):
    it = g(); next(it)
    try: next(it)
    except RuntimeError as e: return x * 2, str(e), type(e.__cause__).__name__, e.__cause__.value
    return x

# a method appears between a class and the one that super finds:
#   (f(T(2), D()), setattr(B, "m", lambda self: 100), f(T(2), D()))
class A:
    def m(self): return 1
class B(A): pass
class C(A):
    def m(self): return 7
class D(B, C):
    def m(self): return super().m() + 5
def f(x, d): return x * d.m()

# an attribute appears between, where there was none:
#   (f(T(2), D()), setattr(B, "m", lambda self: 100), f(T(2), D()))
class B: pass
class C:
    def m(self): return 7
class D(B, C):
    def m(self): return super().m() + 5
def f(x, d): return x * d.m()
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
