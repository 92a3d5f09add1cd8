"""Decisions of the root frame: restarts, limits, frames that are not compiled."""

from __future__ import annotations

import pytest

import minidynamo
from minidynamo import config
from minidynamo.events import Where
from minidynamo.reasons import EXPLICIT_BREAK, why
from minidynamo.translate.plan import Decision, Plan, RestartAnalysis, SkipFrame
from tests.eager import T, check


def decision() -> Decision:
    return Decision(why(EXPLICIT_BREAK), Where("file", 1, "f"))


def test_a_decision_restarts_the_analysis():
    plan = Plan(2)
    with pytest.raises(RestartAnalysis):
        plan.decide(3, decision())
    assert list(plan.breaks) == [3]


def test_a_decision_that_was_taken_before_ends_it():
    plan = Plan(5, {3: decision()})
    with pytest.raises(SkipFrame, match="more than 5"):
        plan.decide(3, decision())


def test_too_many_decisions_end_it():
    with pytest.raises(SkipFrame, match="more than 0"):
        Plan(0).decide(1, decision())


def test_a_long_trace_is_left_to_plain_python():
    with config.patch(max_trace_steps=50):
        seen = check("def f(x):\n    for i in range(100):\n        x = x + i\n    return x\n", "f(T(1))")
    assert seen.skips == ["MD308"] and not seen.graphs


def test_deep_calls_break_the_graph():
    with config.patch(max_inline_depth=3):
        seen = check(
            "def g(x, n):\n    return x if n == 0 else g(x + 1, n - 1)\ndef f(x):\n    return g(x, 10) * 2\n",
            "f(T(1))",
        )
    assert set(seen.reasons) == {"MD224", "MD225"} and seen.graphs > 1


def test_a_function_without_tensors_is_left_alone_for_good_when_nothing_can_change_that():
    seen = check("def f(a):\n    return a\n", "f(1)", "f(2)", "f(T(1))")
    assert seen.skips == ["MD304"]


def test_a_function_that_breaks_at_once_for_one_argument_is_captured_for_another():
    source = """
    def f(x, noisy):
        if noisy:
            raise ValueError("noisy")
        return x + 1
    """
    assert check(source, "f(T(1), True)", "f(T(1), False)").graphs == 1


def test_a_dead_variable_is_not_kept_over_a_break(trace):
    def f(x):
        dead = x * 3
        live = dead + 1
        print(end="")
        return live * 2

    view = trace(f, T(2))
    assert view.graph == "a=x*3; a+1 | live*2"
    assert "dead" not in view.frames[0][1].guarded.output_text


def test_explicit_breaks(trace):
    def f(x):
        y = x + 1
        minidynamo.graph_break()
        return y * 2

    view = trace(f, T(2))
    assert view.graph == "x+1 | y*2" and view.seen.reasons == ["MD222"]
