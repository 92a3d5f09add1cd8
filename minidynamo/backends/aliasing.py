"""Guards for compilers that make in-place graphs functional: which inputs share memory with an input that is written.

A graph that is run operator by operator is right however its inputs overlap. AOTAutograd writes inputs after the graph has
run, and unpacks inputs that overlap from their common base, with the places that they had when it compiled. So the
sharing, and the places where there is some, are guarded (decision 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from ..graph.memory import may_be_input
from ..graph.output_graph import CapturedGraph, GraphInput
from ..guards import leaves
from ..guards.builder import GuardBuilder
from ..guards.guard import Guard, make_guard


@dataclass(frozen=True, slots=True)
class Aliasing:
    """What the written inputs of a graph have to do with the others.

    guards: on the memory that inputs share; none when no input is written
    tag: tells compilations of equal graphs with different sharing apart; "" without sharing
    """

    guards: tuple[Guard, ...] = ()
    tag: str = ""


def aliasing(graph: CapturedGraph) -> Aliasing:
    """Which inputs share memory, if the graph writes any."""
    if len(graph.inputs) < 2 or not writes_input(graph):
        return Aliasing()
    first, *others = (each.source for each in graph.inputs)
    layout = make_guard(first, GuardBuilder.STORAGE_LAYOUT, *others)
    together = sharing(graph.inputs)
    if not together:
        return Aliasing((layout,))
    head, *rest = (each.source for each in together)
    examples = tuple(each.example for each in together)
    tag = f"aliasing {leaves.storage_layout(tuple(graph.example_inputs))} {leaves.storage_places(examples)}"
    return Aliasing((layout, make_guard(head, GuardBuilder.STORAGE_PLACES, *rest)), tag)


def sharing(inputs: tuple[GraphInput, ...]) -> list[GraphInput]:
    """Those that share their storage with another input."""
    groups: dict[int, list[GraphInput]] = {}
    for each in inputs:
        groups.setdefault(each.example.untyped_storage()._cdata, []).append(each)
    return [each for group in groups.values() if len(group) > 1 for each in group]


def writes_input(graph: CapturedGraph) -> bool:
    """Does an operator write an input, or a view of one? Told by the operators' schemas, and where those do not say it by the
    storages of fake tensors."""
    known: dict[torch.fx.Node, bool] = {}
    if not any(may_be_input(node, known) for node in graph.written):
        return False
    inputs = graph.module.graph.find_nodes(op="placeholder")
    if any(node in inputs for node in graph.written):
        return True
    storages = {_storage(node) for node in inputs}
    written = {_storage(node) for node in graph.written if known.get(node)}
    return None in written or not storages.isdisjoint(written)


def _storage(node: torch.fx.Node) -> Any:
    example = node.meta.get("example_value")
    return example.untyped_storage()._cdata if isinstance(example, torch.Tensor) else None
