"""Dicts of classes of the program's: changed in the trace, made there or before."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = """
# items of one from outside:
#   f(T(2), d)
#   d
#   f(T(2), d)
#   d
class D(dict):
    def __setitem__(self, key, value):
        self.last = key
        super().__setitem__(key, [value])
    def __delitem__(self, key):
        self.gone = key
        super().__delitem__(key)
d = D(a=1, b=2)
def f(x, d):
    d["c"] = x * 2
    d["a"] = d["b"]
    n = len(d)
    if "z" in d:
        del d["z"]
    else:
        d["z"] = 1
    return d["c"][0] + n, d.last, list(d), d["a"]

# pop, setdefault, update, get:
#   f(T(2), D(a=1, b=2))
class D(dict):
    def both(self):
        return self["a"], self.get("n")
def f(x, d):
    d.update(n=x, a=5)
    s = d.setdefault("m", 7)
    t = d.setdefault("a", 8)
    p = d.pop("b"), d.pop("none", 4)
    return x * s, t, p, d.both(), list(d.items()), d

# a model's output, attributes and items at once:
#   f(T(2), o)
#   o, vars(o)
#   f(T(2), o)
#   f(T(2), made(T(2)))
from collections import OrderedDict
class Output(OrderedDict):
    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)
def made(x):
    out = Output()
    out["hidden"] = x
    out["none"] = None
    return out
o = made(T(2) + 1)
def f(x, o):
    o.hidden = o["hidden"] + x
    o["logits"] = o.hidden * 2
    o.none = x
    return o.logits, list(o), o["none"] is x, o

# two names of one, and another:
#   f(T(2), D(a=1), D(a=1))
#   f(T(2), d, d)
#   f(T(2), D(a=1), D(a=1))
class D(dict):
    pass
d = D(a=1)
def f(x, p, q):
    p["a"] = 5
    return x * q["a"], p, q

# an error in the middle:
#   f(T(2), D(a=1))
class D(dict):
    def __setitem__(self, key, value):
        if key == "no":
            raise KeyError(key)
        super().__setitem__(key, value)
def f(x, d):
    d["b"] = x + 1
    try:
        d["no"] = 1
    except KeyError as error:
        d["c"] = error.args
    try:
        del d["missing"]
    except KeyError:
        d["e"] = 3
    return d["b"], d
"""


@pytest.mark.parametrize("program", programs(PROGRAMS))
def test_a_dict_of_a_class(program):
    seen = program.check()
    assert not seen.breaks and set(seen.skips) <= {"MD303"}, [e.text for e in (*seen.breaks, *seen.skipped)]
