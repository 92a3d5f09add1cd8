"""Expressions."""

# ruff: noqa: UP031, B002, E731, PIE800, SIM, UP028, UP031
# What the linter would rather not see is what these functions are for.
from __future__ import annotations

from tests.pycode.cases.support import Box, Point, case

NUMBERS = (5, 3), (-7, 2), (2.5, 4)
INTS = (5, 3), (-7, 2)


@case(*NUMBERS)
def arithmetic(x, y):
    return (x + y) * x - y / 2 + x // y % 7 + x**2


@case(*INTS)
def bits(x, y):
    return x << y, x >> 1, x & y, x | y, x ^ y, ~x


@case(*NUMBERS)
def unary(x, y):
    return -x, +y, not x, not y, -(-x)


@case(*NUMBERS)
def in_place(x, y):
    x += y
    x -= 1
    x *= y
    x /= 3
    x //= 2
    x **= 2
    x %= 100
    return x


@case(*INTS)
def in_place_bits(x, y):
    x <<= y
    x |= 1
    x &= 255
    x ^= y
    x >>= 1
    return x


@case(*NUMBERS, ("a", "b"), ([1], [1]))
def comparisons(x, y):
    return x < y, x <= y, x == y, x != y, x > y, x >= y


@case(*NUMBERS)
def chained(x, y):
    return 0 < x < y < 10, x < y <= 4 != 5, 1 < 2 < x


@case((None, 1), (3, None))
def identity(x, y):
    return x is None, y is not None, x is y, x in (1, 2, 3), y not in [1]


@case((0, 1), (1, 0), ("", "a"))
def short_circuit(x, y):
    return (x and y) or (y if x is None else "none"), x or y, x and y, not (x or y)


@case((3,), (0,), (None,))
def conditional(x):
    return "none" if x is None else "yes" if x else "no"


@case((4,))
def walrus(n):
    return [(y := x * 2) + y for x in range(n) if (z := x % 3)] and (total := n + 1) + total + z


@case((3, "é"), (2.5, "ab"))
def f_strings(x, y):
    return f"{x} {y!r:>5} {y!s} {y!a} {x:03.1f} {x + 1!r} {x:{4}} {{}}"


@case((3,))
def f_string_nested(x):
    return f"{f'{x}':>{x + 2}}|{x=}"


@case(([1, 2, 3, 4, 5], 1, 3))
def slices(x, a, b):
    return x[a], x[a:b], x[:b], x[a:], x[::2], x[::-1], x[a:b:1], x[-1]


@case(([1, 2, 3, 4, 5], 1, 3))
def slice_stores(x, a, b):
    x[a:b] = [7, 8, 9]
    x[a] = 0
    x[a] += 5
    del x[0]
    del x[a:b]
    return x


@case((1, 2))
def displays(x, y):
    return (x, y), [x, y, *(3, 4)], {x, y}, {x: y, "k": x}, {**{"a": x}, "b": y, **{"a": 9}}, (*range(x), y)


@case(())
def constants():
    return 1, 2.5, "s", b"b", None, True, ..., (1, (2, 3)), 10**20, -1, 300, 1j, frozenset({1, 2})


@case(())
def empty_displays():
    return (), [], {}, set(), "", [[]]


@case((Point(1, 2),))
def attributes(p):
    box = Box(p.x)
    box.value += p.y
    box.other = box.value
    del box.value
    return box.other, box.label, hasattr(box, "value"), p._fields


@case(({"a": 1},))
def subscripts(d):
    d["b"] = d["a"] + 1
    d["a"] *= 5
    d["c"], d["d"] = d["b"], d
    del d["d"]
    return d


@case((2,))
def big_expression(x):
    return [[x, [x + 1, [x + 2, [x + 3, (x, {x: [x, -x]})]]]], (x * (x + (x * (x + (x * (x + 1))))))]


@case(("ab",))
def string_methods(s):
    return s.upper().lower().join(["x", "y"]).replace("x", s), "%s-%d" % (s, 3), s * 2, s[0] in s


@case((3,))
def lambdas(x):
    add = lambda a, b=2, *c, d=4, **e: (a, b, c, d, e)
    return add(x), add(x, 1, 5, d=6, z=7), (lambda: x)()


@case((3, 4))
def operator_precedence(x, y):
    return x + y * 2**x % 5 - -y // 2 << 1 & 0xFF | 3 ^ x, not x == y and x < y or y


