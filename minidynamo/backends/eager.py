"""Backend "eager": runs the graph as it is, operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .registry import register_backend


@register_backend(needs_meta=False)
def eager(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """The graph's own `forward`: the least that any front end can cost."""
    return gm.forward
