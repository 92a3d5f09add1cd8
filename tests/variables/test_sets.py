"""Sets and frozensets."""

from __future__ import annotations

import pytest

from tests.eager import check, programs

PROGRAMS = programs(
    r"""
# displays and membership:
#   f(T(2), 2)
#   f(T(2), 5)
def f(x, n):
    s = {x.dim(), n, "a", (1, n)}
    return x * len(s), n in {1, 2, 3}, n not in {1, 2, 3}, (1, 2) in s, s, bool(s), not set()

# equal elements of different types, the first one stays:
#   f(T(2))
def f(x):
    s = {1, True, 1.0} | {2.0}
    t = {True, 2} & {1}
    u = {0.0, -0.0, False}
    return x + 1, list(s), list(t), list(u), s, t, u

# comprehensions and unpacking:
#   f(T(2))
def f(x):
    s = {i % 3 for i in range(9)}
    t = {*s, *"ab", *(7, 8)}
    a, *b = {9}
    return [x + i for i in s], s, t, frozenset(t), a, b

# the order is that of a real set:
#   f(T(2))
def f(x):
    s = {"a", "b", "c", "d", 7, 8, 1}
    s.add("zz")
    s.discard("b")
    s.update(range(20, 40), ["k"])
    s -= {21, 23}
    out = [k for k in s]
    first = s.pop()
    return x + len(out), out, first, list(s), tuple(s | {3}), list(s ^ {"a", "q"}), str(s)

# what is rebuilt goes on in the same order:
#   f(T(2))
def f(x):
    s = set("spam and eggs")
    s.discard("m")
    s.pop()
    t = s.copy()
    y = x + 1
    print("break")
    s.update("xyz")
    t |= frozenset("xyz")
    return y * 2, list(s), list(t), s.pop(), t.pop()

# operators:
#   f(T(2), {2, 3})
#   f(T(2), frozenset({2, 3}))
#   f(T(2), {1, 2})
def f(x, t):
    a, b, c, d = {1, 2} | t, {1, 2} & t, t - {1}, t ^ {5}
    r = [t <= a, t < t, t == {1, 2}, t != a, a >= t, a > b, {1} == frozenset([1]), t == 3]
    return x + len(a) + len(b) + len(c) + len(d), a, b, c, d, r

# operators with what is no set:
#   f(T(2))
def f(x):
    y = x + 1
    try:
        return y, {1} | [2]
    except TypeError as e:
        return y, 0

# in-place operators keep the object:
#   f(T(2))
def f(x):
    s = t = {1, 2}
    u = v = frozenset(s)
    s |= {3}
    s -= {1}
    s ^= {9, 3}
    s &= {9, 2, 7}
    u |= {4}
    return x + len(t), t is s, s, u, v

# methods:
#   f(T(2))
def f(x):
    s = set([3, 1, 2])
    u = s.union([7], (8,), {9: 1})
    s.update("ab", {4: 1})
    r = [s.intersection({3, 1}, [1]), s.difference([1]), s.symmetric_difference({1}), s.isdisjoint([9])]
    r += [s.issubset(range(5)), u.issuperset(iter([7]))]
    s.intersection_update([1, 2, 3])
    s.difference_update([2], [8])
    s.symmetric_difference_update([1, 5])
    s.remove(5)
    c = s.copy()
    s.clear()
    return x + 1, s, u, c, r, frozenset("a").union("b"), frozenset(c) is c, set(i for i in "ab")

# missing elements:
#   f(T(2))
def f(x):
    s = {1}
    try:
        s.remove(5)
    except KeyError as e:
        x = x + e.args[0]
    s.discard(5)
    try:
        set().pop()
    except KeyError as e:
        x = x + len(str(e))
    return x

# an error that leaves the function:
#   f(T(2))
def f(x):
    y = x + 1
    return y, {1}.remove(2)

# sets from outside are guarded as far as they are read:
#   f(T(2), 1)
#   f(T(2), 5)
#   S.add(5)
#   f(T(2), 5)
#   S.discard(1)
#   f(T(2), 1)
S = {1, 2, "q"}
def f(x, k):
    if k in S:
        return x + 1
    return x + len(S)

# their order:
#   f(T(2), S)
#   S.add(33)
#   f(T(2), S)
#   f(T(2), set())
#   f(T(2), {8, 0})
#   f(T(2), {0, 8})
S = {1, 2, "q", (1, 2), None}
def f(x, s):
    out = []
    for k in s:
        out.append(k)
    return x + len(out), out, list(s), sorted(map(str, s))

# changes of sets from outside:
#   (f(T(2), S, {7, 8}), S)
#   (f(T(2), S, [7, 8]), S)
#   (f(T(2), S, "ab"), S)
S = {1, 2}
def f(x, s, t):
    s.add(3)
    s.add(3)
    s.discard(1)
    s.update(t)
    s |= {11}
    s.difference_update([2])
    return x + len(s), 1 in s, s == {3}

# two names of one set:
#   f(T(2), S, S)
#   f(T(2), S, {1})
#   f(T(2), {3}, S)
S = {1, 2}
def f(x, t, u):
    t.add(9)
    return x + len(u), t is u, u

# what was made from a set from outside that changes:
#   f(T(2), {1, 2})
#   f(T(2), {1, 2, 9})
def f(x, s):
    t = s | {3}
    s.add(4)
    return x + len(t), 4 in t

# and is still needed (plain):
#   f(T(2), {1, 2})
def f(x, s):
    t = s | {3}
    s.add(4)
    return x + 1, t, s

# the same of a set that was made in the trace:
#   f(T(2))
def f(x):
    s = {1, 2, 3}
    t = s.union({5})
    u = s - {1}
    s.clear()
    return x + 1, s, t, len(u)

# sets of builtin classes from outside:
#   f(T(1), 2), f(T(1), 2.5), f(T(1), [])
#   (KINDS.add(list), f(T(1), []), KINDS.discard(int), f(T(1), 2), f(T(1), 2.5))
PLAIN = frozenset({int, float, type(None), type(...), ValueError})
KINDS = {int, str}
def f(x, v):
    if type(v) in PLAIN: x = x + 1
    if type(v) in KINDS: x = x * 5
    return x, len(KINDS), KINDS <= PLAIN, KINDS & {int}, KINDS

# rebuilt from outside:
#   f(T(2), {1, 2}, frozenset({5}))
#   f(T(2), {1, 3}, frozenset({6}))
def f(x, s, t):
    u, v = s | t, s.copy()
    v.add(8)
    return x + 1, u, v, t, t.union(s), sorted(u), max(v), min(s), sum({1, 2})

# a break in the middle of an iteration:
#   f(T(2))
def f(x):
    out = []
    it = iter({"a", "b", "c"})
    out.append(next(it))
    y = x + 1
    print(y.shape)
    return y + 1, out, list(it), list(it)

# a set that changes while it is iterated:
#   f(T(2))
def f(x):
    y = x + 1
    s = {1, 2}
    for k in s:
        s.add(k + 10)
    return y

# a set and itself:
#   f(T(2), {1, 2})
def f(x, o):
    s = {1, 2, 3}
    y = x + len(s | s)
    s.update(s)
    s &= s
    o -= o
    s ^= s
    return y, s, o, s == s, s <= s

# nan equals nothing:
#   f(T(2))
n = float("nan")
def f(x):
    s = {1.0}
    y = x + 1
    s.add(n)
    return y, len(s), n in s, float("nan") in s

# what hashes by code of its own:
#   f(T(2), K(1))
class K:
    def __init__(self, k):
        self.k = k
    def __hash__(self):
        print("hash")
        return 1
    def __eq__(self, other):
        print("eq")
        return self.k == other.k
def f(x, k):
    y = x + 1
    s = {k, K(1)}
    return y, len(s)

# tensors:
#   f(T(2))
def f(x):
    y = x + 1
    s = {y}
    return y * len(s)

# unhashable elements:
#   f(T(2))
def f(x):
    y = x + 1
    return y, {[1]}

# classes and functions:
#   f(T(2))
def f(x):
    s = {int, len, torch.float32, f}
    return x + len(s & {int}), float in s, type(x.dim()) in s

# sets in sets:
#   f(T(2), frozenset({1}))
def f(x, fs):
    s = {frozenset([1]), frozenset({2, 3})}
    return x + len(s), fs in s, frozenset() in s
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_sets_behave_as_in_plain_python(program):
    program.check()


@pytest.mark.parametrize("size", [0, 3, 5, 20])
def test_rebuilt_sets_keep_their_history(size):
    """Elements with colliding hashes: the order depends on the order of insertion."""
    elements = [8 * i for i in range(size)] + [3, 11, 19]
    source = f"""
        def f(x):
            s = set()
            for i in {elements[::-1]}:
                s.add(i)
            t = {{*{elements}}}
            print("break")
            return x + 1, list(s), list(t), list(s | t), list(t - {{3}})
        """
    check(source, "f(T(2))")


def test_one_graph(trace):
    allowed = {"relu", "abs"}

    def f(x, name):
        seen = set()
        for i in range(3):
            if i % 2 not in seen and name in allowed:
                seen.add(i % 2)
                x = x + i
        return x

    view = trace(f, __import__("torch").zeros(2), "relu")
    assert view.graph == "a=x+0; a+1"
    assert "___set_has(___closure[0].cell_contents, 'relu')" in view.guards
    assert "___check_set" not in view.guards


def test_only_what_is_read_is_guarded():
    seen = check(
        """
        S = {1, 2}
        def f(x):
            return x + (1 in S)
        """,
        "f(T(2))",
        "S.add(7)",
        "f(T(2))",
    )
    assert seen.graphs == 1


def test_the_reason_for_an_unknown_order():
    seen = check(
        """
        def f(x, s):
            y = x + 1
            s.add(4)
            for k in s:
                y = y + k
            return y
        """,
        "f(T(2), {1, 2})",
    )
    assert seen.reasons[0] == "MD245"
