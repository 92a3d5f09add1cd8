"""Which places lie in a loop: there a frame that was broken goes on as plain Python."""

from __future__ import annotations

from typing import Any

import pytest

from minidynamo.pycode.lift import lift
from minidynamo.translate.loops import in_loop
from tests.eager import check


def program(items: Any) -> Any:
    a = 1
    for i in items:
        b = i
        if b:
            c = 2
            break
        d = 3
    else:
        e = 4
    return a, b, c, d, e


def test_only_what_can_come_again_lies_in_a_loop():
    ir = lift(program.__code__)
    stores = {inst.arg: inst.index for inst in ir.instructions if inst.opname == "STORE_FAST"}
    assert {name for name, index in stores.items() if in_loop(ir, index)} == {"i", "b", "d"}


def test_the_body_of_a_loop_with_a_break_is_compiled_once():
    source = """
    def f(x, n):
        for i in range(n):
            x = x + 1
            print(end='')
            x = x * 2
        return x - 1
    """
    seen = check(source, "f(T(2), 3)", "f(T(2), 50)")
    assert seen.skips == []
    assert len(seen.compiled) <= 8  # per part: one for each call, as `n` is guarded


def test_what_changes_in_each_round_is_compiled_twice_and_what_it_calls_is_captured():
    source = """
    def g(x):
        return x * 2
    def f(x):
        for i in range(40):
            x = g(x) + i
            print(i)
            x = x / 2
        return x - 1
    """
    seen = check(source, "f(T(2))")
    assert set(seen.skips) == {"MD314"}
    assert "g" in [event.where.function for event in seen.compiled]


def test_a_long_loop_with_a_break_needs_no_more_stack_than_plain_python():
    check(
        "def f(x):\n    for i in range(3000):\n        x = x + 1\n        len(repr(x.sum().item()))\n    return x\n",
        "f(T(2))",
    )


def test_a_loop_on_a_tensor_condition_goes_round_in_compiled_code():
    source = """
    def f(x):
        while x.sum() < 5000:
            x = x + 1
        return x * 2
    """
    seen = check(source, "f(T(2))", "f(T(3))")
    assert seen.skips == []
    # up to the condition, the next round, what follows: per shape; CPython 3.12 writes the condition twice
    assert len(seen.compiled) in (6, 8)


SHAPES = [
    "for i in range(4):",
    "for i in iter([1, 2, 3]):",
    "for i, c in enumerate('abc'):",
    "for i in (n for n in x.shape * 3):",
]
ENDS = ["continue", "break", "pass", "return x * i", "y = x"]


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("head", SHAPES)
def test_loops_of_every_kind_with_breaks(head, end):
    source = f"""
    def f(x, at):
        y = None
        {head}
            x = x + 1
            print(i)
            if i == at:
                x = x * 2
                print('at', i)
                {end}
            x = x - x.sum() * 0.5
            try:
                print(x.shape)
            finally:
                x = x + 3
        else:
            x = x * 7
        while x.mean() < 100:
            x = x * 2 + 100
            for j in range(2):
                x = x + j
                print('inner', j)
        return x, y
    """
    check(source, "f(T(2), 2)", "f(T(2), 9)")
