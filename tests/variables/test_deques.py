"""collections.deque."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# deque:
#   f(T(2))
from collections import deque
def f(x):
    d = deque([1, 2], maxlen=3)
    d.append(3); d.append(4); d.appendleft(5)
    a = d.pop(); b = d.popleft()
    d.extend([7, 8]); d.rotate(1)
    for i in d: x = x + i
    return x * a + b, len(d), d, d.maxlen

# deque argument:
#   f(T(2), deque([1,2,3], 4))
from collections import deque
D = deque([1], 2)
def f(x, d):
    x = x + d[0] + d[-1]
    d.append(9)
    d.extendleft([1, 2])
    D.append(d[1])
    return x
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
