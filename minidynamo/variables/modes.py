"""Modes that override functions of torch, as library code looks at them: those of a default device."""

from __future__ import annotations

from torch.utils._device import DeviceContext

from ..pycode import expr as E
from .base import Emitting, VariableTracker


class DeviceModeVariable(VariableTracker):
    """One that a block of `torch.device` or `torch.set_default_device` has entered. It can be asked for its type."""

    __slots__ = ()

    def python_type(self) -> type:
        return DeviceContext

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.impossible("a mode of torch functions")
