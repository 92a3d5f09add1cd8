"""Settings that hold for every test: guards are checked twice, emitted code is verified, internal errors raise."""

from __future__ import annotations

import os

os.environ.setdefault("MINIDYNAMO_GUARDS", "both")
os.environ.setdefault("MINIDYNAMO_VERIFY", "1")

import gc
import sys
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_collection_finish() -> None:
    """What is loaded by now stays: tests that call the collector need not wait while it looks at all of torch."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No cache entries, marks or options of other tests. Tests without torch never load what needs it."""
    from minidynamo import config

    def reset() -> None:
        loaded: Any = sys.modules.get("minidynamo.eval_frame")
        if loaded is not None:
            loaded.reset()

    with config.patch(internal_errors="raise"):
        reset()
        yield
        reset()
    program: Any = sys.modules.get("minidynamo.guards.program")
    if program is not None:
        found, program.disagreements[:] = list(program.disagreements), []
        assert not found, found[0]


@pytest.fixture
def trace() -> Any:
    """`trace(fn, *args).graph` is what was captured, as one line."""
    from tests.eager import trace

    return trace
