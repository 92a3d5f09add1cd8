"""Keyed: equality by the attributes that `_compared` names."""

from __future__ import annotations

import gc

import pytest

from minidynamo._C import Keyed


class Pair(Keyed):
    __slots__ = ("left", "note", "right")
    _compared = ("left", "right")

    def __init__(self, left, right, note=None):
        self.left, self.right, self.note = left, right, note


class Twin(Pair):
    __slots__ = ()


def test_equal_when_the_named_attributes_are():
    assert Pair(1, "a", "x") == Pair(1, "a", "y")
    assert hash(Pair(1, "a", "x")) == hash(Pair(1, "a", "y"))
    assert Pair(1, "a") != Pair(1, "b")
    assert Pair(1, "a") != Twin(1, "a")
    assert Pair(1, "a") != (1, "a")
    assert len({Pair(1, 2), Pair(1, 2), Pair(2, 1), Twin(1, 2)}) == 3


def test_nested():
    def chain(length):
        made = Pair(None, 0)
        for number in range(length):
            made = Pair(made, number)
        return made

    assert chain(200) == chain(200)
    assert chain(200) != chain(201)
    assert {chain(200): "found"}[chain(200)] == "found"


def test_the_work_is_done_once():
    asked = []

    class Counting:
        def __hash__(self):
            asked.append("hash")
            return 7

    pair = Pair(Counting(), 0)
    assert [hash(pair), hash(pair)] == [hash(pair)] * 2
    assert asked == ["hash"]


def test_errors_pass_through():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Pair([], 1))
    with pytest.raises(TypeError, match="unhashable"):
        Pair([], 1) == Pair([], 1)  # noqa: B015
    with pytest.raises(AttributeError, match="_compared"):
        hash(Keyed())

    class Wrong(Keyed):
        _compared = "left"

    with pytest.raises(TypeError, match="tuple of attribute names"):
        hash(Wrong())

    class Missing(Keyed):
        _compared = ("nothing",)

    with pytest.raises(AttributeError, match="nothing"):
        hash(Missing())
    assert Pair(1, 2).__lt__(Pair(1, 2)) is NotImplemented


def test_a_memo_and_cycles_are_collected():
    pair = Pair(1, 2)
    assert pair._memo is None
    pair._memo = pair

    gc.collect()
    before = sum(type(each) is Pair for each in gc.get_objects())
    del pair
    gc.collect()
    assert sum(type(each) is Pair for each in gc.get_objects()) == before - 1
