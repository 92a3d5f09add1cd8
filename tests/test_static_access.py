"""Static reads find what Python finds, and run nothing. (tests/guards/test_leaves.py compares the native
ones.)
"""

from __future__ import annotations

import collections
import functools

import pytest

from minidynamo.static_access import (
    dict_has,
    dict_item,
    dict_key,
    dict_keys,
    has_static_attr,
    instance_dict,
    static_attr,
    static_len,
    type_lookup,
)


class Trap:
    def __get__(self, obj, cls):
        raise AssertionError("user code ran")


class DataTrap(Trap):
    def __set__(self, obj, value):
        raise AssertionError("user code ran")


class Base:
    constant = 1
    trap = Trap()
    hidden = Trap()
    data = DataTrap()

    def method(self):
        return 1

    def __getattr__(self, name):
        raise AssertionError("user code ran")


class Child(Base):
    constant = 2


def test_the_order_of_lookup_is_pythons():
    child = Child()
    child.__dict__ |= {"hidden": 3, "data": 4}
    assert static_attr(child, "constant") == 2
    assert static_attr(child, "hidden") == 3
    assert static_attr(child, "data") is Base.__dict__["data"]
    assert static_attr(child, "trap") is Base.__dict__["trap"]
    assert static_attr(child, "method") is Base.method
    assert static_attr(child, "__class__") is Child
    assert static_attr(Child, "__name__") == "Child"
    with pytest.raises(AttributeError):
        static_attr(child, "nothing")
    assert has_static_attr(child, "hidden") and not has_static_attr(child, "nothing")


@pytest.mark.parametrize(
    ("obj", "name"),
    [
        (functools.partial(len, "a"), "func"),
        (collections.deque(maxlen=3), "maxlen"),
        (test_the_order_of_lookup_is_pythons, "__code__"),
        (range(5), "stop"),
        (Child, "constant"),
        (int, "__mro__"),
        (collections, "deque"),
        ("text", "__class__"),
    ],
)
def test_values_without_user_descriptors_are_those_of_getattr(obj, name):
    assert static_attr(obj, name) == getattr(obj, name)


def test_slots_are_read_and_empty_ones_are_absent():
    class Slotted:
        __slots__ = ("a", "b")

    made = Slotted()
    made.a = 5
    assert static_attr(made, "a") == 5
    assert not has_static_attr(made, "b")


def test_an_instance_dict_that_is_hidden_is_not_found():
    class Hides:
        __dict__ = property(lambda self: {"a": 1})

    assert instance_dict(Hides()) is None
    assert instance_dict(Child()) == {} and instance_dict(5) is None


class Sub(list):
    def __len__(self):
        raise AssertionError("user code ran")


@pytest.mark.parametrize(
    "value", [[1], (1,), {1: 2}, {1}, frozenset({1}), "a", b"a", range(1), collections.deque([1])]
)
def test_lengths_of_builtin_containers(value):
    assert static_len(value) == 1


def test_an_overridden_length_is_ignored():
    assert static_len(Sub([1, 2])) == 2
    with pytest.raises(TypeError):
        static_len(5)


class Dict(dict):
    def __missing__(self, key):
        raise AssertionError("user code ran")

    __getitem__ = __contains__ = __iter__ = __missing__


def test_dicts_are_read_as_dicts():
    made = Dict(a=1, b=2)
    assert dict_item(made, "a") == 1 and dict_has(made, "a") and not dict_has(made, "c")
    assert list(dict_keys(made)) == ["a", "b"] and dict_key(made, 1) == "b"
    with pytest.raises(KeyError):
        dict_item(made, "c")
    for index in (2, -1):
        with pytest.raises(IndexError):
            dict_key(made, index)
    with pytest.raises(TypeError):
        dict_item([1], 0)


def test_an_ordered_dict_has_an_order_of_its_own():
    made = collections.OrderedDict(a=1, b=2)
    made.move_to_end("a")
    assert list(dict_keys(made)) == ["b", "a"] and dict_key(made, 0) == "b"


def test_a_fake_class_is_not_believed():
    class Liar:
        __class__ = property(lambda self: dict)

    assert type_lookup(type(Liar()), "keys") is None
    with pytest.raises(TypeError):
        static_len(Liar())
