"""copy.copy, copy.deepcopy and what uses them."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# deep copies:
#   f(T(2), [1, [2]], {"a": [1]})
import copy
def f(x, l, d):
    a = copy.copy(l); b = copy.deepcopy(l); c = copy.deepcopy(d)
    a.append(3); b[1].append(4); c["a"].append(2)
    s = [1]
    t = copy.deepcopy([s, s, (1, 2), (s,)])
    return x * len(b[1]) + len(a), a, b, c, t, t[0] is t[1], t[3][0] is t[0]

# copies of objects made here:
#   f(T(2))
import copy
class P:
    def __init__(self, a): self.a = a; self.l = [1]
def f(x):
    p = P(x)
    q = copy.copy(p)
    q.a = x + 1
    q.l.append(2)
    return x * len(p.l) + q.a, q, copy.copy((1, 2)), copy.copy({1: 2})

# objects from outside, nested and shared:
#   f(T(2), c, copy.copy)
#   f(T(2), c, copy.deepcopy)
#   c
#   setattr(c, "more", [7])
#   f(T(2), c, copy.copy)
#   f(T(2), c, copy.deepcopy)
#   c
import copy
class Config:
    kind = "base"
    def __init__(self, width):
        self.width = width
        self.names = ["a", ("b", [1])]
        self.table = {1: [2], "x": {3}, "f": frozenset((1,))}
        self.names_again = self.names
        self.up = None
c = Config(3)
c.inner = Config(4)
c.inner.up = c
c.inner.type = dict
def f(x, c, copied):
    d = copied(c)
    d.width += 1
    d.names.append(5)
    d.inner.width += 2
    return x * d.width, d.inner.width, d.names is d.names_again, d.inner.up is d, d.table["x"] is c.table["x"], d.kind, d

# with a __getattribute__ and a __setattr__ of its own:
#   f(T(2), c)
#   c
#   f(T(2), c)
#   c
import copy
class Mapped:
    mapping = {"size": "width"}
    def __init__(self, width):
        self.size = width
        self.layers = [1, 2]
    def __getattribute__(self, name):
        if name != "mapping" and name in super().__getattribute__("mapping"):
            name = super().__getattribute__("mapping")[name]
        return super().__getattribute__(name)
    def __setattr__(self, name, value):
        name = super().__getattribute__("mapping").get(name, name)
        super().__setattr__(name, value)
    def to_dict(self):
        return copy.deepcopy(self.__dict__)
c = Mapped(5)
def f(x, c):
    d = copy.deepcopy(c)
    d.size = 7
    d.layers.append(3)
    e = copy.copy(d)
    e.size += 1
    new = Mapped(2)
    return x * d.width + e.size, d, e, c.to_dict(), d.to_dict(), new.width, new

# what the class says about copying:
#   f(T(2), A(1), B(2), C(3))
#   f(T(2), A(2), B(2), C(3))
import copy
class A:
    def __init__(self, v): self.v = v
    def __copy__(self): return A(self.v + 10)
    def __deepcopy__(self, memo): return A([copy.deepcopy(self.v, memo)])
class B:
    def __init__(self, v): self.v = v; self.cache = [1]
    def __getstate__(self): return {"v": self.v, "z": 0}
class C:
    def __init__(self, v): self.v = v
    def __setstate__(self, state): self.__dict__.update(state); self.again = True
def f(x, a, b, c):
    d = copy.deepcopy([a, a, b, c])
    return x * copy.copy(a).v, d, d[0] is d[1], copy.copy(b), copy.copy(c)

# slots:
#   f(T(2), S(1, [2]))
import copy
class S:
    __slots__ = ("a", "b", "unset")
    def __init__(self, a, b): self.a = a; self.b = b
class D(S): pass
def f(x, s):
    t = copy.copy(s)
    u = copy.deepcopy(s)
    u.b.append(1)
    d = D(1, 2)
    d.e = 3
    e = copy.deepcopy(d)
    return x * t.a, t.b is s.b, u.b, hasattr(u, "unset"), e.e + e.b, s.b

# kinds of dicts, deques and sets:
#   f(T(2), o, d, q, {1, 2}, frozenset({3}), M(a=[1]))
#   o, d, q
import copy
from collections import OrderedDict, defaultdict, deque
o = OrderedDict(b=[1], a=2)
d = defaultdict(list, z=[1])
q = deque([[1], 2, 3], maxlen=3)
class M(dict):
    def __init__(self, **names):
        super().__init__(**names)
        self.own = [5]
    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)
def f(x, o, d, q, s, z, m):
    o2, d2, q2, s2, z2, m2 = copy.deepcopy((o, d, q, s, z, m))
    o2["b"].append(7); d2["y"].append(8); q2[0].append(9); q2.append(4); s2.add(5)
    return x * len(s2), o2, d2, q2, s2, z2, m2, m2.own, copy.copy(m), copy.copy(m).own is m.own, copy.copy(d)

# dataclass helpers:
#   f(T(2), D(1, [2]))
import dataclasses
from dataclasses import dataclass, field
@dataclass
class D:
    a: int
    b: list = field(default_factory=list)
def f(x, d):
    e = dataclasses.replace(d, a=7)
    n = len(dataclasses.fields(d))
    m = dataclasses.asdict(d)
    t = dataclasses.astuple(d)
    return x * e.a + n, m, t, dataclasses.is_dataclass(d), e == d, e

# join:
#   f(T(2), ["a", "b"])
def f(x, l):
    return x + 1, "-".join(l), "".join(c for c in l), ",".join(str(i) for i in range(3))
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and set(seen.skips) <= {"MD303"}, [e.text for e in (*seen.breaks, *seen.skipped)]


def test_a_class_that_copyreg_is_told_of_later():
    seen = check(
        """
        import copy, copyreg
        class P:
            def __init__(self): self.a = 1
        def f(x, p):
            q = copy.copy(p)
            return x * q.a
        def told():
            copyreg.pickle(P, lambda p: (made, ()))
        def made():
            p = P()
            p.a = 5
            return p
        """,
        "f(T(2), P())",
        "told()",
        "f(T(2), P())",
    )
    assert seen.reasons == ["MD220"]
