"""A failed guard is told in the user's words: where, what was expected, what was found, metadata only."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch

from minidynamo.guards.builder import GuardBuilder as B
from minidynamo.guards.diagnose import explain_failure, short
from minidynamo.guards.guard import make_guard
from minidynamo.sources import (
    AttrSource,
    BuiltinSource,
    CellSource,
    ClosureSource,
    GlobalSource,
    ItemSource,
    LocalSource,
    SizeSource,
    StateSource,
)

X, Y = LocalSource("x"), LocalSource("y")
N = LocalSource("n")
scale = 3


def fn(x, n=None):
    return x, n


class Config:
    def __init__(self, **values):
        self.__dict__.update(values)

    def __repr__(self):
        raise AssertionError("user code ran")


def one(a=1):
    return a


def two(a=1):
    return a


def adder(k):
    return lambda x: x + k


def changed(frame, **values):
    return type(frame)(frame.locals | values, frame.globals, frame.builtins, frame.closure, frame.freevars)


T = torch.zeros
CASES = [
    (X, B.EQUALS_MATCH, (), 2, 3, "argument x: expected 2, found 3"),
    (X, B.EQUALS_MATCH, (), 2, "a" * 100, "argument x: expected type int, found type str"),
    (X, B.EQUALS_MATCH, (), 0.0, -0.0, "argument x: expected 0.0, found -0.0"),
    (X, B.EQUALS_MATCH, (), None, Config(), "argument x: expected None, found a Config"),
    (X, B.TYPE_MATCH, (), Config(), 1, "argument x: expected type Config, found type int"),
    (X, B.TENSOR_MATCH, (), T(4, 8), T(5, 8), "argument x: expected size (4, 8), found size (5, 8)"),
    (X, B.TENSOR_MATCH, (), T(4), T(5), "argument x: expected size (4,), found size (5,)"),
    (X, B.TENSOR_MATCH, ((0,), ()), T(4, 8), T(5, 9), "argument x: expected size (*, 8), found size (5, 9)"),
    (X, B.TENSOR_MATCH, (), T(4, 8), T(8, 4).t(), "argument x: expected stride (8, 1), found stride (1, 4)"),
    (X, B.TENSOR_MATCH, (), T(4), T(4).double(), "argument x: expected dtype float32, found dtype float64"),
    (
        X,
        B.TENSOR_MATCH,
        (),
        T(4),
        T(4, requires_grad=True),
        "argument x: expected requires_grad False, found requires_grad True",
    ),
    (
        X,
        B.TENSOR_MATCH,
        (),
        T(4),
        torch.nn.Parameter(T(4)),
        "argument x: expected Tensor float32 (4,) on cpu, found Parameter float32 (4,) on cpu",
    ),
    (X, B.TENSOR_MATCH, (), T(4), 7, "argument x: expected Tensor float32 (4,) on cpu, found 7"),
    (
        X,
        B.TENSOR_MATCH,
        (),
        T(4),
        T(4).to_sparse(),
        "argument x: expected Tensor float32 (4,) on cpu, found the tensor is layout torch.sparse_coo, "
        "which has no strides; guard its type and its parts instead",
    ),
    (
        AttrSource(X, "scale"),
        B.EQUALS_MATCH,
        (),
        Config(scale=1),
        Config(scale=2),
        "x.scale: expected 1, found 2",
    ),
    (
        AttrSource(X, "scale"),
        B.EQUALS_MATCH,
        (),
        Config(scale=1),
        Config(),
        "x.scale: expected type int, found nothing (AttributeError: "
        "'Config' object has no attribute 'scale')",
    ),
    (
        ItemSource(X, "k"),
        B.LIST_LENGTH,
        (),
        {"k": [1]},
        {"k": [1, 2]},
        "x['k']: expected length 1, found length 2",
    ),
    (
        X,
        B.LACKS_MEMBERS,
        (("a", "b"),),
        Config(),
        Config(b=1),
        "argument x: expected no own a, b, found an own b",
    ),
    (
        X,
        B.EMPTY_MEMBERS,
        (("a",),),
        Config(a=OrderedDict()),
        Config(a=OrderedDict(k=1)),
        "argument x: expected a empty, found 1 element in a",
    ),
    (X, B.DICT_KEYS, (), {"a": 1}, {"b": 1}, "argument x: expected keys ('a',), found keys ('b')"),
    (X, B.DICT_CONTAINS, ("a",), {"a": 1}, {}, "argument x: expected key 'a', found no key 'a'"),
    (X, B.DICT_CONTAINS, ("a",), {}, {"a": 1}, "argument x: expected no key 'a', found key 'a'"),
    (
        X,
        B.HASATTR,
        ("a",),
        Config(a=1),
        Config(),
        "argument x: expected an attribute a, found no attribute 'a'",
    ),
    (X, B.ID_MATCH, (), one, two, "argument x: expected the same function, found another function"),
    (X, B.NAME_MATCH, (), one, two, "argument x: expected named one, found named two"),
    (X, B.NAME_MATCH, (), one, 5, "argument x: expected named one, found 5 (AttributeError: "),
    (
        X,
        B.ITERATOR_LENGTH,
        (),
        iter((1, 2)),
        iter((1,)),
        "argument x: expected 2 elements left, found 1 elements left",
    ),
    (
        CellSource(X, 0),
        B.EQUALS_MATCH,
        (),
        adder(1),
        adder(2),
        "closure variable 0 of x: expected 1, found 2",
    ),
    (
        SizeSource(X, 0),
        B.SHAPE_ENV,
        ("{0} < 5", SizeSource(X, 0)),
        T(4),
        T(6),
        "size 0 of x: expected size 0 of x < 5, found 6",
    ),
]


@pytest.mark.parametrize(("source", "create_fn", "args", "value", "other", "message"), CASES)
def test_messages(build, source, create_fn, args, value, other, message):
    check, frame, _ = build(fn, [make_guard(source, create_fn, *args, user=("model.py", 12))], x=value)
    assert explain_failure(check, frame) is None
    failure = explain_failure(check, changed(frame, x=other))
    assert failure.message().startswith(message) and (message.endswith(": ") or failure.message() == message)
    assert failure.user == ("model.py", 12)
    assert failure.part in check.parts and failure.row in check.rows


def test_a_function_is_told_by_its_code(build):
    check, frame, _ = build(fn, [make_guard(X, B.FUNCTION_MATCH)], x=one)
    failure = explain_failure(check, changed(frame, x=two))
    line = two.__code__.co_firstlineno
    assert failure.actual == f"code of two ({__file__}:{line})"
    assert failure.expected == f"code of one ({__file__}:{one.__code__.co_firstlineno})"


def test_globals_builtins_and_closures_have_their_names(build):
    f = adder(5)
    guards = [
        make_guard(ClosureSource.of(f.__code__, "k"), B.EQUALS_MATCH),
        make_guard(GlobalSource("scale"), B.EQUALS_MATCH),
        make_guard(BuiltinSource("len"), B.BUILTIN_MATCH),
    ]
    check, frame, _ = build(f, guards, x=1)

    def told(globals_=None, closure=None):
        other = type(frame)(
            frame.locals, frame.globals | (globals_ or {}), frame.builtins, closure or frame.closure
        )
        return explain_failure(check, other).message()

    assert told(closure=adder(6).__closure__) == "closure variable k: expected 5, found 6"
    assert told({"scale": 4}) == "global scale: expected 3, found 4"
    assert (
        told({"len": max}) == "globals of the function: expected no such global, found a global named 'len'"
    )


def test_aliases_are_told_by_both_places(build):
    a, b = [1], [2]
    same, frame, _ = build(fn, [make_guard(X, B.DUPLICATE_INPUT, N)], x=a, n=a)
    message = explain_failure(same, changed(frame, n=b)).message()
    assert message == "argument x: expected the object of argument n, found another object than argument n"
    apart, frame, _ = build(fn, [make_guard(X, B.NO_ALIAS, N)], x=a, n=b)
    message = explain_failure(apart, changed(frame, n=a)).message()
    assert message == "argument x: expected not the object of argument n, found the same object"


def test_the_first_object_that_is_met_twice_is_told(build):
    a, b = [1], [2]
    check, frame, _ = build(fn, [make_guard(X, B.DISTINCT, (X, N), ())], x=a, n=b)
    message = explain_failure(check, changed(frame, n=a)).message()
    assert (
        message == "argument x: expected 2 different objects, found one object at argument x and argument n"
    )


def test_state_is_told_in_words(build):
    check, frame, _ = build(fn, [make_guard(StateSource(), B.GRAD_MODE)], x=1)
    with torch.no_grad():
        failure = explain_failure(check, frame)
    assert (
        failure.message()
        == "torch's global state: expected the recorded torch state, found grad mode on -> off"
    )


def test_a_dead_entry_says_so(build):
    check, frame, validity = build(fn, [make_guard(X, B.TYPE_MATCH)], x=1)
    validity.valid = False
    failure = explain_failure(check, frame)
    assert failure.row is None and failure.part == "___guarded_code.valid"
    assert (
        failure.message() == "this entry: expected alive, found an object that it relies on died or changed"
    )


def test_the_first_failing_part_is_told(build):
    check, frame, _ = build(fn, [make_guard(X, B.EQUALS_MATCH), make_guard(N, B.EQUALS_MATCH)], x=1, n=2)
    failure = explain_failure(check, changed(frame, x=5, n=6))
    assert failure.part == "x == 1" == next(part for part in check.parts if "==" in part)


def test_an_exception_of_a_guard_is_kept(build):
    check, frame, _ = build(fn, [make_guard(ItemSource(X, 1), B.EQUALS_MATCH)], x=[1, 2])
    failure = explain_failure(check, changed(frame, x=[1]))
    assert failure.error == "IndexError: list index out of range"


def test_short_never_shows_data_or_runs_user_code():
    assert short(torch.full((2,), 12345.0)) == "Tensor float32 (2,) on cpu"
    assert short(Config()) == "a Config"
    assert short("a" * 200).endswith("...") and len(short("a" * 200)) == 80
    assert short([1, 2]) == "a list"
    assert short(torch.eye(2).to_sparse()) == "a Tensor"
