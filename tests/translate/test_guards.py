"""What the trace depended on is guarded: something changes between the calls, and the result follows."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# an argument's value, shape, dtype, layout or requires_grad:
#   f(T(2), 2)
#   f(T(2), 3)
#   f(T(3), 3)
#   f(T(2).double(), 2)
#   f(T(2, requires_grad=True), 2)
#   f(T(2,2).t(), 2)
#   f(T(2,2), 2)
def f(x, n):
    return x * n + x.numel() + (10 if x.is_contiguous() else 20)

# a global gets another value or type:
#   f(T(2))
#   globals().__setitem__("k", 5) or f(T(2))
#   globals().__setitem__("k", 5.0) or f(T(2))
#   globals().__setitem__("k", T(2)) or f(T(2))
k = 3
def f(x):
    return x * k

# a closure cell is assigned:
#   (f(T(2)), setk(4), f(T(2)), setk(True), f(T(2)))
def outer():
    k = 3
    def f(x):
        return x * k
    def setk(v):
        nonlocal k
        k = v
    return f, setk
f, setk = outer()

# a default of the function itself:
#   (f(T(2)), setattr(raw, "__defaults__", (4,)), f(T(2)), setattr(raw, "__defaults__", (1, 4)), f(2))
def f(x, k=3):
    return x * k + torch.ones(2)
raw = f

# a default of an inlined function:
#   f(T(2))
#   setattr(g, "__defaults__", (4,)) or f(T(2))
#   setattr(g, "__defaults__", (7, 8, 4)) or f(T(2))
#   setattr(g, "__defaults__", None) or f(T(2))
def g(x, k=3):
    return x * k
def f(x):
    return g(x) + 1

# a keyword default of an inlined function:
#   (f(T(2)), setattr(g, "__kwdefaults__", {"k": 4}), f(T(2)), g.__kwdefaults__.__setitem__("k", 5), f(T(2)))
#   setattr(g, "__kwdefaults__", None) or f(T(2))
def g(x, *, k=3):
    return x * k
def f(x):
    return g(x) + 1

# a closure cell of an inlined function:
#   (f(T(2)), setk(4), f(T(2)))
def outer():
    k = 3
    def g(x):
        return x * k
    def setk(v):
        nonlocal k
        k = v
    return g, setk
g, setk = outer()
def f(x):
    return g(x) + 1

# a global of an inlined function of another module:
#   (f(T(2)), ns.__setitem__("k", 5), f(T(2)))
#   globals().__setitem__("h", types.FunctionType(h.__code__, {"k": 7, "__builtins__": __builtins__})) or f(T(2))
import types
ns = {"k": 3}
exec("def h(x): return x + k", ns)
h = ns["h"]
def f(x):
    return h(x)

# an inlined function gets other globals:
#   f(T(2))
#   globals().__setitem__("h", types.FunctionType(h.__code__, {"k": 7, "__builtins__": __builtins__})) or f(T(2))
import types
k = 1
def h(x): return x + k
def f(x):
    return h(x)

# the code of a function is replaced:
#   f(T(2))
#   setattr(g, "__code__", h.__code__) or f(T(2))
#   setattr(raw, "__code__", h.__code__) or f(T(2))
def g(x): return x + 1
def h(x): return x + 2
def f(x):
    return g(x) * 2
raw = f

# a global function is replaced:
#   f(T(2))
#   globals().__setitem__("g", lambda x: x * 7) or f(T(2))
def g(x): return x + 1
def f(x):
    return g(x) * 2

# a builtin is shadowed by a global, and no longer:
#   f(T(2), [1])
#   globals().__setitem__("len", lambda l: 5) or f(T(2), [1])
#   globals().pop("len") and f(T(2), [1])
def f(x, l):
    return x + len(l)

# attributes of a module, and the module itself:
#   f(T(2))
#   setattr(m, "k", 4) or f(T(2))
#   setattr(m, "k", 4.0) or f(T(2))
#   setattr(m, "h", lambda x: x * 5) or f(T(2))
#   globals().__setitem__("m", m2) or f(T(2))
import types as ty
m = ty.ModuleType("m")
m.k = 3
m.h = lambda x: x * 2
m2 = ty.ModuleType("m2"); m2.k = 9; m2.h = m.h
def f(x):
    return m.h(x) + m.k

# items and length of a list, and its type:
#   f(T(2), l)
#   l.__setitem__(0, 5) or f(T(2), l)
#   l.append(6) or f(T(2), l)
#   f(T(2), tuple(l))
#   f(T(2), (5,))
l = [1]
def f(x, l):
    for i in l:
        x = x + i
    return x

# items of nested lists and tuples:
#   f(T(2), [[1], (2, [3])])
#   f(T(2), [[1], (2, [4])])
#   f(T(2), [[1], (2, [3, 4])])
#   f(T(2), [(1,), (2, [3])])
def f(x, l):
    a, (b, c) = l
    return x + a[0] + b + c[0] + len(c)

# types of equal numbers:
#   f(T(2), 1)
#   f(T(2), True)
#   f(T(2), 1.0)
#   f(T(2), I(1))
#   f(T(2), None)
#   f(T(2), "a")
class I(int):
    def __add__(self, o): return 100
def f(x, n):
    if n is None: return x
    if isinstance(n, str): return x + len(n)
    return x * (n + 1)

# None, a tensor, a list as the same argument:
#   f(T(2), None)
#   f(T(2), T(2))
#   f(T(2), [])
def f(x, n):
    if n:
        return x + 1
    return x + 2

# grad mode:
#   f(T(2, requires_grad=True))
#   torch.no_grad()(f)(T(2, requires_grad=True))
#   f(T(2, requires_grad=True))
def f(x):
    y = x * 2
    return y, y.requires_grad, torch.is_grad_enabled()

# the default dtype:
#   (torch.set_default_dtype(torch.float64), f())
#   (torch.set_default_dtype(torch.float32), f())
def f():
    y = torch.zeros(3)
    return y, y.dtype, y.element_size()

# two arguments that are one tensor:
#   (lambda a, b: f(a, b))(T(2), T(2))
#   (lambda a: f(a, a))(T(2))
#   (lambda a, b: f(a, b))(T(2), T(2))
def f(a, b):
    a.add_(1)
    return a is b, b + 1

# a tensor that is written, met again later in a list:
#   (lambda a, b: f(a, [b]))(T(2), T(2))
#   (lambda a: f(a, [a]))(T(2))
def f(a, l):
    a.add_(1)
    return l[0] + 1, l[0] is a

# lists compared by identity:
#   f(la, lb, T(1))
#   f(la, la, T(1))
#   f(la, lb, T(1))
la = [1]; lb = [1]
def f(a, b, x):
    if a is b:
        return x + 1
    return x + 2

# a list compared by identity with a global:
#   f(la, T(1))
#   globals().__setitem__("lb", la) or f(la, T(1))
la = [1]; lb = [1]
def f(a, x):
    if a is lb:
        return x + 1
    return x + 2

# functions of the same code with other closures:
#   (a := mk(1), b := mk(2)) and [f(a, T(1)), f(b, T(1)), f(a, T(1))]
#   f(mk(True), T(1))
def mk(k):
    return lambda x: x + k
def f(fn, x):
    return fn(x) * 2

# closures of one code object, each captured:
#   [h(T(1)) for h in (mk(1), mk(2), mk(3.0))]
def mk(k):
    @minidynamo.optimize("eager")
    def h(x): return x + k
    return h
def f(): pass

# a class attribute:
#   f(T(1))
#   setattr(K, "k", 5) or f(T(1))
class K: k = 3
def f(x):
    return x + K.k

# a range:
#   f(T(1), range(3))
#   f(T(1), range(4))
#   f(T(1), range(0, 3, 2))
def f(x, r):
    for i in r: x = x + i
    return x

# a dtype or device as argument:
#   f(T(1), torch.float64)
#   f(T(1), torch.float16)
#   f(T(1), torch.device("cpu"))
#   f(T(1), torch.device("meta"))
def f(x, d):
    return x.to(d)

# a slice:
#   f(T(3), slice(1, None))
#   f(T(3), slice(0, 2))
def f(x, s):
    return x[s] + 1

# a string:
#   f(T(1), "a")
#   f(T(1), "b")
def f(x, s):
    return x + 1 if s == "a" else x + 2

# bytes and bytearray:
#   f(T(1), b"a")
#   f(T(1), bytearray(b"a"))
def f(x, s):
    return x + len(s)

# a global that a resume function reads:
#   f(T(1), 3)
#   globals().__setitem__("k", 9) or f(T(1), 3)
k = 2
def f(x, n):
    y = x + n
    print("a")
    return y * k

# a global tensor:
#   f(T(1))
#   globals().__setitem__("w", T(2)) or f(T(1))
#   w.requires_grad_() and f(T(1))
w = T(1)
def f(x):
    return x * w

# an item that nobody reads may change:
#   f(T(1), [1, 2])
#   f(T(1), [1, "a"])
def f(x, l):
    return x + l[0]

# a parameter in place of a tensor:
#   f(T(2, requires_grad=True))
#   f(torch.nn.Parameter(T(2)))
def f(x):
    return x + 1, isinstance(x, torch.nn.Parameter)

# a function of other code under the same name:
#   f(T(2))
#   globals().__setitem__("g", h) or f(T(2))
def mk(n):
    exec(f"def q(x): return x + {n}", globals())
    return q
g = mk(1)
h = mk(2)
def f(x): return g(x)

# the name of a function with the same code:
#   f(T(2), g)
#   f(T(2), h)
def g(x): return x
def h(x): return x
h.__code__ = g.__code__
def f(x, fn):
    return fn(x) + len(fn.__name__) + (1 if fn.__name__ == "g" else 2)

# the name of a function is assigned:
#   f(T(2), g)
#   setattr(g, "__name__", "zzz") or f(T(2), g)
def g(x): return x
def f(x, fn):
    return fn(x) * 1, fn.__name__

# strides:
#   f(T(2, 3))
#   f(T(3, 2).t())
def f(x):
    return x.stride(), x + 1, x.is_contiguous()

# the storage offset:
#   f(T(4))
#   f(T(8)[4:])
def f(x):
    return x + 1, x.storage_offset()

# whether a tensor is a leaf:
#   f(T(4, requires_grad=True))
#   f(T(4, requires_grad=True) * 1)
def f(x):
    return x + 1, x.is_leaf

# the version counter:
#   f(T(4))
#   f(T(4).add_(1))
def f(x):
    return x + 1, x._version

# the gradient of a tensor:
#   f(T(4, requires_grad=True))
def f(x):
    return x + 1, x.grad is None, x.grad_fn is None

# a class gets __bool__ or __len__:
#   f(T(1), o)
#   setattr(C, "__bool__", lambda s: False) or f(T(1), o)
#   delattr(C, "__bool__") or f(T(1), o)
#   setattr(C, "__len__", lambda s: 0) or f(T(1), o)
class C: pass
o = C()
def f(x, o):
    return x + 1 if o else x + 2

# a class gets a property over a stored attribute:
#   f(T(1), o)
#   setattr(C, "a", property(lambda s: 7, lambda s, v: print("set", v))) or f(T(1), o)
class C: pass
o = C()
def f(x, o):
    o.a = 3
    return x + o.a

# a class attribute becomes a property:
#   f(T(1), o)
#   setattr(C, "a", property(lambda s: 7, lambda s, v: print("set", v))) or f(T(1), o)
class C:
    a = 1
o = C()
def f(x, o):
    o.a = 3
    return x + o.a

# a class gets __setattr__:
#   f(T(1), o)
#   setattr(C, "__setattr__", lambda s, n, v: print("sa", n)) or f(T(1), o)
class C:
    a = 1
o = C()
def f(x, o):
    o.a = 3
    return x + o.a

# a class gets __getattribute__:
#   f(T(1), o)
#   setattr(C, "__getattribute__", lambda s, n: 9) or f(T(1), o)
class C:
    a = 1
o = C()
def f(x, o):
    return x + o.a

# an attribute that __getattr__ made up comes into being:
#   f(T(1), o)
#   setattr(C, "zz", 5) or f(T(1), o)
#   setattr(o, "zz", 6) or f(T(1), o)
class C:
    def __getattr__(self, n): return len(n)
o = C()
def f(x, o):
    return x + o.zz

# an instance attribute is set, deleted, hidden by the class:
#   f(T(1), o)
#   setattr(o, "a", 5) or f(T(1), o)
#   delattr(o, "a") or f(T(1), o)
#   setattr(C, "a", 8) or f(T(1), o)
#   setattr(o, "a", T(1)) or f(T(1), o)
class C:
    a = 1
o = C()
def f(x, o):
    return x + o.a

# a method is replaced in the class, in the instance, by a subclass:
#   f(T(1), o)
#   setattr(C, "m", lambda s, x: x + 5) or f(T(1), o)
#   setattr(o, "m", lambda x: x + 7) or f(T(1), o)
#   f(T(1), D())
class C:
    def m(self, x): return x * 2
class D(C):
    def m(self, x): return super().m(x) + 1
o = C()
def f(x, o):
    return o.m(x) + 1

# a method of the base class is replaced:
#   f(T(1), o)
#   setattr(A, "m", lambda s, x: x + 50) or f(T(1), o)
class A:
    def m(self, x): return x * 2
class B(A):
    def m(self, x): return super().m(x) + 1
o = B()
def f(x, o):
    return o.m(x) + 1

# a property's data, the property itself:
#   f(T(1), o)
#   setattr(o, "_p", 4) or f(T(1), o)
#   setattr(C, "p", property(lambda s: 100)) or f(T(1), o)
#   setattr(C, "p", 3) or f(T(1), o)
class C:
    def __init__(self): self._p = 3
    @property
    def p(self): return self._p
o = C()
def f(x, o):
    return x + o.p

# the class of an object:
#   f(T(1), o)
#   setattr(o, "__class__", D) or f(T(1), o)
class C:
    a = 1
class D:
    a = 2
o = C()
def f(x, o):
    return x + o.a

# the __init__ and attributes of a class that is instantiated:
#   f(T(1))
#   setattr(C, "__init__", init2) or f(T(1))
#   setattr(C, "k", 9) or f(T(1))
class C:
    k = 1
    def __init__(self, v): self.v = v
    def get(self): return self.v * self.k
def init2(self, v): self.v = v + 100
def f(x):
    return C(x).get() + 1

# a class gets __eq__:
#   f(T(1), a, b)
#   setattr(C, "__eq__", lambda s, o: True) or f(T(1), a, b)
class C: pass
a, b = C(), C()
def f(x, a, b):
    return x + 1 if a == b else x + 2

# a class's __call__:
#   f(T(1), o)
#   setattr(C, "__call__", lambda s, x: x * 9) or f(T(1), o)
class C:
    def __call__(self, x): return x + 1
o = C()
def f(x, o):
    return o(x) * 2

# a class gets __call__:
#   f(T(1), o)
#   setattr(C, "__call__", lambda s, x: x * 9) or f(T(1), o)
class C: pass
o = C()
def f(x, o):
    return x + 1, callable(o), isinstance(o, C), type(o) is C

# slots are set and deleted:
#   f(T(1), o)
#   setattr(o, "a", 5) or f(T(1), o)
#   delattr(o, "a") or f(T(1), o)
class C:
    __slots__ = ("a", "b")
    def __init__(self): self.a = 1
o = C()
def f(x, o):
    o.b = x + o.a
    return o.b

# a dict in a class attribute:
#   f(T(1), o)
#   o.d.__setitem__("k", 7) or f(T(1), o)
#   o.d.__setitem__("z", 7) or f(T(1), o)
class C:
    d = {"k": 1}
o = C()
def f(x, o):
    return x + o.d["k"] + len(C.d)

# an attribute that is read and not used is deleted:
#   f(T(1), o)
#   delattr(o, "a") or f(T(1), o)
class C: pass
o = C()
o.a = 3
def f(x, o):
    y = o.a
    return x + 1

# keys of a dict appear and vanish:
#   f(T(1), d)
#   d.__setitem__("a", 5) or f(T(1), d)
#   d.pop("a") and f(T(1), d)
#   d.__setitem__("b", 5) or f(T(1), d)
d = {"a": 1}
def f(x, d):
    return x + d.get("a", 10) + len(d), "b" in d

# keys and order of a dict that is walked:
#   f(T(1), d)
#   d.__setitem__("c", 5) or f(T(1), d)
#   (d.__setitem__("a", d.pop("a")), f(T(1), d))
d = {"a": 1, "b": 2}
def f(x, d):
    for k, v in d.items():
        x = x * v + len(k)
    return x, list(d), list(d.values())

# the globals of two functions that were one dict:
#   f(T(1))
#   f(T(1))
#   globals().__setitem__("r", types.FunctionType(r.__code__, {"k": 100, "__builtins__": __builtins__})) or f(T(1))
import types
ns = {"k": 1}
exec("def s():\n    global k\n    k += 1\n    return k\ndef r(): return k", ns)
s = ns["s"]; r = ns["r"]
def f(x):
    return x + s() + r()

# the globals of two functions become one dict:
#   f(T(1))
#   globals().__setitem__("r", types.FunctionType(r.__code__, s.__globals__)) or f(T(1))
import types
ns = {"k": 1}
ns2 = {"k": 50}
exec("def s():\n    global k\n    k += 1\n    return k", ns)
exec("def r(): return k", ns2)
s = ns["s"]; r = ns2["r"]
def f(x):
    return x + s() + r()

# an argument that is the globals of a function:
#   f(T(1), {"k": 5})
#   f(T(1), ns)
#   f(T(1), {"k": 5})
ns = {"k": 1}
exec("def r(): return k", ns)
r = ns["r"]
def f(x, d):
    d["k"] = 77
    return x + r()

# the order of keywords:
#   f(T(1), b=1, a=2)
#   f(T(1), a=2, b=1)
def f(x, **kw):
    return x + 1, list(kw.items())

# a global that is only handed on is deleted:
#   f(T(1))
#   globals().pop("g") and f(T(1))
g = 5
def f(x):
    x.add_(1)
    return g

# a default dtype that only a torch function sees:
#   (torch.set_default_dtype(torch.float64), f())
#   (torch.set_default_dtype(torch.float32), f())
def f():
    return torch.add(torch.zeros(3), 1)

# a class attribute that decides whether an exception is raised:
#   f(T(1))
#   setattr(P, "kind", 1) or f(T(1))
class P: kind = 0
class A(Exception): pass
def g():
    if P.kind: raise A
def f(x):
    try:
        g()
    except A:
        return x * 100
    return x + 1

# two objects that share a list:
#   f(T(1), a, b)
#   f(T(1), a, a)
class C: pass
a = C(); b = C(); a.l = [1]; b.l = a.l
def f(x, a, b):
    a.l.append(2)
    return x + len(b.l)

# two objects come to share a list:
#   f(T(1), a, b)
#   setattr(b, "l", a.l) or f(T(1), a, b)
class C: pass
a = C(); b = C(); a.l = [1]; b.l = [1]
def f(x, a, b):
    a.l.append(2)
    return x + len(b.l)

# an attribute that is the tensor written:
#   (lambda t: f(a, t))(T(1))
#   setattr(a, "t", gt) or f(a, gt)
class C: pass
a = C(); a.t = T(1); gt = T(1)
def f(a, t):
    t += 1
    return a.t * 2

# functions that share a cell, and functions that do not:
#   f(T(1), g, h)
#   f(T(1), *mk())
#   (lambda p, q: f(T(1), p[0], q[1]))(mk(), mk())
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
def f(x, g, h):
    a = g(x)
    return a + h(), h()

# two arguments that are one dict:
#   f(T(1), d, d)
#   f(T(1), d, {"a": 1})
#   f(T(1), {"a": 1}, {"a": 1})
d = {"a": 1}
def f(x, d, e):
    d["a"] = 5
    return x + e["a"]

# two arguments that are one list:
#   f(T(1), l, l)
#   f(T(1), l, [1])
#   f(T(1), [1], [1])
l = [1]
def f(x, d, e):
    d[0] = 5
    d.append(3)
    return x + e[0] + len(e)

# two arguments that are one object:
#   f(T(1), o, o)
#   f(T(1), o, p)
#   f(T(1), p, o)
class C: pass
o = C(); o.a = 1
p = C(); p.a = 2
def f(x, d, e):
    d.a = 5
    return x + e.a
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_change_between_calls_is_seen(program):
    program.check()
