"""Managers that hold what they entered: `torch.inference_mode`, `record_function`, `torch.device`. Entering and leaving one are
nodes of the graph. Where a graph ends inside of the block it leaves it, and the emitted code enters it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..graph.context_calls import enter_device, enter_inference_mode, enter_record_function, leave
from ..graph.output_graph import OutputGraph
from ..graph.state_keys import DEFAULT_DEVICE, GRAD_MODE, Key
from ..guards.builder import GuardBuilder
from ..guards.state_reads import current_device, is_one_device
from ..pycode import expr as E
from ..reasons import CONTEXT_STATE
from ..sources import AttrSource, Source
from ..static_access import type_lookup
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .managers import METHODS, ManagerMethodVariable
from .opaque import wrap_opaque
from .registry import wraps
from .sequences import NONE


@dataclass(frozen=True, slots=True)
class Manager:
    """A row: the call that makes and enters one, the constructor's arguments in order with their types, and their defaults,
    whether the trace enters it too (what it does decides about results), whether `__enter__` gives the manager (else None),
    its other attributes when it is new."""

    enter: Callable[..., Any]
    arguments: dict[str, tuple[type, ...]]
    defaults: dict[str, Any]
    in_trace: bool
    gives_itself: bool
    others: dict[str, Any]


MANAGERS: dict[type, Manager] = {
    torch.inference_mode: Manager(enter_inference_mode, {"mode": (bool,)}, {"mode": True}, True, False, {}),
    torch.autograd.profiler.record_function: Manager(
        enter_record_function,
        {"name": (str,), "args": (str, type(None))},
        {"args": None},
        False,
        True,
        {"run_callbacks_on_exit": True, "record": None, "_cupti_monitor_external_id": None},
    ),
}


class ContextVariable(VariableTracker):
    """A manager. `node` is the graph's, while it is entered."""

    __slots__ = ("cls", "args", "node", "held", "birth", "found")
    mutable = True
    changes: Key = GRAD_MODE
    again_is_the_same = True  # entering one like it makes the state that entering this one made

    def __init__(self, cls: type, args: tuple[Any, ...], source: Source | None = None) -> None:
        super().__init__(source)
        self.cls = cls
        self.args = args
        self.node: Any = None
        self.held: Any = None
        self.birth = 0
        self.found = False  # the grad mode when it was entered

    def row(self) -> Manager:
        return MANAGERS[self.cls]

    def python_type(self) -> type:
        return self.cls

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        row = self.row()
        if name in METHODS and type_lookup(self.cls, name) is not None:
            return ManagerMethodVariable(self, name)
        if name in row.arguments:
            return ConstantVariable(self.args[list(row.arguments).index(name)])
        return super().getattr(tx, name)

    def enter(self, tx: Tracing) -> VariableTracker:
        if self.source is not None or self.node is not None:
            tx.unsupported(CONTEXT_STATE, name=self.type_name(), what="is entered again, or was made outside")
        opened: list[ContextVariable] = tx.trace.opened
        tx.guard_global_state()
        tx.trace.states.setdefault(self.changes, self.changes.get())
        row = self.row()
        self.node = tx.graph.add_op(row.enter, self.args, {}, tx.position()).node
        self.birth = tx.trace.root_index
        self.found = tx.grad_mode
        if row.in_trace:
            self.held = row.enter(*self.args)
        opened.append(self)
        return self if row.gives_itself else NONE

    def leave(self, tx: Tracing) -> VariableTracker:
        opened: list[ContextVariable] = tx.trace.opened
        if not opened or opened[-1] is not self:
            tx.unsupported(
                CONTEXT_STATE, name=self.type_name(), what="was entered in another piece of the function"
            )
        self.leave_graph(tx.graph, tx.position())
        self.node = None
        self.release()
        opened.pop()
        return NONE

    def again(self, tx: Tracing) -> VariableTracker:
        """What a function decorated with a manager enters at each call. (`record_function` enters itself; nobody can tell.)"""
        return ContextVariable(self.cls, self.args)

    def leave_graph(self, graph: OutputGraph, where: Any) -> None:
        """The graph leaves it."""
        graph.add_op(leave, (self.node,), {}, where)

    def release(self) -> None:
        """Leave it in the trace."""
        held, self.held = self.held, None
        if held is not None:
            leave(held)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        row = self.row()
        if self.node is not None:
            return emit.temporary(E.Call(E.Const(row.enter), tuple(E.Const(arg) for arg in self.args)))
        made = emit.temporary(E.Call(E.Const(object.__new__), (E.Const(self.cls),)))
        for name, value in {**dict(zip(row.arguments, self.args)), **row.others}.items():
            emit.do(E.Effect("STORE_ATTR", name, (E.Const(value), made)))
        return made


def can_be_entered_again(opened: Sequence[ContextVariable]) -> bool:
    """Whether entering them anew, one after the other, makes the state what it was at each of them and what it is now. (Inference mode
    sets the grad mode, and puts back what it found.)"""
    mode: bool | None = None  # as they leave it; None: as the first of them found it
    for manager in opened:
        if not manager.again_is_the_same or mode is not None and manager.found is not mode:
            return False
        if manager.cls is torch.inference_mode:
            mode = not manager.args[0]
    return mode is None or torch.is_grad_enabled() is mode


class DeviceContextVariable(ContextVariable):
    """A `torch.device` in a `with` statement: functions that make tensors are given that device where they are given none."""

    __slots__ = ("device",)
    changes = DEFAULT_DEVICE
    ROW = Manager(enter_device, {"device": (str,)}, {}, True, True, {})

    def __init__(self, device: torch.device) -> None:
        super().__init__(torch.device, (str(device),))
        self.device = device

    def row(self) -> Manager:
        return self.ROW

    def enter(self, tx: Tracing) -> VariableTracker:
        if not is_one_device(self.device) and current_device(self.device.type) < 0:
            tx.unsupported(CONTEXT_STATE, name="device", what=f"is {self.device}, of which there is none")
        super().enter(tx)
        return ConstantVariable(self.device)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Const(self.device) if self.node is None else super().reconstruct(emit)


def read_manager(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    """A manager from outside: its arguments are guarded."""
    names = MANAGERS[type(value)].arguments
    members = vars(value)
    if not all(type(members.get(name)) in types for name, types in names.items()):
        return wrap_opaque(tx, value, source)
    made = ContextVariable(type(value), tuple(members[name] for name in names), source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    for name in names:
        tx.wrap(members[name], AttrSource(source, name))
    return made


_wrap: Callable[..., Any] = wraps(*MANAGERS)
_wrap(read_manager)
