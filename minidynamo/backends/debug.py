"""Backend "debug": prints each graph as a table when it is compiled, then runs it as "eager" does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .registry import register_backend


def graph_table(gm: torch.fx.GraphModule, title: str) -> Any:
    """A rich table of the graph: operation, name, target, arguments."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", show_edge=False)
    for column in ("opcode", "name", "target", "args"):
        table.add_column(column, overflow="fold")
    for node in gm.graph.nodes:
        args = ", ".join([*map(str, node.args), *(f"{k}={v}" for k, v in node.kwargs.items())])
        target = (
            node.target
            if isinstance(node.target, str)
            else getattr(node.target, "__name__", str(node.target))
        )
        table.add_row(*map(Text, (node.op, node.name, str(target), args)))
    return table


@register_backend(needs_meta=False)
def debug(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """Print the graph to standard output and run it as it is."""
    from rich.console import Console

    shapes = ", ".join(
        f"{tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}" if isinstance(t, torch.Tensor) else repr(t)
        for t in example_inputs
    )
    Console().print(graph_table(gm, f"graph of {type(gm).__name__}({shapes})"))
    return gm.forward
