"""Bound methods of torch's context managers that the trace follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .base import Tracing, VariableTracker
from .functions import BoundMethodVariable

# Method -> (number of arguments, what it does with the manager).
METHODS: dict[str, tuple[int, Callable[[Any, Tracing], VariableTracker]]] = {
    "__enter__": (0, lambda manager, tx: manager.enter(tx)),
    "__exit__": (3, lambda manager, tx: manager.leave(tx)),
    "clone": (0, lambda manager, tx: manager.again(tx)),
    "_recreate_cm": (0, lambda manager, tx: manager.again(tx)),
}


class ManagerMethodVariable(BoundMethodVariable):
    """A bound method of a manager, which has `enter`, `leave` and `again`."""

    __slots__ = ()

    def python_type(self) -> type:
        return type(torch.no_grad().__enter__)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        count, run = METHODS[self.name]
        if kwargs or len(args) != count:
            self._opaque(tx, f"{self.name} with these arguments")
        return run(self.owner, tx)

    def slot_truth(self, tx: Tracing) -> bool:
        return True
