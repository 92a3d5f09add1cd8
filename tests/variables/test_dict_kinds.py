"""OrderedDict, defaultdict; ChainMap and UserDict by inlining."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# OrderedDict:
#   f(T(2))
from collections import OrderedDict
def f(x):
    d = OrderedDict(a=1, b=2)
    d["c"] = 3
    d.move_to_end("a")
    k, v = d.popitem(last=False)
    for a, b in d.items(): x = x * b
    return x, d, k, v

# OrderedDict argument:
#   f(T(2), OrderedDict(a=1, b=2))
from collections import OrderedDict
def f(x, d):
    d["c"] = 3
    d.move_to_end("a")
    for a, b in d.items(): x = x * b
    return x, list(d)

# defaultdict:
#   f(T(2))
from collections import defaultdict
def f(x):
    d = defaultdict(list)
    d["a"].append(x + 1)
    d["a"].append(x + 2)
    d["b"].append(x)
    return d, sum(d["a"]), d.default_factory

# defaultdict argument:
#   f(T(2), defaultdict(int, a=1))
from collections import defaultdict
def f(x, d):
    d["a"] += 1
    d["b"] += 5
    return x * d["b"] + d["zz"]

# ChainMap:
#   f(T(2))
from collections import ChainMap
def f(x):
    m = ChainMap({"a": 1}, {"a": 2, "b": 3})
    m["c"] = 4
    return x * m["a"] + m["b"] + m["c"] + len(m)

# UserDict:
#   f(T(2))
from collections import UserDict
class D(UserDict):
    pass
def f(x):
    m = D(a=1)
    m["c"] = 4
    return x * m["a"] + m["c"] + len(m)
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
