"""A graph as reports keep it: a few tuples in place of torch.fx's nodes, from which the text is made when somebody asks."""

from __future__ import annotations

from typing import Any

import torch.fx
from torch.fx.node import map_aggregate


class Use(int):
    """Stands for a node in the arguments of another: its place in the graph. (An int: nothing that the garbage collector looks at.)"""

    __slots__ = ()


def places_of(graph: torch.fx.Graph) -> dict[torch.fx.Node, Use]:
    """What stands for each node."""
    return {node: Use(place) for place, node in enumerate(graph.nodes)}


class Listing:
    """The nodes of a graph, (op, name, target, args, kwargs) each, without what torch.fx keeps to change them.

    places: of the graph (see `places_of`)

    >>> str(Listing(places_of(graph))) == str(graph)
    True
    """

    __slots__ = ("rows",)

    def __init__(self, places: dict[torch.fx.Node, Use]) -> None:
        def used(value: Any) -> Any:
            return places[value] if isinstance(value, torch.fx.Node) else value

        self.rows = tuple(
            (
                node.op,
                node.name,
                node.target,
                map_aggregate(node.args, used),
                map_aggregate(node.kwargs, used) if node.kwargs else None,
            )
            for node in places
        )

    def graph(self) -> torch.fx.Graph:
        """An equal graph, without metadata."""
        made = torch.fx.Graph()
        nodes: list[torch.fx.Node] = []

        def node(value: Any) -> Any:
            return nodes[value] if type(value) is Use else value

        for op, name, target, args, kwargs in self.rows:
            given = map_aggregate(args, node), map_aggregate(kwargs or {}, node)
            nodes.append(made.create_node(op, target, *given, name=name))  # type: ignore[arg-type]
        return made

    def __str__(self) -> str:
        return str(self.graph())
