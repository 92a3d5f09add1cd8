"""What follows a graph break runs in the place of what came before it: no frame more, nothing kept, one line in a traceback."""

from __future__ import annotations

import itertools
import sys
import traceback
import weakref
from typing import Any

import pytest
import torch

import minidynamo
from tests.eager import Module, T


def lines(fn: Any, *args: Any) -> list[tuple[str, int | None, str | None]]:
    """Function, line and text of each frame that an error of `fn` has passed."""
    try:
        fn(*args)
    except Exception as error:
        found = traceback.extract_tb(error.__traceback__)
        return [(f.name, f.lineno, f.line) for f in found if f.filename != __file__]
    raise AssertionError("it did not raise")


SOURCE = """
import sys, weakref
def deep(x):
    print(end='')
    return x.frobnicate
def g(x):
    y = x + 1
    print(end='')
    z = y * 2
    print(end='')
    return deep(z)
def f(x):
    y = x + 1
    print(end='')
    y = y * 2
    for i in range(2):
        print(end='')
        y = y + 1
    return g(y)
def depth():
    frame, n = sys._getframe(), 0
    while frame is not None:
        frame, n = frame.f_back, n + 1
    return n
def counted(x):
    seen = []
    for i in range(5):
        x = x + 1
        seen.append(depth())
    return seen
def recursive(x):
    y = x + 1
    if next(rounds, None) is not None:
        return recursive(y)
    return y * 2
class Thing: pass
def dies(x, log):
    thing = Thing()
    weakref.finalize(thing, log.append, 'dead')
    y = x + 1
    log.append('break 1')
    print(end='')
    y = y * 2
    del thing
    print(end='')
    log.append('after del')
    return y
"""


@pytest.fixture
def names() -> dict[str, Any]:
    return Module(SOURCE).names


def captured(names: dict[str, Any], name: str) -> Any:
    return minidynamo.optimize("eager")(names[name])


def test_a_traceback_has_the_frames_of_plain_python(names):
    expected = lines(names["f"], T(2))
    assert [name for name, _, _ in expected] == ["f", "g", "deep"]
    f = captured(names, "f")
    assert [lines(f, T(2)) for _ in range(3)] == [expected] * 3


def test_no_frame_comes_in_between(names):
    f = captured(names, "counted")
    expected = names["counted"](T(2))
    assert f(T(2)) == f(T(2)) == expected
    assert len(set(expected)) == 1


def test_recursion_goes_as_deep_as_without_breaks(names):
    f = captured(names, "recursive")
    names["recursive"] = f  # each level through the optimized object
    limit = sys.getrecursionlimit()
    depth = 0
    frame: Any = sys._getframe()
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + 700)
    try:
        names["rounds"] = itertools.repeat(True, 300)
        assert torch.equal(f(T(2)), (T(2) + 301) * 2)
    finally:
        sys.setrecursionlimit(limit)


def test_a_local_dies_where_it_dies_in_plain_python(names):
    expected: list[str] = []
    names["dies"](T(2), expected)
    assert expected == ["break 1", "dead", "after del"]
    f = captured(names, "dies")
    for _ in range(3):
        log: list[str] = []
        f(T(2), log)
        assert log == expected


def test_an_argument_that_the_rest_does_not_need_dies():
    names = Module(
        "def f(make, log):\n    o = make()\n    y = o.x + 1\n    print(end='')\n    o = None\n    log()\n    return y * 2\n"
    ).names
    f = captured(names, "f")

    class Holder:
        x = T(2)

    alive: list[weakref.ref[Any]] = []
    found: list[Any] = []

    def make() -> Holder:
        made = Holder()
        alive.append(weakref.ref(made))
        return made

    for _ in range(3):
        f(make, lambda: found.append(alive[-1]()))
    assert found == [None] * 3
