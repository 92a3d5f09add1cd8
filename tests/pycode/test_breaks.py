"""A call taken out of a function: emitted code does the call, resume codes do the rest.

This is what a graph break looks like. The emitted code has the signature of the resume code at the call; the
call's exceptions go to the function's own handler, entered by another resume code.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from minidynamo.pycode import expr as x
from minidynamo.pycode.lift import lift
from minidynamo.pycode.lower import assemble
from minidynamo.pycode.resume import UNBOUND, FrameState, resume_code
from tests.pycode.corpus import CASES
from tests.pycode.interp import NULL, Frame
from tests.pycode.outcome import Outcome, fresh, outcome
from tests.pycode.resuming import MACHINERY, function_of, given, state_of, stopped, stops, values_for

pytestmark = pytest.mark.filterwarnings("ignore:coroutine")  # some are stopped before they are awaited
RESULT, ERROR = "___result", "___error"


def load(name: str, frame: Frame) -> x.Expr:
    """A variable of the frame, or a parameter of its resume code, as a value to pass on."""
    code = frame.function.__code__
    if name in code.co_cellvars:
        return x.Cell(name)
    if name in frame.slots or name.startswith("___"):
        return x.Local(name)
    return x.Const(UNBOUND)


def continue_with(frame: Frame, offset: int, stack: list[x.Expr | None]) -> x.Return:
    """Return what the function returns when it goes on at `offset` with these stack values; None is NULL."""
    state = FrameState(offset, tuple(value is not None for value in stack), frozenset(frame.slots))
    made = resume_code(frame.function.__code__, state)
    named = {f"___stack{place}": value for place, value in enumerate(stack) if value is not None}
    args = tuple(named.get(name) or load(name, frame) for name in made.params)
    return x.Return(x.Call(x.Const(function_of(made.code, frame.function)), args))


def broken_at(frame: Frame) -> tuple[FunctionType, tuple[str, ...]]:
    """The frame stops before a CALL: a function of the resume code's signature that calls and goes on."""
    code, call = frame.function.__code__, frame.instruction
    entry = resume_code(code, state_of(frame))
    stack = [
        None if value is NULL else x.Local(f"___stack{place}") for place, value in enumerate(frame.stack)
    ]
    split = len(stack) - call.arg - 2
    below, operands = stack[:split], tuple(value or x.Null() for value in stack[split:])
    body: x.Body = (
        x.At(frame.ir.line_of(call.index) or 1),
        x.Assign(RESULT, x.Op("CALL", call.arg, operands)),
    )
    if frame.handled:  # the callee sees the exception that is being handled
        body = (x.Handling(x.Local("___handled"), body),)
    region = frame.ir.handler_at(call.index)
    if region is not None:
        number = [x.Const(call.offset // 2)] * region.lasti
        target = frame.ir.instructions[region.target].offset
        handler = continue_with(frame, target, [*below[: region.depth], *number, x.Local(ERROR)])
        body = (x.Catch(body, ERROR, (handler,)),)
    after = frame.ir.instructions[call.index + 1].offset
    body = (*body, continue_with(frame, after, [*below, x.Local(RESULT)]))
    return function_of(assemble(entry.code, body), frame.function), entry.params


def calls(function: FunctionType, args: tuple[Any, ...]) -> list[int]:
    """Steps from the beginning to each CALL, on its first visit."""
    found = []
    for steps, _ in stops(function, fresh(args), 1):
        frame = stopped(function, fresh(args), steps)
        if frame.instruction.opname == "CALL":
            found.append(steps)
    return found


def break_everywhere(function: FunctionType, args: tuple[Any, ...], every: int) -> int:
    expected = outcome(function, fresh(args), MACHINERY)
    points = calls(function, args)[::every]
    for steps in points:
        arguments = fresh(args)
        frame = stopped(function, arguments, steps)
        broken, params = broken_at(frame)
        got = outcome(given(broken, values_for(params, frame)), arguments, MACHINERY)
        assert (got.result, got.args) == (expected.result, expected.args)
        assert_traceback(function.__name__, expected, got, frame)
    return len(points)


def assert_traceback(name: str, expected: Outcome, got: Outcome, frame: Frame) -> None:
    """Other functions are in the traceback as ever; the function itself at least where it was, as it is several frames now."""
    ours, theirs = ([line for line in lines if line[0] != name] for lines in (got.lines, expected.lines))
    assert ours == theirs
    if got.error is None or id(got.error) not in frame.seen:
        assert {line for line in expected.lines if line[0] == name} <= set(got.lines)


CALLING = [
    (f, inputs) for f, inputs in CASES if any(i.opname == "CALL" for i in lift(f.__code__).instructions)
]


@pytest.mark.parametrize(("function", "inputs"), CALLING, ids=lambda part: getattr(part, "__name__", ""))
def test_break(function, inputs):
    """At every other call, with the first arguments."""
    break_everywhere(function, inputs[0], 2)


@pytest.mark.slow
def test_break_at_every_call():
    assert sum(break_everywhere(function, args, 1) for function, inputs in CASES for args in inputs) > 1000
