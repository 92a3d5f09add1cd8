"""Dictionaries, their views and iterators."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# keys are classes of any metaclass and special forms of typing:
#   f(T(1), typing.Union[int, str])
#   f(T(1), typing.Literal[1])
#   f(T(1), collections.abc.Sequence[int])
#   f(T(1), int)
#   TABLE.update({typing.Union: 7}) or f(T(1), typing.Union[int, str])
#   TABLE.pop(typing.Union) and f(T(1), typing.Union[int, str])
import typing, collections.abc
class Meta(type):
    pass
class Made(metaclass=Meta):
    pass
TABLE = {typing.Union: 1, typing.Literal: 2, collections.abc.Sequence: 3, list: 4, Made: 5}
KEYS = [typing.Union, list, typing.Any, Made]
def f(x, t):
    found = TABLE.get(typing.get_origin(t))
    return x + (found or TABLE[Made]), [k in TABLE for k in KEYS]

# keys are classes whose metaclass compares them its own way:
#   f(T(1))
class Same(type):
    def __eq__(cls, other):
        return True
    def __hash__(cls):
        return 7
class One(metaclass=Same):
    pass
class Two(metaclass=Same):
    pass
TABLE = {One: 1}
def f(x):
    return x + TABLE[Two], Two in TABLE

# ways to make one:
#   f(T(2), {"q": 1})
def f(x, d):
    a = dict([("a", 1), ("b", x)], c=3)
    b = dict(zip("ab", (1, 2)))
    c = {**d, "z": 3, **{"q": 5}}
    e = dict.fromkeys("xy", 0)
    g = dict.fromkeys(range(2))
    h = {k: v + 1 for k, v in b.items() if v > 1}
    return x + 1, a, b, c, e, g, h, dict(d), dict(a.items()), dict({1, 2} and [(1, 2)]), {1: "a", True: "b"}

# the union operator:
#   f(T(2), {"q": 1})
#   f(T(2), {})
def f(x, d):
    e = d | {"z": 3}
    g = {"z": x} | d
    k = e
    e |= {"n": x + 1}
    e |= [("m", 2)]
    return x + 1, e, g, k is e, d

# in place on one from outside:
#   (lambda d: (f(T(2), d), d))({})
#   (lambda d: (f(T(2), d), d))({"q": 2, "n": 1})
def f(x, d):
    d |= {"n": x + 1}
    d |= [("m", 2)]
    return d.popitem(), d.popitem()

# what is no dict:
#   f(T(2))
def f(x):
    y = x + 1
    try:
        return y, {} | [(1, 2)]
    except TypeError:
        return y, 0

# equality:
#   f(T(2), {"a": 1, "b": (1, 2)})
#   f(T(2), {"b": (1, 2), "a": 1})
#   f(T(2), {"a": 1, "b": (1, 3)})
#   f(T(2), {"a": 1})
#   f(T(2), {"a": 1, "c": {}})
def f(x, d):
    return x + 1, d == {"a": 1, "b": (1, 2)}, d != {}, d == d, d == {"a": 1, "c": {}}, d == [], {1: 2} == {True: 2.0}

# popitem:
#   f(T(2))
def f(x):
    d = {"a": x, "b": 2}
    p = d.popitem()
    d["c"] = 3
    try:
        {}.popitem()
    except KeyError as e:
        return x + len(str(e)), p, d, d.popitem()

# reversed:
#   f(T(2), {"a": 1, "b": 2})
#   f(T(2), {"b": 2, "a": 1})
def f(x, d):
    it = reversed(d)
    first = next(it)
    print("break")
    return x + 1, first, list(it), list(reversed(d.items())), list(reversed({1: 2, 3: 4}.values()))

# views:
#   f(T(2), {"a": 1, "b": 2})
#   f(T(2), {"a": 1, "c": 2})
def f(x, d):
    k, v, i = d.keys(), d.values(), d.items()
    r = [k & {"a"}, {"a"} | k, k - ["a"] if False else 0, k ^ {"z"}, i & {("a", 1)}, i - {("a", 1)}]
    r += [k == {"a", "b"}, i == {("a", 1), ("b", 2)}, k <= {"a", "b", "c"}, "a" in k, 1 in v, 7 in v]
    r += [("a", 1) in i, ("a", 2) in i, len(v), list(k | {"b"})]
    return x + 1, r, k, v, i

# a key is added while iterating:
#   f(T(2))
def f(x):
    y = x + 1
    d = {1: 2}
    for k in d:
        d[k + 1] = 3
    return y

# values change while iterating:
#   f(T(2), {1: 2, 3: 4})
def f(x, d):
    for k in d:
        d[k] = d[k] + 1
    for k, v in d.items():
        d[k] = x * v
    return d

# a key is removed from one from outside while iterating:
#   f(T(2), {1: 2, 3: 4})
def f(x, d):
    y = x + 1
    for k in d:
        del d[k]
    return y

# order is guarded only if it is looked at:
#   f(T(2), {"a": 1, "b": 2})
#   f(T(2), {"b": 2, "a": 1})
#   f(T(2), {"b": 2, "a": 1, "c": 3})
def f(x, d):
    return x * d["a"] + d.get("b", 0), "z" in d

# keys that are objects:
#   f(T(2), M.A, int)
#   f(T(2), M.B, float)
#   D.__setitem__(M.A, 7)
#   f(T(2), M.A, int)
#   D.pop(int)
#   f(T(2), M.A, int)
import enum
class M(enum.Enum):
    A = 1
    B = 2
D = {M.A: 2, M.B: 3, int: 5, torch.float32: 6}
def f(x, m, t):
    y = x * D[m] + D.get(t, 1) + D[x.dtype]
    return y, {m: 1}[M.A] if m is M.A else 0, list(D)

# nan as a key:
#   f(T(2))
N = {float("nan"): 1}
def f(x):
    y = x + 1
    d = {float("nan"): 1}
    return y, len(d), len(N)

# keys with code of their own:
#   f(T(2), K())
class K:
    def __hash__(self):
        print("hash")
        return hash("a")
    def __eq__(self, other):
        print("eq")
        return True
def f(x, k):
    y = x + 1
    d = {"a": 1}
    d[k] = y
    return d["a"], len(d)

# OrderedDict and defaultdict are read:
#   f(T(2))
#   O.move_to_end("a")
#   f(T(2))
#   list(D)
from collections import OrderedDict, defaultdict
O = OrderedDict(a=1, b=2)
D = defaultdict(list, {"a": [1]})
def f(x):
    y = x + O["a"] + len(D["a"])
    for k, v in O.items():
        y = y * v
    y = y + len(D["zz"])
    return y, list(O), "b" in D, D.get("b"), dict(O), isinstance(O, dict), O == OrderedDict(b=2, a=1)

# and changed by plain Python:
#   (f(T(2), OrderedDict(a=1)))
#   (f(T(2), defaultdict(int)))
from collections import OrderedDict, defaultdict
def f(x, d):
    y = x + 1
    d["k"] = y
    d.update(z=1)
    return y, d, d.pop("k")

# a class of the user's:
#   f(T(2), D(a=1))
class D(dict):
    def __getitem__(self, key):
        return key + "!"
    def __missing__(self, key):
        return 0
def f(x, d):
    y = x + 1
    return y, d["a"], d["zz"], len(d), list(d)
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_dicts_behave_as_in_plain_python(program):
    program.check()


def test_iteration_over_a_dict_that_changes_breaks_there():
    seen = check(
        """
        def f(x):
            y = x + 1
            d = {1: 2}
            for k in d:
                d[k + 1] = 3
            return y
        """,
        "f(T(2))",
    )
    assert seen.outcomes[0].error[:2] == ("RuntimeError", "dictionary changed size during iteration")
    assert seen.reasons[0] == "MD234"


def test_a_key_that_is_read_guards_nothing_else():
    seen = check(
        """
        def f(x, d):
            return x * d["a"]
        """,
        "f(T(2), {'a': 2})",
        "f(T(2), {'c': 1, 'a': 2})",
    )
    assert seen.graphs == 1
