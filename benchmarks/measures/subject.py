"""What a measure works on, and the two sides: minidynamo and torch.compile with the same backend."""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

import minidynamo
from minidynamo import convert_frame

from ..budget import Share, unlimited
from ..sampling import Effort
from ..workloads import Case, Workload

ENTRIES = 64  # room for the workloads that have many cache entries, on both sides


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload with what a run wants to know of it.

    effort: of a ratio; repeats: of a compilation; peer: torch.compile too; share: how long this measure may take
    """

    workload: Workload
    effort: Effort
    repeats: int
    peer: bool
    share: Share = field(default_factory=unlimited)


def optimized(case: Case, backend: Any = None) -> Any:
    """The case's function, compiled by `backend` (None: the case's own)."""
    return minidynamo.optimize(case.backend if backend is None else backend)(case.fn)


def compiled_by_torch(case: Case, backend: Any = None) -> Any:
    """The peer: torch.compile with the same backend."""
    return torch.compile(case.fn, backend=case.backend if backend is None else backend, **case.peer_options)


def forget() -> None:
    """No compiled code of either side."""
    minidynamo.reset()
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()


@contextlib.contextmanager
def limits(entries: int = ENTRIES, peer: bool = False) -> Iterator[None]:
    """Both sides may keep so many entries of a frame."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(minidynamo.config.patch(cache_size_limit=entries))
        if peer:
            import torch._dynamo

            stack.enter_context(
                torch._dynamo.config.patch(recompile_limit=entries, accumulated_recompile_limit=4096)
            )
        yield


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Seconds of this thread for one call, without garbage collection."""
    with no_collection():
        begin = time.thread_time()
        call()
        return time.thread_time() - begin


def first_call(make: Callable[[Case], Any], case: Case) -> float:
    """CPU seconds of making the optimized function and calling it for the first time."""
    return cpu_seconds(lambda: case.caller(make(case))())


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation as its caller saw it: the frame, the entry, seconds."""

    frame: Any
    entry: Any
    seconds: float


@contextlib.contextmanager
def compilations() -> Iterator[list[Compilation]]:
    """Every compilation meanwhile, in order."""
    seen: list[Compilation] = []
    plain = convert_frame.compile_frame

    def compile_frame(frame: Any, options: Any) -> Any:
        begin = time.thread_time()
        entry = plain(frame, options)
        seen.append(Compilation(frame, entry, time.thread_time() - begin))
        return entry

    convert_frame.compile_frame = compile_frame
    try:
        yield seen
    finally:
        convert_frame.compile_frame = plain
