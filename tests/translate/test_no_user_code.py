"""Compiling a frame executes no Python of the program's (decision 9): a profiler sees none of its frames meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from minidynamo import config
from minidynamo.cache import set_convert_frame
from minidynamo.on_miss import on_miss
from tests.eager import check

FILES = "translate.test_effects translate.test_closures translate.test_errors variables.test_objects variables.test_iterators".split()
PROGRAMS = [program for name in FILES for program in import_module(f"tests.{name}").PROGRAMS]


@pytest.fixture
def frames() -> Iterator[list[str]]:
    """The program's functions that run while a frame is compiled. (The first run of a compiled frame beside plain Python is switched
    off: it is there to execute the program.)"""
    found: list[str] = []

    def profile(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith("<program"):
            found.append(f"{frame.f_code.co_qualname}, line {frame.f_lineno}")

    def watched(*miss: Any) -> Any:
        sys.setprofile(profile)
        try:
            return on_miss(*miss)
        finally:
            sys.setprofile(None)

    set_convert_frame(watched)
    with config.patch(verify=False):
        yield found
    set_convert_frame(on_miss)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_compiling_runs_nothing_of_the_program(program, frames):
    check(program.source, *program.calls, warns=True)
    assert not frames


def test_a_frame_of_the_program_would_be_seen(frames, monkeypatch):
    from minidynamo.translate import root

    real = root.attempt

    def nosy(trace: Any) -> Any:
        trace.frame.globals["helper"]()
        return real(trace)

    monkeypatch.setattr(root, "attempt", nosy)
    check("def helper():\n    return 1\ndef f(x):\n    return x + 1\n", "f(T(1))")
    assert frames == ["helper, line 1"]
