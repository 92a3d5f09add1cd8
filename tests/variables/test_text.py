"""str, repr and format of objects."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# format method:
#   f(T(2), P())
class P:
    def __format__(self, spec): return "P" + spec
    def __str__(self): return "pp"
    def __repr__(self): return "rr"
def f(x, p):
    s = f"{p:abc}"
    t = f"{p}" + str(p) + repr(p) + f"{p!r}"
    return x * len(s) + len(t), s, t
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
