"""Guards for compilers that make in-place graphs functional: which inputs share memory with an input that is written.

A graph that is run operator by operator is right however its inputs overlap. AOTAutograd writes inputs after the graph has
run, and unpacks inputs that overlap from their common base, with the places that they had when it compiled. So the
sharing, and the places where there is some, are guarded (decision 6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.fx

from ..graph.memory import may_be_input
from ..graph.output_graph import CapturedGraph
from ..graph.wrappers import is_wrapper_class, parts
from ..guards import leaves
from ..guards.builder import GuardBuilder
from ..guards.guard import Guard, make_guard
from ..reasons import TENSOR_SUBCLASS, why
from ..sources import AttrSource, Source
from ..static_access import instance_dict
from ..translate.plan import SkipFrame


@dataclass(frozen=True, slots=True)
class Aliasing:
    """What the written inputs of a graph have to do with the others.

    guards: on the memory that inputs share; none when no input is written
    tag: tells compilations of equal graphs with different sharing apart; "" without sharing
    """

    guards: tuple[Guard, ...] = ()
    tag: str = ""


def aliasing(graph: CapturedGraph) -> Aliasing:
    """Which inputs share memory, if the graph writes any. Raises SkipFrame where compilers would get it wrong."""
    inputs = [part for each in graph.inputs for part in with_memory(each.source, each.example)]
    if len(inputs) < 2 or not writes_input(graph):
        return Aliasing()
    first, *others = (each.source for each in inputs)
    layout = make_guard(first, GuardBuilder.STORAGE_LAYOUT, *others)
    together = sharing(inputs)
    if not together:
        return Aliasing((layout,))
    if any(each.inside for each in together):  # compilers see the outside of wrappers only
        detail = "a tensor in it shares memory with another input, and the graph writes to inputs"
        raise SkipFrame(why(TENSOR_SUBCLASS, type="a wrapper of tensors", detail=detail), mark=False)
    head, *rest = (each.source for each in together)
    places = leaves.storage_places(tuple(each.tensor for each in together))
    tag = f"aliasing {leaves.storage_layout(tuple(each.tensor for each in inputs))} {places}"
    return Aliasing((layout, make_guard(head, GuardBuilder.STORAGE_PLACES, *rest)), tag)


class Place(NamedTuple):
    """A tensor with memory: a graph input, or one inside of a wrapper that is an input."""

    source: Source
    tensor: torch.Tensor
    inside: bool


def with_memory(source: Source, tensor: torch.Tensor, inside: bool = False) -> Iterator[Place]:
    """The tensor, or those inside of a wrapper."""
    if not is_wrapper_class(type(tensor)):
        yield Place(source, tensor, inside)
        return
    for name in parts(tensor)[0]:
        yield from with_memory(AttrSource(source, name), (instance_dict(tensor) or {})[name], True)


def sharing(inputs: list[Place]) -> list[Place]:
    """Those that share their storage with another one."""
    groups: dict[int, list[Place]] = {}
    for each in inputs:
        groups.setdefault(each.tensor.untyped_storage()._cdata, []).append(each)
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
