"""Time of a first call, by stage, and of a warm call."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import torch

from minidynamo import entry, events
from minidynamo.graph import meta

from ..sampling import Call, floor, paired
from ..workloads import Case
from .subject import Subject, compilations, compiled_by_torch, cpu_seconds, first_call, forget, optimized

STAGES = ("lift", "translate", "meta", "backend", "emit", "assemble", "guards", "install")


def cold(subject: Subject) -> dict[str, Any]:
    """Milliseconds of a first call, ours and the peer's in turn, on code that nobody has seen; our stages beside.

    Two rounds at least (the first loads what loads lazily and is not counted), then as many as the share of the time allows.
    """
    ours, peers, stages = [], [], []
    with_peer = subject.peer and subject.workload.case().peer
    longest = 0.0
    while len(ours) < 2 or (len(ours) <= subject.repeats and subject.share.fits(longest)):
        begin = time.perf_counter()
        forget()
        ours.append(first_call(optimized, subject.workload.fresh()))
        if with_peer:
            forget()
            case = subject.workload.fresh()
            with case.peer_around():
                peers.append(first_call(compiled_by_torch, case))
        stages.append(stage_seconds(subject.workload.fresh()))
        longest = time.perf_counter() - begin
    figures: dict[str, Any] = {
        "ms": statistics.median(ours[1:]) * 1e3,
        "low": min(ours[1:]) * 1e3,
        "high": max(ours[1:]) * 1e3,
        "rounds": len(ours) - 1,
        "stages": {name: statistics.median(row[name] for row in stages[1:]) * 1e3 for name in STAGES},
    }
    if peers:
        ratios = sorted(a / b for a, b in zip(ours[1:], peers[1:], strict=True))
        figures["peer_ms"] = statistics.median(peers[1:]) * 1e3
        figures |= {"over_peer": statistics.median(ratios), "over_low": ratios[0], "over_high": ratios[-1]}
    return figures


@contextlib.contextmanager
def stages_in_cpu_time() -> Iterator[None]:
    """Stages are timed by this thread's processor time meanwhile: other programs take none of it."""
    plain = entry.time
    entry.time = SimpleNamespace(perf_counter=time.thread_time)  # type: ignore[assignment]
    try:
        yield
    finally:
        entry.time = plain


@contextlib.contextmanager
def metadata_seconds() -> Iterator[list[float]]:
    """Seconds that working out operators' metadata takes meanwhile: part of `translate`."""
    spent: list[float] = []
    plain, inside = meta.infer, False

    def infer(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside:
            return plain(*args, **kwargs)
        inside = True
        begin = time.thread_time()
        try:
            return plain(*args, **kwargs)
        finally:
            inside = False
            spent.append(time.thread_time() - begin)

    meta.infer = infer
    try:
        yield spent
    finally:
        meta.infer = plain


def stage_seconds(case: Case) -> dict[str, float]:
    """Seconds per stage of everything that a first call compiles. `meta` is taken out of `translate`; `install` is what the miss
    and the cache take around the stages, without the call of the code itself."""
    spent = dict.fromkeys(STAGES, 0.0)

    def note(event: events.Event) -> None:
        if isinstance(event, events.StageDone) and event.stage in spent:
            spent[event.stage] += event.seconds

    forget()
    call = case.caller(optimized(case))
    with compilations() as made, metadata_seconds() as inferring, stages_in_cpu_time(), events.listen(note):
        whole = cpu_seconds(call)
    spent["meta"] = sum(inferring)
    spent["translate"] -= spent["meta"]
    spent["install"] = max(0.0, whole - sum(one.seconds for one in made) - cpu_seconds(call))
    return spent


class Recorded:
    """A backend that keeps the one graph it got and what it was called with last."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.inputs: tuple[Any, ...] = ()

    def __call__(self, gm: torch.fx.GraphModule, _example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
        self.graphs.append(gm)

        def run(*inputs: Any) -> Any:
            self.inputs = inputs
            return gm.forward(*inputs)

        return run


def bare_graph(case: Case) -> Call | None:
    """The captured graph called on the inputs it gets, if there is just one: the least that any front end can cost."""
    if case.step is not None:
        return None
    backend = Recorded()
    case.caller(optimized(case, backend))()
    if len(backend.graphs) != 1:
        return None
    forward, inputs = backend.graphs[0].forward, backend.inputs
    return lambda: forward(*inputs)


def warm(subject: Subject) -> dict[str, Any]:
    """Ratios of a warm call to eager, to the bare graph, and to the peer; `floor` is the A/A control beside them: two makes of
    the same workload, both optimized. It comes last: an entry that has served two instances in turn remembers less of each."""
    case = subject.workload.case()
    share, effort = subject.share, subject.effort
    forget()
    eager, ours = case.caller(case.fn), case.caller(optimized(case))
    ours()
    figures: dict[str, Any] = {"eager": asdict(paired(eager, ours, effort, share.part(4)))}
    if case.calls != 1:
        figures["calls"] = case.calls
    bare = bare_graph(case)
    if bare is not None:
        figures["bare"] = asdict(paired(bare, ours, effort, share.part(3)))
    if subject.peer and case.peer:
        theirs = case.caller(compiled_by_torch(case))
        theirs()
        figures["peer"] = asdict(paired(theirs, ours, effort, share.part(2)))
    again = subject.workload.case()
    twin = again.caller(optimized(again))
    twin()
    figures["floor"] = floor(ours, twin, effort, share)
    return figures
