"""`observe`: every stage's value of a compilation, and no trace of watching afterwards."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo import compile_frame, convert_frame
from minidynamo.debug.observe import observe
from minidynamo.translate.translator import InstructionTranslatorBase


def watched() -> tuple[object, ...]:
    """The functions that `observe` wraps."""
    return (
        convert_frame.compile_frame,
        compile_frame.translate,
        compile_frame.emit,
        InstructionTranslatorBase.step,
    )


def inner(x):
    return x * 2


def outer(x):
    y = inner(x)
    if y.sum() > 0:
        return y + 1
    return y


def test_stages_are_kept():
    with observe() as seen:
        minidynamo.optimize("eager")(outer)(torch.ones(3))
    first, resume = seen.compilations
    assert first.frame.code is outer.__code__
    assert first.capture.graph.ops == 3
    assert first.output.resumes and first.made.has_break
    assert resume.frame.code in first.output.resumes
    assert seen.of(outer.__code__) is first


def test_steps_of_each_attempt():
    with observe() as seen:
        minidynamo.optimize("eager")(outer)(torch.ones(3))
    stopped, last = seen.compilations[0].attempts
    assert stopped.stopped == "branch on a tensor's value [MD201]" and last.stopped == ""
    multiply = next(step for step in last.steps if step.instruction.endswith("BINARY_OP '*'"))
    assert (multiply.depth, multiply.before, multiply.after) == (
        1,
        ("lazy x", "2"),
        ("mul float32(3,)",),
    )
    assert any("lazy inner" in step.before for step in last.steps)


def test_nothing_is_left_behind():
    before = watched()
    with observe():
        assert not set(watched()) & set(before)
    assert watched() == before
    with pytest.raises(ZeroDivisionError), observe():
        raise ZeroDivisionError
    assert watched() == before


def test_frames_that_are_not_compiled():
    with observe() as seen:
        minidynamo.optimize("eager")(lambda n: n + 1)(3)
    assert [skip.code for skip in seen.skipped] == ["MD304"]
    (tried,) = seen.compilations
    assert tried.made is None and "no tensor operation" in tried.skipped
