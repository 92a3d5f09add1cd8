"""Context managers: `__enter__` and `__exit__` of the user's classes are inlined. An exception inside is plain Python's."""

from __future__ import annotations

from typing import Any

import torch

from ...pycode.instruction import Instruction
from ...reasons import OPAQUE_VALUE
from ...rules.devices import BLOCKS
from ...variables.base import Tracing, VariableTracker
from ...variables.constant import ConstantVariable
from ...variables.contexts import ContextVariable, DeviceContextVariable
from ...variables.functions import UserFunctionVariable
from ...variables.grad_mode import GradModeVariable
from ...variables.managers import ManagerMethodVariable
from ...variables.methods import UserMethodVariable
from ...variables.user_objects import UserObject
from .table import handles


def special(tx: Tracing, manager: VariableTracker, name: str) -> VariableTracker:
    """A special method of a user's object, looked up on its class and bound."""
    manager = manager.realize(tx)
    if isinstance(manager, (GradModeVariable, ContextVariable)):
        return manager.getattr(tx, name)
    fn = manager.special(tx, name) if isinstance(manager, UserObject) else None
    hidden = isinstance(manager, UserObject) and manager.own_attribute(tx, name) is not None
    if fn is None or hidden:  # (the bound method is rebuilt by looking it up on the instance)
        tx.unsupported(OPAQUE_VALUE, operation="with", type=manager.type_name())
    return UserMethodVariable(fn, manager, name)


def is_restoring(leave: VariableTracker) -> bool:
    """Is it a method of torch that restores state, whatever exception it gets?"""
    fn = leave.fn if isinstance(leave, UserMethodVariable) else None
    return isinstance(fn, UserFunctionVariable) and (fn.fn in RESTORING or fn.code() in BLOCKS)


RESTORING = (torch.autocast.__exit__, torch.autograd.set_detect_anomaly.__exit__)


@handles("BEFORE_WITH")
def before_with(tx: Any, inst: Instruction) -> None:
    """CPython looks up `__enter__`, then `__exit__`, then calls `__enter__`."""
    manager = tx.pop().realize(tx)
    if isinstance(manager, ConstantVariable) and type(manager.value) is torch.device:
        manager = DeviceContextVariable(manager.value)
    enter, leave = special(tx, manager, "__enter__"), special(tx, manager, "__exit__")
    if isinstance(leave, ManagerMethodVariable) or is_restoring(leave):
        tx.leaves_alone(tx.index)
    tx.push(leave)
    tx.push(tx.call(enter, [], {}))


@handles("LOAD_SPECIAL")
def load_special(tx: Any, inst: Instruction) -> None:
    tx.push(special(tx, tx.pop(), inst.arg))
