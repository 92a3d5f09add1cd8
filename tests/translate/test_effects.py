"""Changes of things outside happen as in plain Python, in the same order."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# a mutable default grows:
#   f(T(1))
#   f(T(1))
def f(x, acc=[]):
    acc.append(x + 1)
    return acc

# attributes are stored and read again:
#   f(o, T(3))
#   f(o, T(3))
class C: pass
o = C()
def f(o, x):
    o.a = x + 1
    o.b = o.a
    return o.a * 2

# a global is assigned:
#   f(T(3))
#   f(T(3))
g = 0
def f(x):
    global g
    g = g + 1
    return x + g

# an item of a list is assigned:
#   (lambda l: (f(l, T(3)), l))([1, 2])
def f(l, x):
    l[0] = x + 1
    return l[0] + l[1]

# an item of a list is deleted:
#   (lambda l: (f(T(1), l), l))([1, 2])
def f(x, l):
    del l[0]
    return x + l[0]

# a global and a list of the module:
#   f(T(1))
cnt = [0]
total = None
def f(x):
    global total
    total = x + 1
    cnt[0] += 1
    return total * 2, cnt

# an attribute is counted up:
#   f(o, T(1))
class C: n = 0
o = C()
def f(o, x):
    o.n += 1
    return x + o.n

# a dict is changed in every way:
#   (f(T(1), d), d)
d = {"a": 1, "b": 2}
def f(x, d):
    d["c"] = x + d["a"]
    d["a"] = d["c"] * 2
    del d["b"]
    v = d.pop("zz", 5)
    d.setdefault("q", []).append(x)
    d.update({"r": 1}, s=2)
    e = d.copy()
    e["only"] = 1
    return d["a"] + v, e

# lists in lists, and a list in itself:
#   (f(T(1), l), l)
l = [[1], [2]]
def f(x, l):
    a = l[0]
    a.append(x)
    l.append(a)
    l[1] = l
    return a[-1] + 1, l[2] is a, l[1] is l

# a new list and one from outside in each other:
#   (f(T(1), l), l)
l = []
def f(x, l):
    m = [x + 1, l]
    l.append(m)
    return m

# a global is read by an inlined function after it was assigned:
#   f(T(1))
#   f(T(1))
g = 1
import sys
me = sys.modules[__name__] if False else None
def h(): return g
def f(x):
    global g
    a = g
    g = g + 1
    return x + a + g + h()

# a closure cell is counted up and read by another function:
#   f(T(1))
#   f(T(1))
#   get()
def mk():
    n = 0
    def f(x):
        nonlocal n
        n += 1
        return x + n + peek()
    def peek(): return n
    return f, peek
f, get = mk()

# effects on both sides of a graph break:
#   f(T(1), o, [])
class C: pass
o = C(); o.a = 2
def f(x, o, l):
    o.a = x + 1
    l.append(o.a)
    print(o.a, l)
    o.a = o.a * 2
    l[0] = 1
    return o.a, l

# a function that runs in between sees the effects so far:
#   f(T(1))
st = {"v": 0}
def show(): print(st)
def f(x):
    st["v"] = 1
    y = x + 1
    show()
    st["v"] = 2
    return y * 2

# effects before an exception:
#   f(T(1), [])
#   (lambda l: [l])(gl)
gl = []
def f(x, l):
    gl.append(1)
    y = x + 1
    gl.append(2)
    z = [1][5]
    gl.append(3)
    return y

# effects before an operator that fails when it runs:
#   f(T(3), torch.tensor([7]))
#   (lambda l: [l])(gl)
gl = []
def f(x, i):
    gl.append(1)
    y = x[i]
    gl.append(2)
    return y

# a list is changed in every way:
#   (lambda l: (f(T(1), l), l))([1, 2, 3])
def f(x, l):
    l[0], l[1] = l[1], l[0]
    a = l.pop(0)
    l.insert(1, x)
    l += [a]
    l.extend((4, 5))
    l.reverse()
    del l[0]
    l[1:2] = [9, 9]
    return x + 1, l[0], len(l)

# a list is sorted:
#   (lambda l: (f(T(1), l), l))([3, 1, 2])
def f(x, l):
    l.sort()
    y = x + l[0]
    l.sort(key=lambda v: -v)
    l.remove(2)
    return y, l.index(1), l.count(3)

# an object with a history:
#   f(T(1), o)
#   f(T(1), o)
class C:
    def __init__(self): self.hist = []; self.n = 0
    def step(self, x):
        self.n += 1
        self.hist.append(x)
        return x * self.n + len(self.hist)
o = C()
def f(x, o):
    return o.step(x) + o.step(x)

# two functions share a cell:
#   f(T(1))
#   f(T(1))
def mk():
    n = 1
    def g(x):
        nonlocal n
        n += 1
        return x + n
    def h():
        return n
    return g, h
g, h = mk()
def f(x):
    a = g(x)
    return a + h(), h()

# two functions share a global:
#   f(T(1))
#   f(T(1))
k = 1
def h(): return k
def s(v):
    global k
    k = v
def f(x):
    s(h() + 1)
    return x + k + h()

# the globals of another module, by name and as a dict:
#   f(T(1))
#   f(T(1))
#   ns["k"]
ns = {"k": 1}
exec("def s():\n    global k\n    k += 1\n    return k\ndef r(): return k", ns)
s = ns["s"]; r = ns["r"]
def f(x):
    return x + s() + r() + ns["k"]

# globals of another module are assigned twice:
#   f(T(1))
#   f(T(1))
#   ns["k"], ns["c"]
ns = {"k": 1, "c": {}}
exec("def s():\n    global k, c\n    k += 1\n    c[k] = k\n    k += 1\n    c = {**c}\n    return k", ns)
s = ns["s"]
def f(x):
    return x + s() - s()

# the globals of the module, by name and as a dict:
#   f(T(1))
#   f(T(1))
k = 1
def f(x):
    global k
    k = k + 1
    return x + globals()["k"]

# a global is deleted:
#   f(T(1))
g = 1
def f(x):
    global g
    y = x + g
    del g
    return y

# an attribute of a class is assigned:
#   f(T(1), C)
#   f(T(1), C)
class C: k = 1
def f(x, c):
    c.k = c.k + 1
    return x + c.k

# an attribute of a function is assigned:
#   f(T(1))
#   f(T(1))
def g(): pass
g.n = 1
def f(x):
    g.n += 1
    return x + g.n

# an attribute of a module is assigned:
#   f(T(1))
#   f(T(1))
import types
m = types.ModuleType("m")
m.k = 1
def f(x):
    m.k += 1
    return x + m.k

# attributes are deleted and stored again:
#   f(T(1), o)
#   f(T(1), o)
class C: pass
o = C(); o.a = 1; o.b = 2
def f(x, o):
    y = x + o.a
    del o.a
    o.a = y
    del o.b
    o.b = 4
    return hasattr(o, "a"), o.__dict__

# a property with a setter:
#   f(T(1), o)
class C:
    _v = 1
    @property
    def v(self): return self._v
    @v.setter
    def v(self, n):
        print("set")
        self._v = n
o = C()
def f(x, o):
    o.v = 5
    return x + o.v

# a descriptor:
#   f(T(1), o)
class Dsc:
    def __get__(self, o, t):
        print("get")
        return 3
    def __set__(self, o, v): print("set", v)
class C:
    d = Dsc()
o = C()
def f(x, o):
    o.d = 4
    return x + o.d

# setattr and delattr:
#   f(T(1), o)
class C: pass
o = C(); o.a = 2
def f(x, o):
    y = x + 1
    setattr(o, "b", y)
    delattr(o, "a")
    return o.b * 2, vars(o)

# attributes are stored through the instance dict:
#   f(T(1), o)
class C: pass
o = C(); o.a = 2
def f(x, o):
    o.b = x + 1
    d = o.__dict__
    d["c"] = 3
    return o.c + o.b, d

# an attribute of a tensor is assigned:
#   f(T(1))
def f(x):
    x.foo = 3
    return x + 1, x.foo

# effects of a generator, between those of its user:
#   f(T(1))
log = []
def gen(x):
    log.append("a")
    yield x
    log.append("b")
    yield x + 1
def f(x):
    g = gen(x)
    log.append("start")
    a = next(g)
    log.append("mid")
    b = next(g)
    return a + b, log

# effects in a try statement:
#   f(T(1), 0)
#   f(T(1), 2)
log = []
def f(x, n):
    log.append("a")
    try:
        log.append("b")
        y = x + 1 // n
        log.append("c")
    except ZeroDivisionError:
        log.append("d")
        y = x
    finally:
        log.append("e")
    return y, log
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_effects_are_those_of_plain_python(program):
    program.check()


def test_the_modules_globals_as_an_argument():
    """They are changed as the dict that they are; what reads them by name sees the change."""
    text = "k = 0\ndef f(d, x):\n    y = x + 1\n    d['k'] = d['k'] + 1\n    return y"
    again = "k = 0\ndef f(d, x):\n    y = x + k\n    d['k'] = 5\n    return y + k"
    for source in (text, again):
        check(source, "f(globals(), T(3))", "f(globals(), T(3))", "f({'k': 1}, T(3))", "k")
