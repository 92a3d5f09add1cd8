"""Which places lie in a loop: there a frame that was broken goes on as plain Python."""

from __future__ import annotations

from typing import Any

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


def test_a_loop_with_a_break_is_not_entered_again_but_what_it_calls_is_captured():
    source = """
    def g(x):
        return x * 2
    def f(x):
        for i in range(4):
            x = g(x) + i
            print(i)
        return x - 1
    """
    seen = check(source, "f(T(2))")
    assert seen.skips == ["MD314"]
    assert [event.where.function for event in seen.compiled] == ["f", "g"]


def test_a_long_loop_with_a_break_needs_no_more_stack_than_plain_python():
    check(
        "def f(x):\n    for i in range(3000):\n        x = x + 1\n        len(repr(x.sum().item()))\n    return x\n",
        "f(T(2))",
    )
