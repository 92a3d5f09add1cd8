"""Which guards are about what is inside of an nn.Module: those that `config.guard_nn_modules = False` leaves out."""

from __future__ import annotations

from typing import Any

import torch

from ..sources import AttrSource, FrameValues, Source
from ..static_access import is_subtype
from .guard import Guard

# Kinds on a module itself that are about which object it is.
ABOUT_ITSELF = frozenset(
    "TYPE_MATCH ID_MATCH NN_MODULE CONSTANT_MATCH DUPLICATE_INPUT NO_ALIAS DISTINCT WEAKREF_ALIVE".split()
)
# What code of a module's class reads elsewhere: globals, variables of functions around it.
ELSEWHERE = frozenset(("__globals__", "__closure__"))


class InsideModules:
    """Asks about guards on the values of one frame."""

    def __init__(self, frame: FrameValues) -> None:
        self.frame = frame
        self._inside: dict[Source, bool] = {}

    def holds(self, guard: Guard) -> bool:
        """Whether all that the guard compares is inside of modules; a question about which object a module is, is not."""
        sources = [each for arg in guard.args for each in (arg if isinstance(arg, tuple) else (arg,))]
        others = [each for each in sources if isinstance(each, Source)]
        about_itself = guard.create_fn.__name__ in ABOUT_ITSELF
        inside = self.inside(guard.origin) or self.is_module(guard.origin) and not about_itself
        return inside and all(map(self.inside, others))

    def inside(self, source: Source) -> bool:
        """Whether the path leads through a module, and stays there."""
        found = self._inside.get(source)
        if found is None:
            parent = source.parent()
            found = self._inside[source] = (
                parent is not None
                and not (isinstance(source, AttrSource) and source.member in ELSEWHERE)
                and (self.is_module(parent) or self.inside(parent))
            )
        return found

    def is_module(self, source: Source) -> bool:
        value: Any = source.read(self.frame)
        return is_subtype(type(value), torch.nn.Module)
