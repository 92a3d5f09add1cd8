"""Places in the program's own spelling, and every failure of an entry."""

import pytest
import torch

import minidynamo
from minidynamo import events

scale = 2


class Settings:
    def __init__(self, **values):
        self.__dict__.update(values)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0
        self.register_buffer("kept", torch.ones(2))

    def forward(self, x):
        return x * self.step + self.kept


def causes(fn, *calls):
    """The failures told at the last call."""
    got = []
    optimized = minidynamo.optimize("eager")(fn)
    for call in calls[:-1]:
        call(optimized)
    with events.listen(got.append):
        calls[-1](optimized)
    (event,) = [e for e in got if isinstance(e, events.Recompile)]
    return event.causes


def adder(k):
    return lambda x: x + k


def with_default(x, n=1):
    return x + n


def outer(x, fn):
    return fn(x)


X = torch.ones(2)
CASES = [
    (lambda x, n: x + n, (X, 1), (X, 2), "n", "argument"),
    (lambda x, c: x + c.n, (X, Settings(n=1)), (X, Settings(n=2)), "c.n", "argument"),
    (lambda x, items: x + items[0], (X, [1]), (X, [2]), "items[0]", "argument"),
    (lambda x, items: x + items["k"], (X, {"k": 1}), (X, {"k": 2}), "items['k']", "argument"),
    (lambda x, *rest: x + rest[0], (X, 1), (X, 2), "rest[0]", "argument"),
    (outer, (X, adder(1)), (X, adder(2)), "k", "closure"),
]


@pytest.mark.parametrize(
    ("fn", "first", "second", "name", "root"), CASES, ids=lambda v: v if type(v) is str else ""
)
def test_names(fn, first, second, name, root):
    (failure,) = causes(fn, lambda f: f(*first), lambda f: f(*second))
    assert (failure.name, failure.root, failure.expected, failure.actual) == (name, root, "1", "2")


def test_a_global(monkeypatch):
    def change(f):
        monkeypatch.setitem(globals(), "scale", 3)
        f(X)

    (failure,) = causes(lambda x: x * scale, lambda f: f(X), change)
    assert (failure.name, failure.root, failure.actual) == ("scale", "global", "3")


def test_an_attribute_of_a_module_is_one_of_a_module():
    layer = Layer()

    def again(f):
        layer.step = 1
        f(X)

    (failure,) = causes(layer, lambda f: f(X), again)
    assert (failure.name, failure.owner, failure.member) == ("self.step", "module", ("attr", "step"))


def test_a_buffer_has_the_name_that_the_program_uses():
    layer = Layer()

    def again(f):
        layer.kept = torch.ones(1)
        f(X)

    (failure,) = causes(layer, lambda f: f(X), again)
    assert (failure.name, failure.expected, failure.actual) == ("self.kept", "size (2,)", "size (1,)")


def test_every_failure_is_told_but_no_consequence():
    def f(x, n, items):
        return x * n + len(items) + items[0]

    found = causes(f, lambda g: g(X, 1, [5]), lambda g: g(torch.ones(3), 2, (5, 6)))
    assert sorted(failure.name for failure in found) == ["items", "n", "x"]


def test_the_closest_entry_is_told():
    def f(x, n, m):
        return x * n + m

    got = []
    g = minidynamo.optimize("eager")(f)
    g(X, 1, 1)
    g(X, 2, 2)
    with events.listen(got.append):
        g(X, 1, 3)
    (event,) = [e for e in got if isinstance(e, events.Recompile)]
    assert [(f.name, f.expected, f.actual) for f in event.causes] == [("m", "1", "3")]
    assert event.closest == event.failures[0][0]


def test_the_line_that_needed_the_guard():
    def f(x, n):
        y = x + 1
        return y * n

    (failure,) = causes(f, lambda g: g(X, 1), lambda g: g(X, 2))
    assert failure.user.line == f.__code__.co_firstlineno + 2


def test_a_guard_needed_inside_of_a_library_is_told_at_the_users_line():
    layer = torch.nn.Linear(2, 2)

    def f(x):
        y = x + 1
        return layer(y)

    def again(g):
        layer.weight = torch.nn.Parameter(torch.ones(3, 2))
        layer.bias = torch.nn.Parameter(torch.ones(3))
        g(X)

    found = causes(f, lambda g: g(X), again)
    assert {failure.user.line for failure in found} == {f.__code__.co_firstlineno + 2}
