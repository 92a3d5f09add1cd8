"""Members of enumerations."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# by identity:
#   f(T(2), M.A)
#   f(T(2), M.B)
#   f(T(2), M.A)
#   f(T(2), None)
import enum
class M(enum.Enum):
    A = 1
    B = "b"
    def doubled(self):
        return self.value * 2
def f(x, m):
    if m is M.A:
        x = x + 1
    if m == M.B:
        x = x * 2
    if m != M.B and m in (M.A, "z"):
        x = x + 10
    if m in {M.A, 3}:
        x = x + 100
    if m is None:
        return x
    return x, m.name, m.value, m.doubled(), m, bool(m), M("b") is m, {m: 1}.get(M.A), M(m) is m

# IntEnum and a str mixin:
#   f(T(2), I.X, S.P)
#   f(T(2), I.Y, S.Q)
import enum
class I(enum.IntEnum):
    X = 1
    Y = 2
class S(str, enum.Enum):
    P = "p"
    Q = "q"
def f(x, i, s):
    r = [i == 1, i < I.Y, i + 1, 2 * i, -i, bool(i), s == "p", s + "x", i == I.X, i is I.X, s.value, i.name]
    r += [{I.X: 5}.get(1), 1 in {I.X}, [I.X, 2] == [1, I.Y], i in (1, 5), I(1)]
    return x * i.value, r

# flags:
#   f(T(2), F.R)
#   f(T(2), F.R | F.W)
import enum
class F(enum.Flag):
    R = 1
    W = 2
def f(x, m):
    y = x + 1
    return y, m is F.R, bool(m & F.W), m == F.R

# with operators of its own:
#   f(T(2), M.A)
#   f(T(2), M.B)
import enum
class M(enum.Enum):
    A = 1
    B = 2
    def __lt__(self, other):
        return self.value < other.value
    def __bool__(self):
        return self.value == 1
def f(x, m):
    return x + 1, m < M.B, bool(m), "yes" if m else "no"

# equality of its own:
#   f(T(2), M.A)
#   f(T(2), M.B)
import enum
class M(enum.Enum):
    A = 1
    B = 2
    def __eq__(self, other):
        return other == self.value
    def __hash__(self):
        return 3
def f(x, m):
    y = x + 1
    return y, m == 2, m == M.A, m in (M.A, 2)

# aliases and missing values:
#   f(T(2), 1)
#   f(T(2), 9)
import enum
class M(enum.Enum):
    A = 1
    ALSO_A = 1
    @classmethod
    def _missing_(cls, value):
        print("missing")
        return cls.A
def f(x, v):
    y = x + 1
    return y, M(v) is M.ALSO_A, M.ALSO_A.name

# two enumerations with the same names:
#   f(T(2), M.A)
#   f(T(2), N.A)
import enum
M = enum.Enum("M", "A B")
N = enum.Enum("N", "A B")
def f(x, m):
    return x + (m is M.A), m == N.A

# members of one class that are made again:
#   f(T(2))
#   globals().update(M=enum.Enum("M", {"A": 5}))
#   f(T(2))
import enum
M = enum.Enum("M", {"A": 3})
def f(x):
    return x * M.A.value
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_enumerations_behave_as_in_plain_python(program):
    program.check()


def test_one_graph_per_member():
    seen = check(
        """
        import enum
        M = enum.Enum("M", "A B")
        def f(x, m):
            return x * m.value
        """,
        *["f(T(2), M.A)", "f(T(2), M.B)"] * 2,
    )
    assert seen.graphs == 2 and not seen.breaks
