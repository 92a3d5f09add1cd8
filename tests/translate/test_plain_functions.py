"""Functions without tensors, of every shape: all their frames compiled, whether that is worthwhile or not."""

from __future__ import annotations

import contextlib
import copy
import io
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import minidynamo
from minidynamo import config
from minidynamo.translate.handlers.control import CONDITIONAL
from minidynamo.translate.root import PLAIN_OPS
from tests.describe import describe
from tests.pycode.corpus import CASES
from tests.translate.breaking import Chooser, breaking, everywhere

STEPS = frozenset((*PLAIN_OPS, *CONDITIONAL, "FOR_ITER"))
PARAMETERS = [pytest.param(*case, id=f"{number}-{case[0].__qualname__}") for number, case in enumerate(CASES)]


@pytest.fixture(autouse=True)
def quietly() -> Iterator[None]:
    with config.patch(verify=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Result or error, the arguments afterwards, and what was printed."""
    printed = io.StringIO()
    args = copy.deepcopy(args)
    result = error = None
    with contextlib.redirect_stdout(printed):
        try:
            result = fn(*args)
            if isinstance(result, types.GeneratorType):
                result = list(result)
        except Exception as caught:
            error = type(caught).__name__, str(caught)
    return describe(result, args, error, printed.getvalue())


def compare(fn: Callable[..., Any], inputs: tuple[tuple[Any, ...], ...], choose: Chooser) -> None:
    optimized = minidynamo.optimize("eager")(fn)
    for args in inputs:
        expected = outcome(fn, args)
        with breaking(choose):
            assert outcome(optimized, args) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("fn", "inputs"), PARAMETERS)
def test_compiled_frames_do_what_plain_python_does(fn, inputs):
    compare(fn, inputs, lambda code: {})


@pytest.mark.slow
@pytest.mark.parametrize(("fn", "inputs"), PARAMETERS)
def test_breaks_at_every_operation_change_nothing(fn, inputs):
    compare(fn, inputs, everywhere(STEPS))
