"""Guards on sets and on `sys.modules`."""

from __future__ import annotations

import enum
import sys
import types

import pytest

from minidynamo.guards.builder import GuardBuilder as B
from minidynamo.guards.guard import make_guard
from minidynamo.sources import AttrSource, ItemSource, LocalSource, ModulesSource

X = LocalSource("x")
Colour = enum.Enum("Colour", "RED BLUE")


def fn(x):
    return x


class Loud:
    """Equal to everything, with the hash of 1."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise AssertionError("user code ran")


def holds(check, frame, value):
    return check.run(type(frame)({"x": value}, frame.globals, frame.builtins))


@pytest.mark.parametrize("make", [set, frozenset])
def test_elements(build, make):
    value = make([1, "a", (1, 2), None, Colour.RED])
    check, frame, _ = build(fn, [make_guard(X, B.SET_ITEMS)], x=value)
    assert holds(check, frame, make([Colour.RED, None, (1, 2), "a", 1]))
    for other in (
        [1, "a", (1, 2), None],
        [True, "a", (1, 2), None, Colour.RED],
        [1, "a", (1.0, 2), None, Colour.RED],
    ):
        assert not holds(check, frame, make(other))
    assert not holds(check, frame, make([1, "a", (1, 2), None, Colour.BLUE]))
    assert not holds(check, frame, list(value))


def test_elements_of_the_user_are_not_asked(build):
    check, frame, _ = build(fn, [make_guard(X, B.SET_ITEMS)], x={1, 2})
    assert not holds(check, frame, {2, Loud()})


def test_order(build):
    one, other = {0, 8}, {8, 0}
    assert one == other and list(one) != list(other)
    check, frame, _ = build(fn, [make_guard(X, B.SET_ORDER)], x=one)
    assert holds(check, frame, {0, 8}) and not holds(check, frame, other)
    assert "___check_set_order(x, (0, 8))" in check.parts


def test_one_element(build):
    guards = [make_guard(X, B.SET_CONTAINS, element) for element in (1, "b", Colour.RED)]
    check, frame, _ = build(fn, guards, x={1, Colour.RED})
    assert "___set_has(x, 1)" in check.parts and "not ___set_has(x, 'b')" in check.parts
    assert holds(check, frame, {1, 5, Colour.RED}) and holds(check, frame, {True, Colour.RED})
    for other in ({1}, {Colour.RED}, {1, "b", Colour.RED}, [1, Colour.RED]):
        assert not holds(check, frame, other)


def test_modules(build, monkeypatch):
    module, other = types.ModuleType("made_for_a_test"), types.ModuleType("made_for_a_test")
    module.k = 1
    monkeypatch.setitem(sys.modules, "made_for_a_test", module)
    source = ItemSource(ModulesSource(), "made_for_a_test")
    k = ItemSource(AttrSource(source, "__dict__"), "k")
    check, frame, _ = build(fn, [make_guard(source, B.MODULE_MATCH), make_guard(k, B.EQUALS_MATCH)], x=1)
    assert "___modules['made_for_a_test'].__dict__['k'] == 1" in check.parts
    assert check.run(frame)
    module.k = 2
    assert not check.run(frame)
    module.k = 1
    monkeypatch.setitem(sys.modules, "made_for_a_test", other)
    assert not check.run(frame)
    monkeypatch.delitem(sys.modules, "made_for_a_test")
    assert not check.run(frame)
