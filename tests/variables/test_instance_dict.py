"""`x.__dict__` of objects and modules: a dict of their attributes."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

CLASS = """
class P:
    def __init__(self, a, b):
        self.a = a
        self.b = b
"""
PROGRAMS = """
# whole:
#   f(T(2), P(1, 2))
#   f(T(2), P(1, 3))
def f(x, p):
    q = P(3, x)
    return x * p.a, list(p.__dict__), dict(q.__dict__), len(q.__dict__), list(p.__dict__.values()), list(vars(p).items())

# another attribute between calls:
#   f(T(2), p)
#   setattr(p, "c", 5)
#   f(T(2), p)
#   delattr(p, "a")
#   f(T(2), p)
p = P(1, 2)
def f(x, p):
    return x * sum(p.__dict__.values()), [k for k in p.__dict__]

# items set and deleted:
#   f(T(2), p)
#   p
#   f(T(2), p)
#   p
p = P(1, 2)
def f(x, p):
    q = P(1, 2)
    for o in (p, q):
        o.__dict__["c"] = x
        o.__dict__["b"] = o.__dict__.pop("a") + 1
        o.__dict__["a"] = 3
        del o.b
        o.b = 7
    return p.c + q.c, p.a, q.b, list(p.__dict__), list(q.__dict__)

# update, setdefault, get, in, and keywords:
#   f(T(2), P(1, 2))
def g(**names):
    return names
def f(x, p):
    q = P.__new__(P)
    q.__dict__.update(p.__dict__)
    q.__dict__.update(c=x)
    n = q.__dict__.setdefault("d", 4)
    p.__dict__.setdefault("a", 9)
    return q.c * n, g(**q.__dict__), "a" in p.__dict__, p.__dict__.get("z", 8), q.__dict__ == {"a": 1}, q

# the same dict each time, and live:
#   f(T(2), P(1, 2))
def f(x, p):
    q = P(1, 2)
    d, keys = q.__dict__, q.__dict__.keys()
    q.z = x
    p.z = 4
    return x + 1, d is q.__dict__, list(keys), d["z"], list(p.__dict__)

# escapes:
#   f(T(2), P(1, 2))
def f(x, p):
    q = P(1, x + 1)
    q.__dict__["c"] = 1
    p.n = 1
    return q.__dict__, p.__dict__, q

# a property and a slot of that name:
#   f(T(2), S())
class S:
    __slots__ = ("a", "__dict__")
    @property
    def b(self):
        return 1
def f(x, s):
    y = x + 1
    s.a = 2
    s.c = 3
    s.__dict__["b"] = 4
    s.__dict__["a"] = 5
    return y, s.b, s.a, s.__dict__

# changed while it is iterated over:
#   f(T(2), P(1, 2))
def f(x, p):
    y = x + 1
    try:
        for name in p.__dict__:
            setattr(p, name + name, 1)
    except RuntimeError as error:
        return y, str(error), p

# own __setattr__ and __getattribute__:
#   f(T(2), Q(1, 2))
class Q(P):
    def __setattr__(self, name, value):
        self.__dict__[name] = value if name == "a" else [value]
    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        return found if name.startswith("_") else (found,)
def f(x, q):
    r = P(1, 2)
    q.c = 3
    return x * q.__dict__["a"], q.c, list(q.__dict__.items())

# of modules:
#   f(T(2), m)
#   f(T(2), m)
#   sorted(m.__dict__)
m = torch.nn.ReLU()
def f(x, m):
    m.__dict__["n"] = 3
    new = torch.nn.Tanh()
    new.__dict__["n"] = 5
    return m(x) * m.n + new(x) * new.n, list(new.__dict__), len(m.__dict__)
"""


@pytest.mark.parametrize("program", programs(PROGRAMS))
def test_an_instance_dict(program):
    seen = check(CLASS + program.source, *program.calls)
    assert seen.graphs
    expected = ("a property" in program.name) or ("changed" in program.name)
    assert bool(seen.breaks) == expected, [event.text for event in seen.breaks]


def test_an_object_and_its_dict_are_two_arguments():
    check(
        CLASS
        + """
p = P(1, 2)
def f(x, p, d):
    p.a = 5
    y = x * d["a"]
    d["b"] = 7
    return y, p.b
""",
        "f(T(2), p, {'a': 1, 'b': 2})",
        "f(T(2), p, p.__dict__)",
        "f(T(2), p, {'a': 1, 'b': 2})",
    )
    check(
        CLASS
        + "p = P(1, 2)\ndef f(x, p, d):\n    p.a = 5\n    y = x * d['a']\n    d['b'] = 7\n    return y, p.b\n",
        "f(T(2), p, p.__dict__)",
        "f(T(2), p, {'a': 1, 'b': 2})",
    )
