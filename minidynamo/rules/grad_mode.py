"""Calls that make managers of the grad mode, or set the mode."""

from __future__ import annotations

import torch

from ..reasons import UNSUPPORTED_CALL
from ..variables.base import Tracing, VariableTracker
from ..variables.grad_mode import MODES, GradModeVariable, made, set_mode
from ..variables.sequences import NONE
from .builtins import Args, positional, rule


def _mode(tx: Tracing, value: VariableTracker) -> bool:
    if not value.is_python_constant() or type(value.as_python_constant()) is not bool:
        tx.unsupported(UNSUPPORTED_CALL, name="setting the grad mode to something that is no plain bool")
    return bool(value.as_python_constant())


def _fixed(cls: type, mode: bool) -> None:
    """`no_grad()`; `no_grad(function)` decorates, which is left to plain Python."""
    rule(cls)(positional(cls.__name__, 0, 0)(lambda tx: made(tx, cls, mode)))


for cls, mode in MODES.items():
    if mode is not None:
        _fixed(cls, mode)


@rule(torch.set_grad_enabled)
def _set_grad_enabled(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    if len(args) + len(kwargs) != 1 or not kwargs.keys() <= {"mode"}:
        tx.unsupported(UNSUPPORTED_CALL, name="set_grad_enabled with these arguments")
    return made(tx, torch.set_grad_enabled, _mode(tx, [*args, *kwargs.values()][0].realize(tx)))


@rule(torch._C._set_grad_enabled)
@positional("_set_grad_enabled", 1, 1)
def _set(tx: Tracing, value: VariableTracker) -> VariableTracker:
    set_mode(tx, _mode(tx, value))
    return NONE


def _method(cls: type, name: str, arguments: int) -> None:
    """A bound method of a manager from outside, called by what is on the stack or stored somewhere."""

    def call(tx: Tracing, manager: VariableTracker, *details: VariableTracker) -> VariableTracker:
        if not isinstance(manager, GradModeVariable) or manager.cls is not cls:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{cls.__name__}.{name} of a {manager.type_name()}")
        return tx.call(manager.getattr(tx, name), list(details), {})

    rule(cls.__dict__[name])(positional(name, arguments, arguments)(call))


for cls in MODES:
    _method(cls, "__enter__", 1)
    _method(cls, "__exit__", 4)


@rule(torch.no_grad.clone, torch.set_grad_enabled.clone)
@positional("clone", 1, 1)
def _clone(tx: Tracing, manager: VariableTracker) -> VariableTracker:
    """What a function decorated with a manager enters at each call."""
    if not isinstance(manager, GradModeVariable):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{manager.type_name()}.clone")
    return made(tx, manager.cls, manager.mode)


assert torch.no_grad.clone is torch.enable_grad.clone
