"""Bringing a function to one of its instructions with the interpreter, and continuing it there with a resume
code."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from minidynamo.pycode.resume import UNBOUND, FrameState, ResumeCode, resumable, resume_code
from tests.pycode import interp, outcome

# Files whose frames are no part of a program.
MACHINERY = frozenset({interp.__file__, outcome.__file__, __file__})


def stops(function: FunctionType, args: tuple[Any, ...], visits: int = 2) -> Iterator[tuple[int, int]]:
    """(steps from the beginning, offset) of each instruction that can be continued at, on its first `visits`
    visits."""
    frame = interp.begin(function, args)
    seen: collections.Counter[int] = collections.Counter()
    steps = 0
    while True:
        instruction = frame.instruction
        if frame.ir.is_boundary(instruction.index) and resumable(function.__code__, instruction.offset):
            if seen[instruction.offset] < visits:
                yield steps, instruction.offset
            seen[instruction.offset] += 1
        try:
            frame.step()
        except BaseException:
            return
        steps += 1


def stopped(function: FunctionType, args: tuple[Any, ...], steps: int) -> interp.Frame:
    """The function after so many steps."""
    frame = interp.begin(function, args)
    for _ in range(steps):
        frame.step()
    return frame


def state_of(frame: interp.Frame) -> FrameState:
    """What `resume_code` must know of a frame."""
    stack = tuple(value is not interp.NULL for value in frame.stack)
    return FrameState(frame.instruction.offset, stack, frozenset(frame.slots))


def values_for(params: tuple[str, ...], frame: interp.Frame) -> list[Any]:
    """The arguments of the resume function."""
    values = []
    for name in params:
        if name == "___handled":
            values.append(frame.handled[-1])
        elif name.startswith("___stack"):
            values.append(frame.stack[int(name.removeprefix("___stack"))])
        else:
            values.append(frame.slots.get(name, UNBOUND))
    return values


def function_of(code: CodeType, like: FunctionType) -> FunctionType:
    """A function of `code` with the globals and the closure of another."""
    return FunctionType(code, like.__globals__, like.__name__, None, like.__closure__)


def continued(frame: interp.Frame) -> tuple[Callable[..., Any], ResumeCode]:
    """What runs the rest of the frame, whatever it is called with."""
    made = resume_code(frame.function.__code__, state_of(frame))
    return given(function_of(made.code, frame.function), values_for(made.params, frame)), made


def given(function: FunctionType, values: list[Any]) -> Callable[..., Any]:
    """What calls the function with these values, whatever it is called with itself."""
    return lambda *args: function(*values)
