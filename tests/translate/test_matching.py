"""Class and mapping patterns."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# match class:
#   f(T(2), P(1, 2))
#   f(T(2), 5)
#   f(T(2), "s")
#   f(T(2), [1, P(3, 4)])
class P:
    __match_args__ = ("a", "b")
    def __init__(self, a, b): self.a = a; self.b = b
def f(x, p):
    x = x + 1
    match p:
        case P(1, b=k): return x * k
        case int(n): return x + n
        case str(): return x - 1
        case [a, P(c, d)]: return x * a + c + d
    return x

# match mapping:
#   f(T(2), {"k": 1, "z": 2})
#   f(T(2), {"q": [1, 2]})
#   f(T(2), {})
def f(x, p):
    x = x + 1
    match p:
        case {"k": v, **rest}: return x * v + len(rest), rest
        case {"q": [a, b]}: return x * a + b
        case {}: return x - 1
    return x
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
