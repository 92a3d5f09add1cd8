"""`torch.distributed.ProcessGroup`: its rank and its size are fixed when it is made."""

from __future__ import annotations

import torch
import torch.distributed

from ..guards.builder import GuardBuilder
from ..sources import Source, TypeSource
from .base import Tracing, VariableTracker
from .constant import ConstantVariable
from .functions import BoundMethodVariable
from .registry import wraps
from .user_objects import UserObjectVariable

FIXED = ("rank", "size")  # methods without arguments whose answer never changes


class ProcessGroupVariable(UserObjectVariable):
    """Guarded by identity where it is asked for its rank or its size. What else it does is left to plain Python."""

    __slots__ = ()
    value: torch.distributed.ProcessGroup

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        return BoundMethodVariable(self, name) if name in FIXED else super().getattr(tx, name)

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if args or kwargs or name not in FIXED:
            self._opaque(tx, f"method {name} with these arguments")
        self.make_guards(tx, GuardBuilder.ID_MATCH)
        return ConstantVariable(getattr(self.value, name)(), guards=self.guards)


def wrap_process_group(tx: Tracing, value: torch.distributed.ProcessGroup, source: Source) -> VariableTracker:
    made = ProcessGroupVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    tx.guard_class(type(value), TypeSource(source))
    return made


if torch.distributed.is_available():
    wraps(torch.distributed.ProcessGroup)(wrap_process_group)
