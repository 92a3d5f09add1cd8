"""`torch.Generator`: an input of the graph, which operators draw from in their order."""

from __future__ import annotations

import functools

import torch

from ..guards.builder import GuardBuilder
from ..sources import Source
from .base import Tracing, VariableTracker
from .opaque import OpaqueVariable, wrap_opaque
from .registry import wraps


@functools.cache
def stand_in(device: torch.device) -> torch.Generator:
    """What operators are tried with in the place of a generator of that device: nothing draws from the program's own."""
    return torch.Generator(device)


class RandomGeneratorVariable(OpaqueVariable):
    """Guarded by its type: an operator refuses a generator of another device when it runs. Its methods are left to plain Python."""

    __slots__ = ("device", "proxy")

    def __init__(self, value: torch.Generator, proxy: torch.fx.Proxy, source: Source) -> None:
        super().__init__(value, source)
        self.device = value.device
        self.proxy = proxy

    def as_python_proxy(self) -> torch.fx.Node:
        return self.proxy.node

    def as_meta(self) -> torch.Generator:
        return stand_in(self.device)


@wraps(torch.Generator)
def wrap_generator(tx: Tracing, value: torch.Generator, source: Source) -> VariableTracker:
    if tx.trace.for_compiler:  # torch's compilers take tensors and numbers only
        return wrap_opaque(tx, value, source)
    made = RandomGeneratorVariable(value, tx.graph.add_input(source, value), source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made
