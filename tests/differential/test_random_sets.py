"""Random sequences of set operations, on elements whose hashes collide: contents, order and identity are those of plain Python."""

from __future__ import annotations

import random

import pytest

from minidynamo import config
from tests.eager import check

ELEMENTS = """0 8 16 24 32 1 9 True 1.0 'a' 'b' 'c' (1,2) (1.0,2) None -1 -2 40 48 56""".split()
OPERATORS = ("|", "&", "-", "^")
COMPARISONS = ("<=", "==", "<", "!=")
STATEMENTS = (
    "{s}.add({e})",
    "{s}.discard({e})",
    "a = set({t}) {op} {u}",
    "{s}.update({t}, [{e}])",
    "out.append({e} in {s})",
    "out.append(len({s}))",
    "b = set(a)",
    "b = a.copy()",
    "{s} {op}= {t}",
    "out.append(list(a))",
    "out.append(b.pop() if b else 0)",
    "out.append({s} {cmp} {t})",
    "print('x')",
    "y = y * len({s})",
    "out.append(sorted(map(str, a)))",
    "{s}.difference_update({t})",
    "{s}.symmetric_difference_update({t})",
    "{s}.clear()",
)


def some(draw: random.Random, least: int, most: int) -> str:
    return ", ".join(draw.sample(ELEMENTS, draw.randint(least, most)))


def program(draw: random.Random) -> str:
    """`a` and `b` are made in the trace, `o` (a set) and `p` (a frozenset) come from outside."""
    lines = ["y = x + 1", f"a = {{{some(draw, 1, 6)}}}", f"b = set([{some(draw, 0, 8)}])", "out = []"]
    for _ in range(draw.randint(3, 12)):
        operands = ["a", "b", "o", "p", f"{{{some(draw, 1, 4)}}}", f"frozenset([{some(draw, 0, 4)}])"]
        lines.append(
            draw.choice(STATEMENTS).format(
                s=draw.choice("aabbo"),
                e=draw.choice(ELEMENTS),
                t=draw.choice(operands),
                u=draw.choice(operands),
                op=draw.choice(OPERATORS),
                cmp=draw.choice(COMPARISONS),
            )
        )
    lines.append("return y, out, list(a), list(b), a, b, o, a is b")
    return "\n    ".join(["def f(x, o, p):", *lines]) + "\n"


def compare(seed: int) -> int:
    """Graphs that were made."""
    draw = random.Random(seed)
    source = program(draw)
    call = "(lambda o: (f(T(2), o, frozenset({8, 0, 'a', 5})), list(o)))({%s})"
    first, second = call % some(draw, 4, 4), call % some(draw, 2, 2)
    with config.patch(verify=False):
        try:
            return check(source, first, first, second, warns=True).graphs
        except AssertionError as error:
            raise AssertionError(f"{error}\n{source}") from None


def test_random_set_programs():
    assert sum(compare(seed) > 0 for seed in range(40)) > 20


@pytest.mark.nightly
def test_many_random_set_programs():
    for seed in range(40, 600):
        compare(seed)
