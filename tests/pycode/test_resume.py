"""A function that is continued at any of its instructions does what it would have done."""

from __future__ import annotations

import gc
import inspect
import sys
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

from minidynamo.exc import InternalError
from minidynamo.pycode.lift import lift
from minidynamo.pycode.resume import (
    UNBOUND,
    FrameState,
    ResumePoint,
    is_resume_code,
    origin_offset,
    resumable,
    resume_code,
)
from minidynamo.pycode.verify import stack_depths, verify
from tests.pycode.corpus import CASES
from tests.pycode.interp import Frame, begin
from tests.pycode.outcome import Outcome, fresh, outcome
from tests.pycode.resuming import MACHINERY, continued, function_of, state_of, stopped, stops, values_for


def assert_same(expected: Outcome, got: Outcome, frame: Frame) -> None:
    """Equal in result, arguments and traceback.

    An exception that was raised before the stop has its frames from then: the interpreter's, where the function's own would be.
    """
    assert (got.result, got.args) == (expected.result, expected.args)
    earlier = got.error is not None and id(got.error) in frame.seen
    assert got.lines == (expected.lines[1:] if earlier and got.lines != expected.lines else expected.lines)


def ids(cases: list[tuple[Any, Any]]) -> list[str]:
    return [f"{number}-{function.__name__}" for number, (function, _) in enumerate(cases)]


def split_everywhere(function: FunctionType, inputs: tuple[tuple[Any, ...], ...], every: int, visits: int) -> Iterator[int]:
    for args in inputs:
        expected = outcome(function, fresh(args), MACHINERY)
        for number, (steps, offset) in enumerate(stops(function, fresh(args), visits)):
            if number % every:
                continue
            arguments = fresh(args)
            frame = stopped(function, arguments, steps)
            run, _ = continued(frame)
            assert_same(expected, outcome(run, arguments, MACHINERY), frame)
            yield offset


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=ids(CASES))
def test_split(function, inputs):
    for number, args in enumerate(inputs):
        assert list(split_everywhere(function, (args,), 3 if number == 0 else 9, 1))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "inputs"), CASES, ids=ids(CASES))
def test_split_at_every_point(function, inputs):
    assert list(split_everywhere(function, inputs, 1, 3))


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=ids(CASES))
def test_resume_of_a_resume(function, inputs):
    """Stop a resume function at one of its own instructions: the second resume code is made from the original bytes."""
    args = inputs[0]
    points = list(stops(function, fresh(args), 1))
    steps, _ = points[len(points) // 3]
    arguments = fresh(args)
    frame = stopped(function, arguments, steps)
    first = resume_code(function.__code__, state_of(frame))
    values = values_for(first.params, frame)
    expected = outcome(function, fresh(args), MACHINERY)

    again = Frame(function_of(first.code, function), dict(zip(first.code.co_varnames, values, strict=False)))
    while again.next < len(again.ir.instructions) and origin_offset(first.code, again.instruction.offset) != points[-1][1]:
        again.step()
    offset = origin_offset(first.code, again.instruction.offset)
    if again.instruction.offset == 0:  # the same point: the prologue stands for it
        return
    slots = {name: value for name, value in again.slots.items() if not name.startswith("___")}
    state = FrameState(offset, state_of(again).stack, frozenset(slots))
    second = resume_code(first.code, state)
    assert second.code.co_code.endswith(function.__code__.co_code) or function.__code__.co_freevars
    if not any("l" in (m or "") for m in [""]):
        assert second is resume_code(function.__code__, state) or again.handled
    run = function_of(second.code, function)
    rest = values_for(second.params, again)
    again.seen |= frame.seen
    assert_same(expected, outcome(lambda *_: run(*rest), arguments, MACHINERY), again)
