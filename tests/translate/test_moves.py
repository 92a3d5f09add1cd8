"""Temporaries of emitted code are given up at their last use, in the order of evaluation."""

from __future__ import annotations

import pytest

from minidynamo.pycode import expr as E
from minidynamo.translate.moves import move

a, b = E.Local("___a"), E.Local("___b")
A, B = E.Move("___a"), E.Move("___b")
x = E.Local("x")


@pytest.mark.parametrize(
    ("body", "moved"),
    [
        ((E.Return(a),), (E.Return(A),)),
        ((E.Return(x),), (E.Return(x),)),
        ((E.Do(a), E.Return(a)), (E.Do(a), E.Return(A))),
        ((E.Return(E.Tuple((a, b, a))),), (E.Return(E.Tuple((a, B, A))),)),
        ((E.Return(E.Call(a, (a,))),), (E.Return(E.Call(a, (A,))),)),
        ((E.Return(E.Map((a, b), (b, a))),), (E.Return(E.Map((a, B), (b, A))),)),
        ((E.Assign("___a", x), E.Return(x)), (E.Do(x), E.Return(x))),
        ((E.Assign("y", x), E.Return(x)), (E.Assign("y", x), E.Return(x))),
        ((E.Assign("___a", a), E.Return(a)), (E.Assign("___a", A), E.Return(A))),
    ],
)
def test_the_last_use_moves(body, moved):
    assert move(body) == moved


def test_each_side_of_a_branch_gives_up_by_itself():
    branch = E.Branch("POP_JUMP_IF_TRUE", (a,), (E.Return(b),), (E.Return(a),))
    assert move((branch,)) == (E.Branch("POP_JUMP_IF_TRUE", (a,), (E.Return(B),), (E.Return(A),)),)


def test_an_iteration_gives_up_the_item():
    loop = E.IterBranch(a, (E.Return(E.Local("___item")),), (E.Return(E.Local("___it")),), "___it", "___item")
    moved = E.IterBranch(A, (E.Return(E.Move("___item")),), (E.Return(E.Move("___it")),), "___it", "___item")
    assert move((loop,)) == (moved,)


def test_nothing_is_given_up_where_plain_python_may_take_over():
    body = (E.Assign("___a", x), E.Assign("___b", E.Call(a)))
    assert move((E.Rescue(body, E.Const(0)), E.Return(b))) == (E.Rescue(body, E.Const(0)), E.Return(B))


def test_what_a_later_rescue_uses_is_kept_by_the_first():
    first, second = E.Rescue((E.Assign("___a", x),), E.Const(0)), E.Rescue((E.Assign("___b", a),), E.Const(0))
    assert move((first, second, E.Return(b))) == (first, second, E.Return(B))


def test_outputs_that_nobody_uses_are_not_kept():
    unpack = E.Apply(("___a", "___b"), "UNPACK_SEQUENCE", 2, (E.Call(x),))
    kept = E.Apply((None, "___b"), "UNPACK_SEQUENCE", 2, (E.Call(x),))
    assert move((E.Rescue((unpack,), E.Const(0)), E.Return(b))) == (
        E.Rescue((kept,), E.Const(0)),
        E.Return(B),
    )
