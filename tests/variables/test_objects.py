"""Objects of the user's classes."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# a method of a global object:
#   f(T(1))
class O:
    k = 3
    def m(self, x): return x * self.k
o = O()
def f(x):
    return o.m(x) + 1

# a module with functions:
#   f(T(1))
import types as ty
m = ty.ModuleType("m")
m.k = 3
m.h = lambda x: x * 2
def f(x):
    return m.h(x) + m.k

# an instance is made and used:
#   f(T(1))
class C:
    def __init__(self, v): self.v = v
def f(x):
    c = C(x + 1)
    return c.v * 2

# a namedtuple:
#   f(T(1))
import collections
P = collections.namedtuple("P", "a b")
def f(x):
    p = P(x, 1)
    q = p._replace(b=2)
    return p.a + q.b, p

# a dataclass is made:
#   f(T(1))
import dataclasses
@dataclasses.dataclass
class D:
    a: object
    b: int = 2
def f(x):
    d = D(x + 1)
    d.b += 1
    return d.a * d.b, d

# a dataclass as argument:
#   f(T(1), D(2))
#   f(T(1), D(3))
import dataclasses
@dataclasses.dataclass
class D:
    a: int
    b: list = dataclasses.field(default_factory=list)
def f(x, d):
    d.b.append(x)
    return x * d.a, len(d.b)

# an enum:
#   f(T(1), E.A)
#   f(T(1), E.B)
import enum
class E(enum.Enum):
    A = 1
    B = 2
def f(x, e):
    if e is E.A:
        return x + 1
    return x * e.value

# objects that refer to each other:
#   f(T(1))
class N:
    def __init__(self, v):
        self.v = v
        self.me = self
def f(x):
    a = N(x + 1)
    b = N(x + 2)
    a.other = b
    b.other = a
    return a

# a tree with parents:
#   f(T(1))
class N:
    def __init__(self, v, parent=None):
        self.v = v; self.parent = parent; self.kids = []
        if parent: parent.kids.append(self)
    def total(self): return self.v + sum(k.total() for k in self.kids)
def f(x):
    r = N(x)
    a = N(x + 1, r)
    b = N(x + 2, a)
    return r.total(), r, b.parent is a

# operators of a class:
#   f(T(1), V(2), V(3))
class V:
    def __init__(self, n): self.n = n
    def __add__(self, o): return V(self.n + (o.n if isinstance(o, V) else o))
    __radd__ = __add__
    def __eq__(self, o): return self.n == o.n
    def __lt__(self, o): return self.n < o.n
    def __getitem__(self, i): return self.n * i
    def __len__(self): return self.n
    def __contains__(self, v): return v == self.n
    def __iter__(self): return iter([self.n, self.n])
    def __bool__(self): return self.n > 2
    def __neg__(self): return V(-self.n)
    def __iadd__(self, o):
        self.n += o
        return self
    def __call__(self, x): return x * self.n
def f(x, a, b):
    c = a + b
    d = 1 + a
    e = sum([a, b])
    a += 5
    r = [v * x for v in b]
    return a(x), c.n, d.n, e.n, a == b, a < b, b < a, a != b, a[2], len(b), 3 in b, r, (-a).n, 1 if b else 2, not a, a.n

# the order in which operands are asked:
#   f(T(1), A(), B())
log = []
class A:
    def __eq__(self, o):
        log.append("A")
        return NotImplemented
    def __add__(self, o):
        log.append("A+")
        return NotImplemented
class B(A):
    def __eq__(self, o):
        log.append("B")
        return True
    def __radd__(self, o):
        log.append("B+")
        return 5
def f(x, a, b):
    return x + (a == b), a + b, log

# reflected operators of subclasses:
#   f(T(1), A(), A(), B())
class A:
    def __add__(self, o): return 1
    def __radd__(self, o): return 2
    def __iadd__(self, o): return NotImplemented
    def __sub__(self, o): return NotImplemented
    def __rsub__(self, o): return 3
class B(A): pass
class C(A):
    def __radd__(self, o): return 4
def f(x, a, b, c):
    r = [a + b, a + c, c + a, a + C(), x * 1]
    d = a
    d += c
    e = a - c
    return r, d, e, 5 - a, a + 5, 5 + a

# an object on the left of a tensor:
#   f(T(1), V())
class V:
    def __add__(self, o): return o * 2
    def __eq__(self, o): return "eq"
    def __lt__(self, o): return o + 5
    def __gt__(self, o): return o + 7
    def __radd__(self, o): return "radd"
def f(x, v):
    return v + x, v == x, v < x, x * 3

# an object on the right of a tensor:
#   f(T(1), V())
class V:
    def __add__(self, o): return o * 2
    def __eq__(self, o): return "eq"
    def __lt__(self, o): return o + 5
    def __gt__(self, o): return o + 7
    def __radd__(self, o): return "radd"
def f(x, v):
    y = x * 3
    return y, y == v, y < v, y > v

# an object with every special method:
#   f(T(1), o)
class C:
    def __getitem__(self, i): return i * 2
    def __len__(self): return 3
    def __bool__(self): return False
    def __add__(self, o): return 5
    def __radd__(self, o): return 6
    def __call__(self, v): return v + 1
    def __eq__(self, o): return "eq"
    def __contains__(self, o): return True
    def __iter__(self): return iter([1, 2])
o = C()
def f(x, o):
    r = [o[3], len(o), bool(o), o + 1, 1 + o, o(x), o == 1, 7 in o, list(o), x + 1]
    for v in o: r.append(v)
    if o: r.append("t")
    return r

# a tensor plus an object:
#   f(T(1), o)
class C:
    def __radd__(self, o): return "r"
o = C()
def f(x, o):
    x = x * 2
    return x + o

# __torch_function__:
#   f(T(1), o)
class C:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "tf"
o = C()
def f(x, o):
    y = x + 1
    return torch.add(y, o), y + o

# keys with __hash__ and __eq__:
#   f(T(1), o)
class C:
    def __hash__(self):
        print("h")
        return 1
    def __eq__(self, o):
        print("e")
        return True
o = C()
def f(x, o):
    y = x + 1
    d = {o: 1, 1: 2}
    return y, d[o], o in d, {o}, o in [o], [o].index(o)

# an object whose __eq__ lies:
#   f(T(1), o, o)
class C:
    def __eq__(self, x):
        print("eq")
        return False
    __hash__ = None
o = C()
def f(x, a, b):
    y = x + 1
    return y, a == b, a is b, a in [b], [a] == [b], (a,) == (b,)

# __index__:
#   f(T(3), o)
class C:
    def __index__(self):
        print("idx")
        return 1
o = C()
def f(x, o):
    y = x + 1
    return y[o], [1, 2][o], range(o)

# __format__:
#   f(T(1), o)
class C:
    def __format__(self, s):
        print("fmt", s)
        return "C"
    def __repr__(self):
        print("repr")
        return "R"
o = C()
def f(x, o):
    y = x + 1
    return y, f"{o:>3}", f"{o!r}", "%s" % o, str(o)

# an object with a __class__ property:
#   f(T(1), o)
class C:
    @property
    def __class__(self): return torch.Tensor
o = C()
def f(x, o):
    return x + 1, isinstance(o, torch.Tensor), type(o).__name__

# a metaclass with methods of its own:
#   f(T(1))
class M(type):
    def __getattr__(cls, n):
        print("M", n)
        return 3
    def __instancecheck__(cls, o):
        print("ic")
        return True
    def __hash__(cls):
        print("hash")
        return 5
    def __eq__(cls, o):
        print("eq")
        return True
    def __call__(cls, *a):
        print("call")
        return 4
class C(metaclass=M): pass
def f(x):
    return x + C.foo, isinstance(x, C), C(1), C == 3

# __getattribute__:
#   f(T(1), o)
class C:
    def __getattribute__(self, n):
        print("ga", n)
        return object.__getattribute__(self, n)
    q = 3
o = C()
def f(x, o):
    y = x + 1
    return y + o.q

# getattr and hasattr:
#   f(T(1), o)
#   delattr(o, "a") or f(T(1), o)
class C: pass
o = C(); o.a = 2
def f(x, o):
    y = x + 1
    return getattr(o, "a", 5), hasattr(o, "a"), hasattr(o, "zz"), y

# super with a break:
#   B().f0(T(1))
class A:
    def m(self, x): return x + 1
class B(A):
    def f0(self, x): return f(self, x)
    def m(self, x):
        y = x * 3
        print("m")
        return super().m(y) * 2
def f(b, x):
    y = x + 1
    return b.m(y)

# a torch.nn module:
#   f(T(2, 3))
lin = torch.nn.Linear(3, 3)
with torch.no_grad():
    lin.weight.fill_(0.5); lin.bias.fill_(1)
def f(x):
    return lin(x) + 1

# a dict:
#   f({"a": T(1)})
def f(d):
    return d["a"] + 1

# a set:
#   f(T(1))
def f(x):
    s = {1, 2}
    return x + len(s), 1 in s

# an attribute is deleted that hid a method:
#   f(T(1), mk())
#   f(T(1), mk())
class C:
    k = 3
    def m(self, x): return x * self.k
def mk():
    o = C(); o.m = 5; o.k = 7
    return o
def f(x, o):
    y = x + o.m
    del o.m
    del o.k
    b = o.m
    return b(x), b, y, o.k

# a method is hidden after it was taken:
#   f(T(1), mk())
class C:
    k = 3
    def m(self, x): return x * self.k
def mk():
    o = C()
    return o
def f(x, o):
    a = o.m
    o.m = lambda v: v + 100
    b = o.m
    o.k = 5
    return a(x), b(x), a, b

# a method lives on after a break:
#   f(T(1), C())
class C:
    k = 3
    @property
    def p(self): return self.k + 1
    def m(self): return self.k
def f(x, o):
    m = o.m
    o.k = 10
    print("brk")
    return x + o.p + m(), m

# methods of what was replaced:
#   f(T(1), C())
class C:
    def __init__(self): self.l = [1]
    def push(self, v):
        self.l.append(v)
        return self
def f(x, o):
    app = o.l.append
    push = o.push
    o.l = [5]
    push(2).push(3)
    app(9)
    y = x + len(o.l)
    print("brk", o.l)
    app(10)
    push(4)
    return y, o.l, app.__self__

# objects in each other's attributes:
#   f(T(1), C(), D())
class C: a = 1
class D: a = 2
def f(x, o, p):
    o.a = p
    p.b = o
    o.a.c = x + 1
    q = p.b.a
    del p.b
    return q is p, q.c * 2, hasattr(p, "b")
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_objects_behave_as_in_plain_python(program):
    program.check()
