"""Backends that count, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .backends.registry import lookup_backend


class CompileCounterWithBackend:
    """Counts graphs (`frame_count`) and operators (`op_count`), then hands on to another backend."""

    def __init__(self, backend: str | Callable[..., Any]) -> None:
        self.backend = lookup_backend(backend)
        self.needs_meta = self.backend.needs_meta
        self.clear()

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call_") for node in gm.graph.nodes)
        return self.backend.compiler_fn(gm, example_inputs)

    def clear(self) -> None:
        """Start counting anew."""
        self.frame_count = 0
        self.op_count = 0


class CompileCounter(CompileCounterWithBackend):
    """Counts graphs and operators and runs the graphs as they are."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs:
    """Keeps the graphs (`graphs`) and runs them as they are."""

    needs_meta = True

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
        self.graphs.append(gm)
        return gm.forward
