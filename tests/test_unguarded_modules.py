"""`config.guard_nn_modules = False`: what is inside of modules is not guarded, and one warning says so."""

from __future__ import annotations

import warnings

import pytest
import torch

import minidynamo
from minidynamo import config
from minidynamo.exc import MinidynamoWarning
from minidynamo.testing import CompileCounter


class Scale(torch.nn.Module):
    def __init__(self, by=2.0):
        super().__init__()
        self.by = by
        self.inner = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(self.inner.weight)

    def forward(self, x):
        return self.inner(x) * self.by * FACTOR[0]


FACTOR = [1]
ONE = torch.ones(1)


@pytest.fixture
def unguarded():
    minidynamo.reset()
    with config.patch(guard_nn_modules=False), warnings.catch_warnings():
        warnings.simplefilter("ignore", MinidynamoWarning)
        yield


def guards_of(fn):
    (entry,) = minidynamo.cache_entries(fn)
    return entry.guarded.check.source_text


def test_one_warning_that_changes_of_modules_are_not_seen():
    minidynamo.reset()
    one, other = Scale(), Scale()
    with config.patch(guard_nn_modules=False), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first = minidynamo.optimize("eager")(lambda x: one(x))
        second = minidynamo.optimize("eager")(lambda x: other(x) + 1)
        assert first(ONE) == 2 and second(ONE) == 3
        one.by = 3.0
        assert first(ONE) == 2  # what the warning is about
        found = [w for w in told if issubclass(w.category, MinidynamoWarning)]
        assert len(found) == 1 and found[0].filename == __file__
        assert "guard_nn_modules is False: changes inside of modules" in str(found[0].message)
        minidynamo.reset()
        assert first(ONE) == 3
        assert len([w for w in told if issubclass(w.category, MinidynamoWarning)]) == 2


def test_with_the_option_on_nothing_is_said_and_changes_are_seen():
    minidynamo.reset()
    model = Scale()
    captured = minidynamo.optimize("eager")(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MinidynamoWarning)
        assert captured(ONE) == 2
        model.by = 3.0
        assert captured(ONE) == 3


def test_no_guard_looks_into_a_module(unguarded):
    model = Scale()
    fn = minidynamo.optimize("eager")(lambda m, x: m(x))
    assert fn(model, ONE) == 2
    parts = guards_of(fn).split(" and ")
    text = " and ".join(part for part in parts if "__globals__" not in part and "__closure__" not in part)
    assert "___check_type_id(m, " in text and "___check_tensors(x, " in text
    for inside in ("'by'", "_parameters", "training", "_forward_hooks'", "___lacks", "___empty"):
        assert inside not in text, inside


def test_what_is_not_inside_is_guarded(unguarded):
    """Arguments, the module that is called, globals that its code reads, and that an argument is a parameter."""
    model, other = Scale(), Scale(5.0)
    counter = CompileCounter()

    def f(m, x, w):
        return m(x) + (1 if w is m.inner.weight else 10)

    fn = minidynamo.optimize(counter)(f)
    assert fn(model, ONE, model.inner.weight) == 3
    assert fn(model, torch.ones(2, 1), model.inner.weight)[1] == 3
    assert fn(model, ONE, other.inner.weight) == 12
    assert counter.frame_count == 3
    FACTOR[0] = 2
    try:
        assert fn(model, ONE, model.inner.weight) == 5
    finally:
        FACTOR[0] = 1


def test_new_values_of_parameters_are_used(unguarded):
    model = Scale()
    captured = minidynamo.optimize("eager")(model)
    assert captured(ONE) == 2
    with torch.no_grad():
        model.inner.weight += 1
    assert captured(ONE) == 4
    model.inner.weight = torch.nn.Parameter(torch.full((1, 1), 4.0))
    assert captured(ONE) == 8
    captured(ONE).backward()
    assert model.inner.weight.grad is not None
