"""Exact counters: the same numbers on every machine and in every run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read when torch's profiler loads: it says nothing by itself

import torch
from torch.autograd.profiler import profile, record_function

from minidynamo import events

from ..workloads import Case
from .subject import Subject, compiled_by_torch, first_call, forget, no_collection, optimized

INSIDE = "minidynamo benchmark: inside a graph"


def counters(subject: Subject) -> dict[str, int]:
    """What three calls lead to."""
    case = subject.workload.case()
    seen: list[events.Event] = []
    forget()
    with events.listen(seen.append):
        call = case.caller(optimized(case))
        for _ in range(3):
            call()
    compiled = [event for event in seen if isinstance(event, events.Compiled)]
    return {
        "graphs": sum(event.graph != "" for event in compiled),
        "ops": sum(event.ops for event in compiled),
        "compiles": len(compiled),
        "breaks": sum(isinstance(event, events.GraphBreak) for event in seen),
        "recompiles": sum(isinstance(event, events.Recompile) for event in seen),
        "skipped": sum(isinstance(event, events.Skipped) for event in seen),
        "guards": sum(len(event.guards) for event in compiled),
    }


def marked(gm: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """A backend whose graphs show in the profiler."""

    def run(*inputs: Any) -> Any:
        with record_function(INSIDE):
            return gm.forward(*inputs)

    return run


def coverage(subject: Subject) -> dict[str, int]:
    """Operators that one warm call dispatches (outermost ones, the backward pass left out): in graphs, and all."""
    case = subject.workload.case()
    forget()
    call = case.caller(optimized(case, marked))
    call()
    call()
    with profile() as profiler:
        call()
    found = {True: 0, False: 0}

    def walk(event: Any, inside: bool) -> None:
        if event.name.startswith("aten::"):
            found[inside] += 1
            return
        if event.name.startswith("autograd::engine"):
            return
        for child in event.cpu_children:
            walk(child, inside or event.name == INSIDE)

    for event in profiler.function_events or ():
        if event.cpu_parent is None:
            walk(event, False)
    return {"captured": found[True], "total": found[True] + found[False]}


def peer_counters(subject: Subject) -> dict[str, int] | None:
    """Graphs and operators that torch.compile gives to its backend in three calls."""
    case = subject.workload.case()
    if not (subject.peer and case.peer):
        return None
    counted = {"graphs": 0, "ops": 0}

    def counting(gm: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Callable[..., Any]:
        counted["graphs"] += 1
        counted["ops"] += sum(node.op.startswith("call_") for node in gm.graph.nodes)
        return gm.forward

    forget()
    call = case.caller(compiled_by_torch(case, counting))
    for _ in range(3):
        call()
    return counted


def calls_per_compile(subject: Subject) -> int:
    """Python and C calls of one cold compilation: a measure of work that no noise reaches."""
    first_call(optimized, subject.workload.fresh())  # whatever loads lazily is loaded
    forget()
    return calls_of(subject.workload.fresh())


def calls_of(case: Case) -> int:
    count = 0

    def profiler(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    call = case.caller(optimized(case))
    with no_collection():
        sys.setprofile(profiler)
        try:
            call()
        finally:
            sys.setprofile(None)
    return count
