"""Runs a phase of a program as it is and captured, compares, and counts graphs, breaks and recompilations."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch

import minidynamo
from minidynamo import events
from minidynamo.testing import CompileCounter

from .case import Case

OWN = ("mlp", "lstm", "resnet", "unet", "vit", "gpt", "vae", "seq2seq")
LIBRARY = ("transformers_models",)


def cases(files: tuple[str, ...] = OWN + LIBRARY) -> dict[str, Case]:
    """Programs by name, in the order of the files."""
    found = [case for file in files for case in importlib.import_module(f"tests.real.models.{file}").CASES]
    return {case.name: case for case in found}


@dataclass(frozen=True)
class Counts:
    """Graphs with an operator, breaks of graphs, compilations of code that was compiled before."""

    graphs: int
    breaks: int
    recompiles: int


TABLE = Path(__file__).with_name("table.tsv")
HEAD = "program phase graphs breaks recompiles peer_graphs peer_breaks peer_recompiles".split()
Row = tuple[Counts, Counts]  # minidynamo's, and torch.compile's


def read_table() -> dict[tuple[str, str], Row]:
    """The committed counts by program and phase."""
    head, *lines = TABLE.read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == HEAD, head
    rows = {}
    for line in lines:
        name, phase, *numbers = line.split("\t")
        counts = [int(number) for number in numbers]
        rows[name, phase] = Counts(*counts[:3]), Counts(*counts[3:])
    return rows


def write_table(rows: dict[tuple[str, str], Row]) -> None:
    lines = [HEAD] + [
        [name, phase, *map(str, (*astuple(own), *astuple(others)))]
        for (name, phase), (own, others) in rows.items()
    ]
    TABLE.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


@dataclass
class Captured:
    """A phase that was captured: its result, what was counted, why graphs broke and code was compiled again."""

    result: Any
    counts: Counts
    reasons: list[str]


def captured(case: Case, phase: str) -> Captured:
    """The phase under minidynamo, in the state after `reset`."""
    minidynamo.reset()
    counter = CompileCounter()
    breaks: list[str] = []
    again: list[str] = []

    def note(event: events.Event) -> None:
        if isinstance(event, events.GraphBreak):
            breaks.append(f"break {event.where}: {event.text} [{event.code}]")
        elif isinstance(event, events.Skipped):
            again.append(f"skipped {event.where}: {event.text} [{event.code}]")
        elif isinstance(event, events.Recompile):
            again.append(f"recompile {event}")

    with events.listen(note):
        result = case.run(phase, minidynamo.optimize(counter))
    recompiles = sum(text.startswith("recompile") for text in again)
    return Captured(result, Counts(counter.frame_count, len(breaks), recompiles), breaks + again)


def peer(case: Case, phase: str) -> Counts:
    """The same counts for torch.compile, with static shapes."""
    import torch._dynamo as dynamo

    dynamo.reset()
    dynamo.utils.counters.clear()
    graphs: list[int] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        graphs.append(torch._guards.CompileContext.current_compile_id().frame_compile_id)
        return module.forward

    case.run(phase, torch.compile(backend=backend, dynamic=False))
    breaks = sum(dynamo.utils.counters["graph_break"].values())
    return Counts(len(graphs), breaks, sum(number > 0 for number in graphs))


def differences(expected: Any, got: Any, where: str = "result") -> Iterator[str]:
    """Where two results differ; tensors that went through equal operators are equal bit for bit."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(got, torch.Tensor) or expected.shape != got.shape or expected.dtype != got.dtype:
            yield f"{where}: {expected!r} became {got!r}"
        elif not torch.equal(expected.nan_to_num(), got.nan_to_num()):
            yield f"{where}: differs by {(expected.double() - got.double()).abs().max():.3g}"
        elif expected.requires_grad != got.requires_grad:
            yield f"{where}: requires_grad={got.requires_grad}"
    elif type(expected) is not type(got):
        yield f"{where}: {type(expected).__name__} became {type(got).__name__}"
    elif isinstance(expected, dict):
        if list(expected) != list(got):
            yield f"{where}: keys {list(expected)} became {list(got)}"
        for key in expected:
            yield from differences(expected[key], got[key], f"{where}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            yield f"{where}: {len(expected)} items became {len(got)}"
        for number, (a, b) in enumerate(zip(expected, got)):
            yield from differences(a, b, f"{where}[{number}]")
    elif hasattr(expected, "__dict__"):
        yield from differences(vars(expected), vars(got), where)
    elif expected != got:
        yield f"{where}: {expected!r} became {got!r}"
