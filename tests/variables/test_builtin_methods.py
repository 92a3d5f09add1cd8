"""Methods of builtin types, bound and unbound."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# methods of builtin types:
#   f(T(2), "a,b")
def f(x, s):
    n = len(s.split(",")) + s.upper().count("A") + len("%s-%d" % (s, 3)) + len(f"{s!r:>10}") + len("{:.2f} {a}".format(1.5, a=2))
    b = s.encode()
    y = x * n + b[0] + (5).bit_length() + int.from_bytes(b"ab", "big") + (1.5).is_integer()
    return y, "-".join([s, "x"]), str.upper("q"), "a".__len__(), (3).__add__(4), list.copy([1, 2]), str.join("-", ["a", "b"])
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    seen = program.check()
    assert not seen.breaks and not seen.skips
