"""Keyword-only parameters with defaults of functions made in the frame."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# keyword-only defaults:
#   f(T(2), 3)
#   f(T(2), 4)
def f(x, n):
    def g(v, *, k=n, z=2): return v * k + z
    h = lambda v, *, q=n: v + q
    return g(x) + h(x, q=1) + h(x)

# a function with keyword-only defaults returned:
#   f(T(2), 3)[1](T(2))
def f(x, n):
    def g(v, *, k=n, z=2): return v * k + z
    return g(x), g
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
