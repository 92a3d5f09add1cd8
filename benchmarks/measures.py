"""Which figures are taken of a workload. Each measure is a function of a `Subject` to plain numbers."""

from __future__ import annotations

import copy
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

import minidynamo
from minidynamo import events

from .sampling import Call, Effort, floor, paired
from .workloads import Case, Workload

STAGES = {
    "lift": "lift",
    "translate": "translate",
    "backend": "backend",
    "emit": "emit",
    "assemble": "emit",
    "guards": "guards",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload with what a run wants to know of it."""

    workload: Workload
    effort: Effort
    repeats: int
    peer: bool


def optimized(fn: Any, backend: Any = "eager") -> Any:
    return minidynamo.optimize(backend)(fn)


def compiled_by_torch(fn: Any, backend: Any = "eager") -> Any:
    """The peer: torch.compile with the same backend."""
    return torch.compile(fn, backend=backend)


def forget() -> None:
    """No compiled code of either side."""
    minidynamo.reset()
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()


# --- exact counters ------------------------------------------------------------------------------------------------------------
def counters(subject: Subject) -> dict[str, int]:
    """What three calls lead to: the same numbers on every machine."""
    case = subject.workload.build()
    seen: list[events.Event] = []
    forget()
    call = case.caller(optimized(case.fn))
    with events.listen(seen.append):
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


def peer_graphs(case: Case) -> dict[str, int]:
    """Graphs and operators that torch.compile gives to its backend in three calls."""
    counted = minidynamo.testing.CompileCounter()
    forget()
    call = case.caller(compiled_by_torch(case.fn, counted))
    for _ in range(3):
        call()
    return {"graphs": counted.frame_count, "ops": counted.op_count}


def calls_per_compile(subject: Subject) -> int:
    """Python and C calls of one cold compilation: a measure of work that no noise reaches."""
    optimized_first_call(subject.workload.fresh())  # whatever loads lazily is loaded
    count = 0

    def profile(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    case = subject.workload.fresh()
    forget()
    call = case.caller(optimized(case.fn))
    gc.collect()
    gc.disable()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


# --- time ----------------------------------------------------------------------------------------------------------------------
def first_call(make: Callable[[Any], Any], case: Case) -> float:
    """CPU seconds of making the optimized function and calling it for the first time."""
    gc.collect()
    gc.disable()
    begin = time.thread_time()
    case.caller(make(case.fn))()
    spent = time.thread_time() - begin
    gc.enable()
    return spent


def optimized_first_call(case: Case) -> float:
    return first_call(optimized, case)


def cold(subject: Subject) -> dict[str, Any]:
    """Milliseconds of a first call, ours and the peer's in turn, on code that nobody has seen; our stages beside."""
    ours, peers, stages = [], [], []
    with_peer = subject.peer and subject.workload.build().peer
    for _ in range(subject.repeats + 1):  # the first of each loads what loads lazily
        forget()
        ours.append(optimized_first_call(subject.workload.fresh()))
        if with_peer:
            forget()
            peers.append(first_call(compiled_by_torch, subject.workload.fresh()))
        stages.append(stage_seconds(subject.workload.fresh()))
    names = sorted({name for row in stages for name in row})
    figures: dict[str, Any] = {
        "ms": statistics.median(ours[1:]) * 1e3,
        "stages": {name: statistics.median(row.get(name, 0.0) for row in stages[1:]) * 1e3 for name in names},
    }
    if peers:
        figures["peer_ms"] = statistics.median(peers[1:]) * 1e3
        figures["over_peer"] = statistics.median(a / b for a, b in zip(ours[1:], peers[1:], strict=True))
    return figures


def stage_seconds(case: Case) -> dict[str, float]:
    """Seconds per stage of everything that a first call compiles."""
    spent: dict[str, float] = {}

    def note(event: events.Event) -> None:
        if isinstance(event, events.StageDone):
            spent[event.stage] = spent.get(event.stage, 0.0) + event.seconds

    forget()
    with events.listen(note):
        optimized_first_call(case)
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
    case.caller(optimized(case.fn, backend))()
    if len(backend.graphs) != 1:
        return None
    forward, inputs = backend.graphs[0].forward, backend.inputs
    return lambda: forward(*inputs)


def warm(subject: Subject) -> dict[str, Any]:
    """Ratios of a warm call to eager, to the bare graph, and to the peer; `floor` is the A/A control beside them."""
    case = subject.workload.build()
    forget()
    eager, ours = case.caller(case.fn), case.caller(optimized(case.fn))
    ours()
    figures: dict[str, Any] = {
        "eager": asdict(paired(eager, ours, subject.effort)),
        "floor": floor(eager, subject.effort),
    }
    bare = bare_graph(case)
    if bare is not None:
        figures["bare"] = asdict(paired(bare, ours, subject.effort))
    if subject.peer and case.peer:
        figures["peer_graphs"] = peer_graphs(case)
        theirs = case.caller(compiled_by_torch(case.fn))
        theirs()
        figures["peer"] = asdict(paired(theirs, ours, subject.effort))
    return figures


# --- numbers -------------------------------------------------------------------------------------------------------------------
ATOL = 1e-6


def accuracy(subject: Subject) -> dict[str, Any] | None:
    """The error against a run in fp64: at most twice eager's own plus 1e-6. None where a case has no fp64 form."""
    case = subject.workload.build()
    if not case.accuracy:
        return None
    exact = _tensors(case.caller(_doubled(case.fn, {}))() if not case.args else _call_in_double(case))
    eager = _tensors(case.caller(case.fn)())
    forget()
    ours = _tensors(case.caller(optimized(case.fn))())
    error, own = _error(exact, ours), _error(exact, eager)
    return {"error": error, "eager_error": own, "ok": error <= 2 * own + ATOL}


def _call_in_double(case: Case) -> Any:
    memo: dict[int, Any] = {}
    args = tuple(_doubled(arg, memo) for arg in case.args)
    kwargs = {name: _doubled(value, memo) for name, value in case.kwargs.items()}
    return _doubled(case.fn, memo)(*args, **kwargs)


def _doubled(value: Any, memo: dict[int, Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).double()
    owner = getattr(value, "__self__", None)
    if owner is not None and hasattr(owner, "__dict__"):
        twin = copy.copy(owner)
        twin.__dict__.update({name: _doubled(item, memo) for name, item in vars(owner).items()})
        return getattr(twin, value.__name__)
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value.detach()]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _error(exact: list[torch.Tensor], got: list[torch.Tensor]) -> float:
    if len(exact) != len(got):
        raise AssertionError(f"{len(got)} tensors instead of {len(exact)}")
    return max(
        (float((a.double() - b.double()).abs().max()) for a, b in zip(exact, got, strict=True) if a.numel()),
        default=0.0,
    )
