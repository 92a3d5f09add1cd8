"""Constants survive the way to text and back, bit for bit."""

from __future__ import annotations

import ast
import gc
import math
import sys

import pytest
import torch
from hypothesis import given, settings

from minidynamo import exc
from minidynamo.guards.leaves import helpers
from minidynamo.literals import Ref, as_key, is_literal, literal, parse_literal, same
from tests.constants import constants


def back(text):
    return parse_literal(ast.parse(text, mode="eval").body)


@given(constants)
@settings(max_examples=150, deadline=None)
def test_parse_and_eval_invert_literal(value):
    assert is_literal(value)
    assert same(back(literal(value)), value)
    assert same(eval(literal(value), helpers()), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2, "2"),
        (-0.0, "-0.0"),
        (float("inf"), "___float(0x7ff0000000000000)"),
        (torch.float32, "___torch.float32"),
        (torch.device("cuda", 0), "___device('cuda', 0)"),
        ((1,), "(1,)"),
        (frozenset({"b", "a"}), "___frozenset(('a', 'b'))"),
        (range(3), "___range(0, 3, 1)"),
    ],
)
def test_literals_read_well(value, text):
    assert literal(value) == text


def test_an_int_beyond_the_decimal_limit_is_hex():
    value = 7**6000
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert literal(value).startswith("0x")
        assert back(literal(value)) == value
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (float("nan"), -float("nan")),
        ((1, 2), (1, 2.0)),
        ((1, 2), torch.Size((1, 2))),
        (frozenset({1}), frozenset({True})),
        (range(0), range(1, 1)),
        (complex(0.0, -0.0), complex(0.0, 0.0)),
        (torch.device("cuda"), torch.device("cuda", 0)),
        ("a", b"a"),
    ],
)
def test_same_tells_apart_what_equality_may_not(value, other):
    assert same(value, value) and same(other, other)
    assert not same(value, other) and not same(other, value)


class Key:
    pass


def test_a_ref_is_weak_and_dies_with_its_object():
    key = Key()
    ref = Ref.of(key)
    assert ref.resolve() is key and Ref.of(key) == ref and Ref.of(Key()) != ref
    del key
    gc.collect()
    with pytest.raises(KeyError):
        ref.resolve()


def test_a_new_object_at_an_old_address_gets_a_number_of_its_own():
    numbers = {Ref.of(Key()).number for _ in range(50)}
    assert len(numbers) == 50


def test_keys_without_a_literal_become_refs():
    assert as_key(("a", 1)) == ("a", 1)
    mixed = as_key((Key, 1))
    assert mixed == (Ref.of(Key), 1)
    nan = math.nan
    with pytest.raises(exc.Unsupported, match="no weak references"):
        as_key(nan)
    with pytest.raises(exc.Unsupported, match="no weak references"):
        as_key(object())


def test_same_resolves_refs_by_identity():
    key = Key()
    assert same((key, 1), as_key((key, 1)))
    assert not same((Key(), 1), as_key((key, 1)))


class Liar(int):
    def __eq__(self, other):
        raise AssertionError("user code ran")

    __hash__ = int.__hash__


def test_a_subclass_of_a_constant_type_is_no_constant():
    assert not is_literal(Liar(1)) and not is_literal((Liar(1),))
    assert not same(Liar(1), 1)
    with pytest.raises(exc.InternalError, match="Liar"):
        literal(Liar(1))
