"""Listeners get frozen events; reports are made from these alone."""

import dataclasses

import pytest
import torch

import minidynamo
from minidynamo import events


def f(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y


def heard(fn, *args):
    got = []
    with events.listen(got.append):
        fn(*args)
    return got


def test_every_stage_of_a_compilation_is_told_in_order():
    got = heard(minidynamo.optimize("eager")(lambda x: x + 1), torch.ones(2))
    stages = [e.stage for e in got if isinstance(e, events.StageDone)]
    assert stages == ["lift", "translate", "backend", "emit", "assemble", "guards"]


def test_a_hit_tells_nothing():
    g = minidynamo.optimize("eager")(f)
    g(torch.ones(2))
    assert heard(g, torch.ones(2)) == []


def test_break_and_resume_are_told():
    got = heard(minidynamo.optimize("eager")(f), torch.ones(2))
    (break_,) = [e for e in got if isinstance(e, events.GraphBreak)]
    assert (break_.code, break_.where.line) == ("MD201", f.__code__.co_firstlineno + 2)
    compiled = [e for e in got if isinstance(e, events.Compiled)]
    assert [(e.resume, e.ops) for e in compiled] == [(False, 3), (True, 1)]


def test_recompile_tells_expected_and_actual():
    g = minidynamo.optimize("eager")(lambda x, n: x + n)
    g(torch.ones(2), 1)
    (again,) = [e for e in heard(g, torch.ones(2), 2) if isinstance(e, events.Recompile)]
    assert again.failures[0][1:] == ("n == 1", "1", "2")


def test_events_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        events.Where("f.py", 1, "f").line = 2


def test_unsubscribed_listener_hears_nothing():
    got = []
    remove = events.subscribe(got.append)
    remove()
    remove()
    heard(minidynamo.optimize("eager")(f), torch.ones(2))
    assert got == []
