"""Guards on one small frame: `build(fn, guards, **arguments)`."""

from __future__ import annotations

import builtins

import pytest

from minidynamo.cache import Validity
from minidynamo.guards.check_fn import CheckFunctionManager, flat_names
from minidynamo.sources import FrameValues


def frame_of(fn, **arguments):
    """The values of a call of `fn` with these arguments, None for the others."""
    code = fn.__code__
    values = dict.fromkeys(flat_names(code)) | arguments
    return FrameValues(values, fn.__globals__, vars(builtins), fn.__closure__, code.co_freevars)


@pytest.fixture
def frame():
    return frame_of


@pytest.fixture
def build():
    """build(fn, guards, **arguments) -> (CheckFn, FrameValues, validity)"""

    def build(fn, guards, *, options=None, **arguments):
        values = frame_of(fn, **arguments)
        validity = Validity()
        manager = CheckFunctionManager(guards, values, fn.__code__, validity, **(options or {}))
        return manager.compile_check_fn(), values, validity

    return build
