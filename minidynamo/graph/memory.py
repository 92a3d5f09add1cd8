"""Which tensors of a graph may have the memory of an input: told by the operators' schemas."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
import torch.fx


def any_may_be_input(nodes: Iterable[torch.fx.Node]) -> bool:
    """Can one of the nodes' tensors have the memory of an input?"""
    known: dict[torch.fx.Node, bool] = {}
    return any(may_be_input(node, known) for node in nodes)


def inputs_of(nodes: Iterable[torch.fx.Node]) -> dict[torch.fx.Node, None]:
    """The inputs whose memory the nodes' tensors may have."""
    found: dict[torch.fx.Node, None] = {}
    known: dict[torch.fx.Node, bool] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found and may_be_input(node, known):
            found[node] = None
            waiting += node.all_input_nodes if node.op != "placeholder" else ()
    return {node: None for node in found if node.op == "placeholder"}


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


def always_fresh(target: Any) -> bool:
    """Does the operator always give new memory? Its schema tells, unless it is made of other operators."""
    return _is_fresh(target if isinstance(target, str) else getattr(target, "__name__", ""))


@cache
def _is_fresh(name: str) -> bool:
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
