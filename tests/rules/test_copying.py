"""copy.copy, copy.deepcopy and what uses them."""

from __future__ import annotations

import pytest

from tests.eager import programs

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
    assert not seen.breaks and not seen.skips
