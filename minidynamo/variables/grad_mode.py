"""`torch.no_grad`, `torch.enable_grad`, `torch.set_grad_enabled`: entering and leaving them are nodes of the graph, and the trace's
grad mode follows."""

from __future__ import annotations

import types
from typing import Any

import torch

from ..graph.state_keys import GRAD_MODE
from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..sources import AttrSource, Source
from ..static_access import type_lookup
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .managers import METHODS, ManagerMethodVariable
from .opaque import wrap_opaque
from .registry import wraps
from .sequences import NONE

# The mode inside; None: an argument says it.
MODES: dict[type, bool | None] = {torch.no_grad: False, torch.enable_grad: True, torch.set_grad_enabled: None}


def set_mode(tx: Tracing, value: bool) -> None:
    """torch._C._set_grad_enabled, now and in the graph."""
    tx.call_state(torch._C._set_grad_enabled, (value,), GRAD_MODE)


class GradModeVariable(VariableTracker):
    """A manager: the mode inside, and the one that leaving restores. Rebuilt without a call of its class, which may have effects."""

    __slots__ = ("cls", "mode", "previous", "found")
    mutable = True

    def __init__(
        self,
        cls: type,
        mode: bool,
        previous: bool | None,
        source: Source | None = None,
        found: bool | None = None,
    ) -> None:
        """`previous`: attribute `prev`, None while there is none (enable_grad has it from entering on), or while it is `found` in a
        manager from outside and nobody looked at it."""
        super().__init__(source)
        self.cls = cls
        self.mode = mode
        self.previous = previous
        self.found = found

    def python_type(self) -> type:
        return self.cls

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name in METHODS and type_lookup(self.cls, name) is not None:
            return ManagerMethodVariable(self, name)
        if name == "prev" and self.previous is not None:
            return ConstantVariable(self.previous)
        if name == "mode" and MODES[self.cls] is None:
            return ConstantVariable(self.mode)
        return super().getattr(tx, name)

    def set_previous(self, tx: Tracing, value: bool) -> None:
        if self.source is not None:
            tx.effect("STORE_ATTR", "prev", ConstantVariable(value), self)
        self.previous = value

    def enter(self, tx: Tracing) -> VariableTracker:
        if MODES[self.cls] is not None:  # the others remember it when they are made
            self.set_previous(tx, tx.grad_mode)
        set_mode(tx, self.mode)
        return NONE

    def leave(self, tx: Tracing) -> VariableTracker:
        set_mode(tx, self.restores(tx))
        return NONE

    def again(self, tx: Tracing) -> VariableTracker:
        """What a function decorated with the manager enters at each call."""
        return made(tx, self.cls, self.mode)

    def restores(self, tx: Tracing) -> bool:
        """The mode that leaving sets."""
        if self.previous is None and self.found is not None and self.source is not None:
            tx.wrap(self.found, AttrSource(self.source, "prev"))
            self.previous = self.found
        if self.previous is None:
            self._opaque(tx, "leaving before entering")
        return self.previous

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        made = emit.temporary(E.Call(E.Const(object.__new__), (E.Const(self.cls),)))
        emit.remember(self, made)
        values = {"prev": self.previous, "mode": self.mode if MODES[self.cls] is None else None}
        for name in (name for name, value in values.items() if value is not None):
            emit.do(E.Effect("STORE_ATTR", name, (E.Const(values[name]), made)))
        return made


def is_grad_method(value: Any) -> bool:
    """`__exit__`, as the class has it, bound to a manager that says what it restores."""
    cls = type(value.__self__) if type(value) is types.MethodType else object
    if cls not in MODES:
        return False
    return value.__func__ is cls.__dict__["__exit__"] and type(vars(value.__self__).get("prev")) is bool


def made(tx: Tracing, cls: type, mode: bool) -> GradModeVariable:
    """`cls(...)`; set_grad_enabled sets the mode when it is made."""
    if MODES[cls] is not None:
        return GradModeVariable(cls, mode, None if cls is torch.enable_grad else False)
    manager = GradModeVariable(cls, mode, tx.grad_mode)
    tx.guard_global_state()
    set_mode(tx, mode)
    return manager


@wraps(torch.no_grad, torch.enable_grad, torch.set_grad_enabled)
def wrap_grad_mode(
    tx: Tracing, value: torch.no_grad | torch.enable_grad | torch.set_grad_enabled, source: Source
) -> VariableTracker:
    """A manager from outside: the mode inside is guarded, and what leaving restores where that is not known from entering."""
    mode = MODES[type(value)]
    members = vars(value)
    inside = members["mode"] if mode is None else mode
    if type(inside) is not bool or type(members.get("prev", False)) is not bool:
        return wrap_opaque(tx, value, source)
    previous = members.get("prev")
    read = GradModeVariable(type(value), inside, previous if mode is None else None, source, previous)
    read.make_guards(tx, GuardBuilder.TYPE_MATCH)
    for name in ("prev", "mode") if mode is None else ():
        tx.wrap(members[name], AttrSource(source, name))
    return read
