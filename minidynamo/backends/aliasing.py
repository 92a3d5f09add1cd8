"""Guards for compilers that make in-place graphs functional: which inputs share memory with an input that is written.

A graph that is run operator by operator is right however its inputs overlap. AOTAutograd writes inputs after the graph has
run, and unpacks inputs that overlap from their common base, with the places that they had when it compiled. So the
sharing, and the places where there is some, are guarded (decision 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.fx

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


def may_be_input(node: torch.fx.Node, known: dict[torch.fx.Node, bool]) -> bool:
    """Can the node's tensor have the memory of an input?"""
    found = known.get(node)
    if found is None:
        found = known[node] = node.op == "placeholder" or (
            not always_fresh(node.target) and any(may_be_input(each, known) for each in node.all_input_nodes)
        )
    return found


# Python functions and composite operators of torch (whose schemas do not tell) that give tensors of their own.
FRESH = frozenset(
    """
    linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d batch_norm layer_norm group_norm
    instance_norm matmul max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d softmax log_softmax
    cross_entropy mse_loss embedding scaled_dot_product_attention gelu silu sigmoid tanh add sub mul truediv
    neg pow abs
    """.split()
)


@cache
def always_fresh(target: Any) -> bool:
    """Does the operator always give new memory? Its schema tells, unless it is made of other operators."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if name in FRESH:
        return True
    packet = getattr(torch.ops.aten, name, None) if name and not name.startswith("__") else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return False
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    return all(map(_gives_new_memory, overloads))


def _gives_new_memory(overload: Any) -> bool:
    name = overload.name()
    if torch.Tag.out in overload.tags or not torch._C._dispatch_has_kernel(name):
        return True  # a form that graphs do not call
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
        return False
    return all(value.alias_info is None for value in overload._schema.returns)
