"""Backend "eager": runs the graph as it is, operator by operator."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .registry import register_backend


@register_backend(needs_meta=False)
def eager(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """The graph's own `forward`: the least that any front end can cost. It reads nothing of the module, so the module, and with it
    the graph's nodes, need not be kept."""
    if any(node.op in ("get_attr", "call_module") for node in gm.graph.nodes):
        return gm.forward
    return types.MethodType(type(gm).forward, NO_MODULE)


NO_MODULE = ()  # what a `forward` that reads nothing of its module is bound to