@case((2.0, 3))
def mixed_numbers(x, y):
    return x + y, x * 1j, y / 4, divmod(y, 2), round(x / y, 3), abs(-x), int(x) ** 70, y // 0.5


@case(("a", "b"))
def strings(x, y):
    s = x + y
    s += "!"
    s *= 2
    return s, s[1:], s[::-1], s.index("b"), x < y, "%s" % x, f"{x}{y}", f"{x}{y}z"


@case((b"ab",))
def byte_strings(b):
    return b + b"c", b[0], b[1:], list(b), b.hex(), bytes([1, 2]), b % () if False else b"%d" % 3


@case((5,))
def format_specs(x):
    width, places = 8, 2
    return f"{x:>{width}}", f"{x:.{places}f}", f"{x:{width}.{places}f}", f"{x!s:*^7}", f"{x:b}{x:#x}{x:,}"


@case((5, "v"))
def format_quotes(x, y):
    d = {"k": x}
    return f"{d['k']}{y!r}", f"{{{x}}}", f"{x=} {y=!s}", f"{x + 1 = }", rf"\n{x}"


@case((1, 2, 3))
def nested_conditionals(x, y, z):
    return (x if y else z) if z else (y if x else z), x if x > 5 else y if y > 5 else z if z > 5 else "none"


@case((0, 1), (1, 0), (1, 1))
def boolean_mix(x, y):
    a = x and (y or x) and not y
    b = (x or y) and (not x or y)
    c = not (not x)
    return a, b, c, bool(x and y), (x and y) == (y and x)


@case((1,))
def chained_calls_once(x):
    log = []

    def note(v):
        log.append(v)
        return v

    r = note(x) < note(x + 1) < note(x + 0) < note(99)
    return r, log


@case(([1, 2, 3],))
def index_expressions(v):
    return v[len(v) - 1], v[-len(v)], v[v[0]], v[: v[0]], v[v[0] : v[2]], v[slice(0, 2)], (v + v)[3:]


@case(({"a": {"b": [1, {"c": 2}]}},))
def deep_subscripts(d):
    d["a"]["b"][1]["c"] += 5
    d["a"]["b"][0] -= 1
    return d["a"]["b"], d.get("z", {}).get("q")


@case(([[1, 2], [3, 4]],))
def two_dimensional(m):
    m[0][1], m[1][0] = m[1][0], m[0][1]
    m[1][1] **= 2
    return m, [row[::-1] for row in m], list(zip(*m, strict=True))


@case((Box(3),))
def attribute_updates(b):
    b.value += 1
    b.value *= b.value
    b.extra = b.other = [b.value]
    b.extra[0] -= 6
    return b.value, b.other, b.double, b.label, Box.label


@case((Box(3), Box(3), Box(4)))
def object_comparison(a, b, c):
    return a == b, a != c, a is b, a in [b], {a: 1}[b], bool(a), not Box(0), a[2], a["k"], a[1:2]


@case((4,))
def walrus_everywhere(n):
    if (half := n // 2) > 1:
        out = [half]
    while (half := half - 1) >= 0:
        out.append(half)
    return out, (last := out[-1]), last


@case((3,))
def ellipsis_and_none(x):
    y = ... if x else None
    return y is ..., y is not None, [None, ...][0] is None, x is ...


@case((7,))
def big_numbers(x):
    return x**40, -(2**63), 2**64 - x, 0xFFFFFFFF & ~x, 1e300 * 1e10, -0.0, 10**18 // x


@case((3,))
def tuple_constants(x):
    return ((1, 2), (x, (3, 4))), (1, 2) + (x,), (1, 2, 3)[x - 1], (x,) * 2, x in (1, 2, 3), x in {3, 4}


@case((3,))
def set_operations(x):
    a, b = {1, 2, x}, {x, 4}
    a |= {9}
    return a & b, a | b, a - b, a ^ b, a > {x}, {*a, *b}, frozenset(a) == a


@case(({"a": 1}, {"b": 2}))
def dict_operations(p, q):
    r = p | q
    r |= {"c": 3}
    return r, {**p, **q, "a": 9}, list(r), "a" in r, r.pop("a"), dict(sorted(r.items())), [*r.values()]


@case((1,))
def starred_displays(x):
    a = [x, *range(2)]
    return [*a, *a], (*a, x), {*a}, [*"ab", *{}], (*(), 1)


@case((6,))
def print_to_nothing(x):
    log = []
    print(x, "a", sep="-", end="!", file=type("W", (), {"write": lambda self, s: log.append(s)})())
    return "".join(log)
