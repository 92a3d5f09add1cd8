"""Parts of a graph that become graphs of their own when it is finished: what `torch.utils.checkpoint` runs, and runs again."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
import torch.utils.checkpoint

from ..cache import OptimizedFunction
from .graph_source import unregister_with


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes in a row, inputs of the graph aside, that one call of `checkpoint` with these options runs."""

    nodes: tuple[torch.fx.Node, ...]
    options: dict[str, Any]


class Checkpoint:
    """What the graph calls: `checkpoint` of the inner graph's function."""

    __name__ = "checkpoint"
    __qualname__ = "checkpoint"

    def __init__(self, module: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        self.module = module
        self.options = options

    def __call__(self, *args: Any) -> Any:
        return checkpointed(self.module.forward, self.options, *args)


def _checkpointed(fn: Any, options: dict[str, Any], *args: Any) -> Any:
    return torch.utils.checkpoint.checkpoint(fn, *args, use_reentrant=False, **options)


checkpointed = OptimizedFunction(
    _checkpointed, None
)  # the inner graph is not captured once more while it runs


def extract(
    graph: torch.fx.Graph, region: Region, wanted: set[torch.fx.Node]
) -> dict[torch.fx.Node, torch.fx.Node]:
    """Put one call in the place of a region. Gives the node that stands for each of its nodes that the rest of the graph uses, or that
    is `wanted`."""
    inside = set(region.nodes)
    given = dict.fromkeys(
        each for node in region.nodes for each in node.all_input_nodes if each not in inside
    )
    used = [node for node in region.nodes if node in wanted or not inside.issuperset(node.users)]
    inner = torch.fx.Graph()
    copies = {node: inner.placeholder(node.name) for node in given}
    for node in region.nodes:
        copies[node] = inner.node_copy(node, lambda each: copies[each])
    inner.output(tuple(copies[node] for node in used))
    module = torch.fx.GraphModule({}, inner, "checkpointed")
    unregister_with(type(module).forward.__code__)
    with graph.inserting_before(region.nodes[0]):
        call = graph.call_function(Checkpoint(module, region.options), tuple(given))
        found = {
            node: graph.call_function(operator.getitem, (call, place)) for place, node in enumerate(used)
        }
    for node, stands_for in found.items():
        node.replace_all_uses_with(stands_for)
    for node in reversed(region.nodes):
        graph.erase_node(node)
    return found
