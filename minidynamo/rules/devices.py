"""The current device of an accelerator: what asks for it is a constant, guarded; what changes it is done while tracing too and is a
node of the graph. The functions are those of torch.accelerator, and those that every device's module has (`torch.cuda`)."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..graph.meta_rules_query import CONSTANT_ATTRIBUTES
from ..graph.state_keys import Key
from ..reasons import UNSUPPORTED_CALL
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from .builtins import RULES, Args, rule
from .torch_state import ask, constants, guard_read

#: question of a device's module -> its name in STATE_READS
QUESTIONS = {
    "current_device": "current device",
    "device_count": "device count",
    "is_available": "device available",
}
SETTERS = ("set_device", "_exchange_device", "_maybe_exchange_device")
#: the same of torch.accelerator; versions of torch have them or not
OF_ACCELERATOR = {
    "current_accelerator": "device available",
    "is_available": "device available",
    "device_count": "device count",
    "current_device_index": "current device",
}
ACCELERATOR_SETTERS = (
    (torch.accelerator, "set_device_index"),
    (torch._C, "_accelerator_exchangeDevice"),
    (torch._C, "_accelerator_maybeExchangeDevice"),
)


def _type(tx: Tracing) -> str | None:
    """The type of the accelerator, guarded."""
    found = torch.accelerator.current_accelerator()
    guard_read(tx, "accelerator", ())
    return None if found is None else found.type


def _question(question: Callable[..., Any], name: str, kind: str | None = None) -> None:
    """`kind`: None where it is about the accelerator, whichever that is."""

    @rule(question)
    def read(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        if not kwargs.keys() <= {"check_available"}:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{question.__name__} with these arguments")
        answer = ask(tx, question, constants(tx, question, [*args, *kwargs.values()], {}))
        about = _type(tx) if kind is None else kind
        if about is not None:
            guard_read(tx, name, (about,))
        return ConstantVariable(answer)


def _setter(setter: Callable[..., Any], kind: str | None) -> None:
    torch.fx.node.has_side_effect(setter)

    @rule(setter)
    def change(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        values = constants(tx, setter, args, kwargs)
        about = _type(tx) if kind is None else kind
        if about is None:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{setter.__name__} without an accelerator")
        key = Key("current device", about)
        before = key.get()
        guard_read(tx, "current device", (about,))
        try:
            setter(*values)
        except (AssertionError, TypeError, RuntimeError, ValueError) as error:
            tx.fails(setter.__name__, error)
        finally:
            key.put(before)  # the trace does it once more, and in the graph
        if tx.code not in BLOCKS:
            tx.trace.sets_device = tx.trace.sets_device or tx.trace.root_index
        return ConstantVariable(tx.call_state(setter, values, key))


def _block(manager: Any) -> None:
    """A class of context managers that change the current device and change it back, whatever exception they get."""
    enter, leave = (getattr(manager, name, None) for name in ("__enter__", "__exit__"))
    if isinstance(enter, types.FunctionType) and isinstance(leave, types.FunctionType):
        BLOCKS.update((enter.__code__, leave.__code__))


BLOCKS: set[types.CodeType] = set()


def know_accelerator() -> None:
    """Rows for the functions of the accelerator's own module, once there is one."""
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None or accelerator.type in _known:
        return
    _known.add(accelerator.type)
    module = torch.get_device_module(accelerator)
    for attribute, name in QUESTIONS.items():
        _row(getattr(module, attribute, None), partial(_question, name=name, kind=accelerator.type))
    for attribute in SETTERS:
        _row(getattr(module, attribute, None), partial(_setter, kind=accelerator.type))
    _block(getattr(module, "device", None))
    attribute = f"is_{accelerator.type}"
    made = getattr(inspect.getattr_static(torch.Tensor, attribute, None), "fget", None)
    if (
        getattr(made, "__module__", None) == BY_TORCH
    ):  # `tensor.is_openreg`, as torch makes it for a device with a name
        CONSTANT_ATTRIBUTES.setdefault(attribute, lambda x: x.device.type == accelerator.type)


BY_TORCH = "torch.utils.backend_registration"


def _row(fn: Any, make: Callable[[Any], None]) -> None:
    if fn is not None and fn not in RULES:
        make(fn)


_known: set[str] = set()
for _attribute, _name in OF_ACCELERATOR.items():
    _row(getattr(torch.accelerator, _attribute, None), partial(_question, name=_name))
_block(getattr(torch.accelerator, "device_index", None))
for _module, _attribute in ACCELERATOR_SETTERS:
    _row(getattr(_module, _attribute, None), partial(_setter, kind=None))
