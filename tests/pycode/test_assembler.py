"""Numbers, distances and tables of assembled code, where they are not the small ones of every day."""

from __future__ import annotations

import math
from types import FunctionType

import pytest

from minidynamo.exc import InternalError
from minidynamo.pycode.assembler import Label
from minidynamo.pycode.expr import Assign, Attr, Branch, Call, Const, Do, Local, Op, Rescue, Return, Tuple
from minidynamo.pycode.lower import assemble, flatten
from minidynamo.pycode.read_back import read_back
from minidynamo.pycode.verify import stack_depths


def signature(x):
    """The docstring is the first constant."""


CODE = signature.__code__


def run(body, *args):
    return FunctionType(assemble(CODE, body), globals())(*args)


def test_constants_are_one_only_when_nothing_tells_them_apart():
    values = (1, True, 1.0, 0.0, -0.0, "1", b"1", None, (1,), (True,), (1.0,))
    found = run((Return(Tuple(tuple(map(Const, values)))),), 0)
    assert list(map(repr, found)) == list(map(repr, values))
    assert math.copysign(1, found[4]) == -1
    made = assemble(CODE, (Return(Tuple((Const("a"), Const("a"), Const(7), Const(7)))),))
    assert made.co_consts == (CODE.co_consts[0], "a", 7)


def test_more_constants_and_names_than_a_byte_counts():
    many = tuple(Const(f"text {number}") for number in range(700))
    assert run((Return(Tuple(many)),), 0) == tuple(f"text {number}" for number in range(700))
    body = tuple(Assign(f"v{number}", Const(number)) for number in range(300))
    assert run((*body, Return(Local("v299"))), 0) == 299

    class Holder:
        pass

    holder = Holder()
    for number in range(300):
        setattr(holder, f"a{number}", number)
    assert (
        run((Return(Tuple(tuple(Attr(Local("x"), f"a{number}") for number in range(300)))),), holder)[-1]
        == 299
    )


@pytest.mark.parametrize("length", [1, 100, 126, 127, 128, 129, 130, 300, 40_000])
def test_jumps_of_every_length(length):
    far = tuple(Do(Const(None)) for _ in range(length))
    body = (
        Branch("POP_JUMP_IF_TRUE", (Local("x"),), (Return(Const("taken")),), (*far, Return(Const("on")))),
    )
    assert (run(body, True), run(body, False)) == ("taken", "on")
    rescued = (Rescue((*far, Assign("y", Attr(Local("x"), "y"))), Const("rescued")), Return(Local("y")))
    assert run(rescued, object()) == "rescued"
    assert run(rescued, type("T", (), {"y": 3})) == 3


def test_the_stack_is_as_deep_as_it_gets():
    deep = Const(0)
    for _ in range(50):
        deep = Op("BINARY_OP", "+", (Const(1), deep))
    made = assemble(CODE, (Return(deep),))
    assert made.co_stacksize == 51 == max(stack_depths(made).values())
    assert FunctionType(made, {})(0) == 50


def test_what_is_read_differently_is_an_error():
    body = (Return(Call(Const(len), (Local("x"),))),)
    items = flatten(CODE, body)
    made = assemble(CODE, body)
    read_back(made, items)
    with pytest.raises(InternalError, match="instructions written"):
        read_back(made, items[:-1])
    place = next(index for index, item in enumerate(items) if item[0] == "LOAD_FAST")
    items[place] = ("LOAD_FAST", "y", None, items[place][3])
    with pytest.raises(InternalError, match="LOAD_FAST 'y' was written, LOAD_FAST 'x' is read"):
        read_back(made, items)
    items[place] = ("LOAD_FAST", Label(), None, items[place][3])
    with pytest.raises(InternalError, match="is read"):
        read_back(made, items)
