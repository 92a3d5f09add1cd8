"""A graph as reports keep it: a few tuples in place of torch.fx's nodes, from which the text is made when somebody asks."""

from __future__ import annotations

from typing import Any

import torch.fx
from torch.fx.node import map_aggregate


class _Use:
    """Stands for a node in the arguments of another."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Listing:
    """The nodes of a graph, (op, name, target, args, kwargs) each, without what torch.fx keeps to change them.

    >>> str(Listing(graph)) == str(graph)
    True
    """

    __slots__ = ("_rows",)

    def __init__(self, graph: torch.fx.Graph) -> None:
        uses = {node: _Use(index) for index, node in enumerate(graph.nodes)}

        def used(value: Any) -> Any:
            return uses.get(value, value) if isinstance(value, torch.fx.Node) else value

        self._rows = tuple(
            (
                node.op,
                node.name,
                node.target,
                map_aggregate(node.args, used),
                map_aggregate(node.kwargs, used) if node.kwargs else None,
            )
            for node in uses
        )

    def graph(self) -> torch.fx.Graph:
        """An equal graph, without metadata."""
        made = torch.fx.Graph()
        nodes: list[torch.fx.Node] = []

        def node(value: Any) -> Any:
            return nodes[value.index] if isinstance(value, _Use) else value

        for op, name, target, args, kwargs in self._rows:
            given = map_aggregate(args, node), map_aggregate(kwargs or {}, node)
            nodes.append(made.create_node(op, target, *given, name=name))  # type: ignore[arg-type]
        return made

    def __str__(self) -> str:
        return str(self.graph())
