"""What happens when the compiled graph raises (decision 17), and what a backend may do."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import minidynamo
from minidynamo.exc import MinidynamoWarning
from tests.eager import T


def raising(error: BaseException) -> Any:
    """A backend whose graphs raise."""

    def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        def run(*args: torch.Tensor) -> Any:
            raise error

        return run

    return backend


@pytest.fixture(autouse=True)
def no_first_run() -> Any:
    with minidynamo.config.patch(verify=False):
        yield


def test_plain_python_runs_the_frame_and_one_warning_tells():
    calls = []

    @minidynamo.optimize(raising(ValueError("backend's fault")))
    def f(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + 1

    with pytest.warns(MinidynamoWarning, match="f: the graph raised .* but plain Python did not"):
        assert torch.equal(f(T(2)), T(2) + 1)
    assert calls == [1]  # the effect happened once


def test_an_interrupt_passes():
    f = minidynamo.optimize(raising(KeyboardInterrupt()))(lambda x: x + 1)
    with pytest.raises(KeyboardInterrupt):
        f(T(2))


def test_an_error_after_a_write_is_not_tried_again():
    def f(x: torch.Tensor) -> torch.Tensor:
        x += 1
        return x * 2

    optimized = minidynamo.optimize(raising(ValueError("backend's fault")))(f)
    x = T(2)
    with pytest.raises(ValueError, match="backend's fault"):
        optimized(x)
    assert torch.equal(x, T(2))


def test_an_error_after_random_numbers_is_not_tried_again():
    optimized = minidynamo.optimize(raising(ValueError("backend's fault")))(lambda x: x + torch.rand(2))
    with pytest.raises(ValueError, match="backend's fault"):
        optimized(T(2))


def test_a_place_that_is_gone_is_no_fault_of_the_graph():
    class Thing:
        n = None

    def f(x: torch.Tensor, thing: Any) -> torch.Tensor:
        try:
            thing.kept  # noqa: B018 - it is read, and the error is handled
        except AttributeError:
            return x - 1
        return x + 1

    optimized = minidynamo.optimize("eager")(f)
    thing = Thing()
    thing.kept = 3
    assert torch.equal(optimized(T(2), thing), T(2) + 1)
    del thing.kept
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(optimized(T(2), thing), T(2) - 1)


def test_a_wrong_number_of_outputs_is_told():
    def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        return lambda *args: (args[0], args[0])

    def f(x: torch.Tensor) -> torch.Tensor:
        x += 1
        return x * 2

    with pytest.raises(RuntimeError, match="2"):
        minidynamo.optimize(backend)(f)(T(2))
