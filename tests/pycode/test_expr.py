"""The printer of emitted values."""

from __future__ import annotations

import pytest

from minidynamo.pycode import expr as x
from minidynamo.pycode.tables import Position

A, B = x.Local("a"), x.Global("b")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (x.Deref("d"), "d"),
        (x.Cell("c"), "cell(c)"),
        (x.Const("s"), "'s'"),
        (x.Null(), "NULL"),
        (x.Attr(A, "n"), "a.n"),
        (x.Item(A, x.Const(0)), "a[0]"),
        (x.Call(B, (A, A)), "b(a, a)"),
        (x.CallKw(B, (A, A), ("k",)), "b(a, k=a)"),
        (x.CallEx(B, A), "b(*a)"),
        (x.CallEx(B, A, A), "b(*a, **a)"),
        (x.Tuple((A,)), "(a,)"),
        (x.Tuple((A, B)), "(a, b)"),
        (x.List((A,)), "[a]"),
        (x.Set((A,)), "{a}"),
        (x.Set(), "set()"),
        (x.Map((A,), (B,)), "{a: b}"),
        (x.Slice(A, B), "slice(a, b)"),
        (x.Slice(A, B, A), "slice(a, b, a)"),
        (x.Function(A, closure=B), "function(a, closure=b)"),
        (x.Op("BINARY_OP", "+", (A, B)), "(a + b)"),
        (x.Op("COMPARE_OP", "<", (A, x.Op("BINARY_OP", "*", (B, B)))), "(a < (b * b))"),
        (x.Op("UNARY_NOT", None, (A,)), "UNARY_NOT(a)"),
        (x.Op("IS_OP", 1, (A, B)), "IS_OP[1](a, b)"),
        (x.Assign("t", A), "t = a"),
        (x.Do(x.Call(B)), "b()"),
        (x.Delete("t"), "del t"),
        (x.Return(A), "return a"),
        (x.Effect("STORE_ATTR", "n", (A, B)), "b.n = a"),
        (x.Effect("STORE_SUBSCR", None, (A, B, x.Const(1))), "b[1] = a"),
        (x.Effect("STORE_DEREF", "c", (A,)), "cell c = a"),
        (x.Effect("RAISE_VARARGS", 1, (A,)), "RAISE_VARARGS[1](a)"),
        (x.At(7), "# line 7"),
        (x.At(Position(8, 8, 1, 2)), "# line 8"),
        ((x.Delete("t"), x.Return(A)), "del t\nreturn a"),
        (
            x.Branch("POP_JUMP_IF_NOT_NONE", (A,), (x.Return(A),), (x.Do(B), x.Return(B))),
            "if not_none(a):\n    return a\nelse:\n    b\n    return b",
        ),
        (
            x.IterBranch(A, (x.Return(B),), (), "it", "item"),
            "it = a\nif more(it) as item:\n    return b\nelse:\n    pass",
        ),
        (x.Rescue((x.Do(A),), B), "try:\n    a\nexcept Exception:\n    return b"),
        (x.Catch((x.Do(A),), "e", (x.Return(x.Local("e")),)), "try:\n    a\ncatch e:\n    return e"),
        (x.Handling(A, (x.Do(B),)), "handling a:\n    b"),
    ],
    ids=lambda part: type(part).__name__ if not isinstance(part, str) else "",
)
def test_source(value, text):
    assert x.source(value) == text


def test_every_value_has_a_text():
    classes = {c for c in vars(x).values() if isinstance(c, type) and issubclass(c, (x.Expr, x.Stmt))}
    assert set(x._PRINTERS) == classes - {x.Expr, x.Stmt}


def test_values_are_values():
    assert x.Call(A, (B,)) == x.Call(x.Local("a"), (x.Global("b"),)) != x.Call(A, (A,)) and A != x.Move("a")
    assert repr(x.Call(A, (B,))) == "<Call a(b)>" and repr(x.Return(A)) == "<Return return a>"
