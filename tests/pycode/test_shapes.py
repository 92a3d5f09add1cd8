"""Code of one shape is assembled once and filled in: names of variables, constants, first line."""

import types

import pytest

from minidynamo import config
from minidynamo.exc import InternalError
from minidynamo.pycode import lower
from minidynamo.pycode.expr import (
    Assign,
    At,
    Attr,
    Branch,
    Call,
    CallKw,
    Const,
    Deref,
    Do,
    Global,
    Local,
    Map,
    Move,
    Null,
    Op,
    Rescue,
    Return,
    Tuple,
)
from minidynamo.pycode.lower import assemble
from minidynamo.pycode.shapes import NoShape, Shape


def like(x, y):
    """A docstring."""


def other(first, second):
    """Another one."""


def bare(x, y):
    return None


def body_of(one, two, constant, line):
    return (
        At(line + 1),
        Assign("___made", Call(Const(constant), (Local(one), Local(two)))),
        Branch("POP_JUMP_IF_TRUE", (Local(two),), (Return(Tuple((Move("___made"), Const("yes")))),)),
        Rescue((Do(Call(Global("len"), (Local(one),))),), Const(None)),
        Return(Attr(Local(one), "real")),
    )


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(lower, "_shared", {})


def test_one_shape_is_assembled_once():
    """Only the first of two functions whose variables have other names reaches the assembler; each runs with its own constants."""
    with config.patch(verify=False):
        first = assemble(like.__code__, body_of("x", "y", max, like.__code__.co_firstlineno))
        assert len(lower._shared) == 1
        second = assemble(other.__code__, body_of("first", "second", min, other.__code__.co_firstlineno))
    assert len(lower._shared) == 1
    assert first.co_code == second.co_code
    run = types.FunctionType(first, {})
    assert run(3, 4) == (4, "yes") and run(3, 0) is None
    run = types.FunctionType(second, {})
    assert run(3, 4) == (3, "yes")


def test_names_lines_and_docstrings_are_the_function_s_own():
    made = []
    for fn, names in ((like, ("x", "y")), (other, ("first", "second")), (bare, ("x", "y"))):
        code = fn.__code__
        made.append(assemble(code, body_of(*names, max, code.co_firstlineno), name="renamed"))
        assert made[-1].co_varnames[:2] == names
        assert (made[-1].co_name, made[-1].co_qualname) == ("renamed", code.co_qualname)
        assert made[-1].co_firstlineno == code.co_firstlineno
        assert {line for *_, line in made[-1].co_lines() if line} == {
            code.co_firstlineno,
            code.co_firstlineno + 1,
        }
    assert types.FunctionType(made[0], {}).__doc__ == "A docstring."
    assert types.FunctionType(made[1], {}).__doc__ == "Another one."
    assert types.FunctionType(made[2], {}).__doc__ is None


def test_constants_that_are_one_object_or_equal():
    """Which constants are one object is part of the shape; values that are equal but not the same keep their types."""

    def run(*values):
        code = assemble(bare.__code__, (Return(Tuple(tuple(map(Const, values)))),))
        return types.FunctionType(code, {})(None, None)

    for values in ((1, 1), (1, True), (1.0, 1), (0.0, -0.0), ("a", "b"), ((1, 2), (1, 2.0))):
        assert list(map(repr, run(*values))) == list(map(repr, values))
    assert len(lower._shared) == 2  # (a, a) and (a, b)


SAME = Return(Call(Global("f"), (Local("x"),)))
DIFFERENT = {
    "another global": (Return(Call(Global("g"), (Local("x"),))),),
    "another slot": (Return(Call(Global("f"), (Local("y"),))),),
    "one more argument": (Return(Call(Global("f"), (Local("x"), Local("x")))),),
    "names of arguments": (Return(CallKw(Global("f"), (Local("x"),), ("a",))),),
    "an operator": (Return(Op("BINARY_OP", "+", (Local("x"), Local("x")))),),
    "another operator": (Return(Op("BINARY_OP", "-", (Local("x"), Local("x")))),),
    "a line": (At(like.__code__.co_firstlineno + 7), SAME),
    "a keyword's name": (Return(Op("CALL_KW", 1, (Global("f"), Null(), Local("x"), Const(("a",))))),),
    "another keyword's name": (Return(Op("CALL_KW", 1, (Global("f"), Null(), Local("x"), Const(("b",))))),),
    "keys of a map": (Return(Op("BUILD_CONST_KEY_MAP", 1, (Local("x"), Const(("a",))))),),
    "other keys": (Return(Op("BUILD_CONST_KEY_MAP", 1, (Local("x"), Const(("b",))))),),
    "a map": (Return(Map((Const("a"),), (Local("x"),))),),
}


def test_what_makes_another_shape():
    bodies = {"the first": (SAME,), **DIFFERENT}
    keys = {name: Shape(like.__code__, body).key for name, body in bodies.items()}
    assert len(set(keys.values())) == len(keys)


def test_cells_are_told_by_their_place():
    def outer(a, b):
        c = a

        def first():
            return a, b, c

        def second():
            return b, c, a

        return first, second

    first, second = outer(1, 2)
    codes = [fn.__code__ for fn in (first, second)]
    for fn, code in zip((first, second), codes, strict=True):
        for name in code.co_freevars:
            made = assemble(code, (Return(Deref(name)),))
            at = code.co_freevars.index(name)
            run = types.FunctionType(made, {}, closure=fn.__closure__)
            assert run() == fn.__closure__[at].cell_contents
    assert len(lower._shared) == 3


def test_values_that_are_no_part_of_instructions_have_no_shape():
    with pytest.raises(NoShape):
        Shape(like.__code__, (Return(Op("LOAD_CONST", 1.5)),))
    made = assemble(like.__code__, (Return(Op("LOAD_CONST", 1.5)),))
    assert types.FunctionType(made, {})(1, 2) == 1.5
    assert not lower._shared


def test_the_number_of_shapes_is_bounded(monkeypatch):
    monkeypatch.setattr(lower, "SHAPES", 3)
    for n in range(6):
        assemble(like.__code__, (Return(Tuple((Local("x"),) * n)),))
    assert len(lower._shared) == 3


def test_wrong_shared_code_is_found():
    """MINIDYNAMO_VERIFY=1 assembles anew and compares."""
    code = like.__code__
    assemble(code, (Return(Local("x")),))
    (key,) = lower._shared
    lower._shared[key] = assemble(code, (Return(Local("y")),))
    with config.patch(verify=True), pytest.raises(InternalError, match="assembled anew"):
        assemble(code, (Return(Local("x")),))
