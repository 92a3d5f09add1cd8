"""Numbers, strings, and what a constant is."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# two equal ints that are two objects:
#   f(T(1), 10**10, 10**10)
#   f(T(1), *(lambda a: (a, a))(10**10 + 1))
def f(x, a, b):
    return x + 1, a is b

# -0.0, 0.0, 0 and False:
#   f(T(1), -0.0)
#   f(T(1), 0.0)
#   f(T(1), 0)
#   f(T(1), False)
def f(x, z):
    return x * z, z

# nan:
#   f(T(1), float("nan"))
#   f(T(1), float("nan"))
def f(x, z):
    return x * z, z == z, z in (z,), z in [z, 1.0]

# constants that are equal and not the same:
#   f(T(1))
def f(x):
    return x + 1, 1, 1.0, True, 0.0, -0.0, (1, 1.0, True), (0.0, -0.0), 1j, -1j

# an int of thousands of digits:
#   f(T(1), 10**5000)
def f(x, n):
    return x + 1, n, n + 1

# an int that is a subclass's:
#   f(T(1), torch.Size([2])[0])
#   f(T(1), I(3))
class I(int): pass
def f(x, n):
    return x + n

# strings:
#   f(T(1), "ab")
def f(x, s):
    return x + len(s), s.upper(), "-".join([s, "c"]), s[0], "a" in s, s * 2, "%s!" % s, s + "x"

# formatting:
#   f(T(1), 3)
def f(x, n):
    a = "%d-%s" % (n, "a"), "{} {a}".format(n, a=2), f"{n!r:>4}", "a,b".split(",")
    return x + 1, a, " ".join(["a", str(n)]), "abc".replace("b", "q"), "x" if "a".startswith("a") else 0

# f-strings:
#   f(T(1), 2)
def f(x, n):
    return x + 1, f"{n:03d} {n!r} {1.5:.2f}", f"{x.shape}"

# the % operator of strings and of others:
#   f(T(1))
def f(x):
    y = x + 1
    return "%s" % y, "a" * torch.tensor(2), [1] * torch.tensor(2), "%d" % 3, "%5.2f|%s" % (1.5, "q"), b"%d" % 3

# text of a tensor:
#   f(T(1))
def f(x):
    y = x + 1
    return f"{y}", "{}".format(y), str(y), repr(y), "%s %s" % (1, y)

# numbers from text:
#   f(T(1), "12")
def f(x, s):
    a = float("1.5"), int(2.7), int("0x1f", 16), bool([]), bool(""), round(2.567, 2), abs(-3), divmod(7, 2)
    return x + int(s), a, pow(2, 3), pow(2, 3, 5), max(3, 4), min([1, 2]), sum([1, 2], 3), ord("a"), hex(3)

# the math module:
#   f(T(1))
import math
def f(x):
    return x * math.sqrt(2) + math.pi, math.floor(2.5), math.gcd(4, 6), math.isnan(float("nan")), math.prod([1, 2])

# the math module on tensors:
#   f(T(1))
import math
def f(x):
    y = x + 1
    return math.sqrt(y), math.floor(y)

# dtypes and devices:
#   f(T(1))
def f(x):
    return x + 1, x.dtype is torch.float32, x.dtype == torch.float64, x.device.type

# comparison with None:
#   f(T(1))
def f(x):
    return x == None, x != None, 1 == x

# isinstance and type:
#   f(T(1), 3, [1])
def f(x, n, l):
    a = isinstance(x, torch.Tensor), isinstance(n, (int, str)), isinstance(l, list), isinstance(True, int)
    return x + 1, a, type(n) is int, type(l)

# identity of tensors made in the graph:
#   f(T(1))
def f(x):
    y = x.contiguous()
    z = x + 1
    w = z
    return y is x, z is w, z is x, z is not None, y is None

# identity of lists:
#   (lambda l: f(l, l, T(1)))([1])
#   f([1], [1], T(1))
def f(a, b, x):
    return x + 1, a is b
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_constants_behave_as_in_plain_python(program):
    program.check()


def test_objects_that_stand_for_nothing():
    """A bare `object()` is known by where it lies, also when the trace puts something else there."""
    source = """
        MISSING = object()
        OTHER = object()
        class A:
            d = MISSING
        def g(x, v=MISSING, w=OTHER):
            return (x if v is MISSING else x + 1), v is OTHER, v is w, w is not MISSING, A.d is v, x is v
        def f(x, *a):
            global MISSING
            r = g(x, *a)
            MISSING = OTHER
            s = g(x, *a)
            MISSING = A.d
            return r, s
    """
    arguments = ("", "OTHER", "object()", "OTHER, OTHER", "MISSING, MISSING", "3, None", "T(2)")
    seen = check(source, *(f"f(T(2), {each})" for each in arguments), warns=True)
    assert seen.reasons == [] and seen.graphs == len(arguments)
