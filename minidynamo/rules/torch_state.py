"""Calls that read or change torch's state: changes are made while tracing too and are nodes of the graph; what is read is a
constant, guarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack

from ..graph.state_keys import (
    ANOMALY,
    ATTENTION,
    AUTOCAST_CACHE,
    AUTOCAST_NESTING,
    DEFAULT_DEVICE,
    DEFAULT_DTYPE,
    DETERMINISTIC,
    PRECISION,
    SET_DEVICE,
    Key,
)
from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..guards.state_reads import OTHER_MODES, STATE_READS, default_devices, is_one_device
from ..reasons import CONTEXT_STATE, GLOBAL_STATE_CALL, UNSUPPORTED_CALL
from ..sources import StateSource
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.contexts import MANAGERS, ContextVariable
from ..variables.modes import DeviceModeVariable
from ..variables.sequences import NONE, ListVariable
from .builtins import Args, positional, rule

# What the guard GLOBAL_STATE records, and what never changes.
RECORDED: tuple[Callable[..., Any], ...] = (
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.get_default_dtype,
    torch.are_deterministic_algorithms_enabled,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.get_deterministic_debug_mode,
    torch._C._is_any_autocast_enabled,
    torch._C._is_torch_function_mode_enabled,
    torch._C._is_torch_function_enabled,
    torch._C._is_autocast_available,
    torch._C._get_privateuse1_backend_name,
)
# What other rules ask.
ELSEWHERE = (
    *("autocast nesting", "default device", "registrations with abstract classes"),
    *("accelerator", "current device", "device count", "device available"),
)
# What it does not record: the name of the question in STATE_READS.
NAMES = {fn: name for name, fn in STATE_READS.items() if name not in ELSEWHERE}


def constants(
    tx: Tracing, fn: Callable[..., Any], args: Args, kwargs: dict[str, VariableTracker]
) -> tuple[Any, ...]:
    """Plain positional arguments; others are left to plain Python."""
    values = [arg.realize(tx) for arg in args]
    if kwargs or not all(value.is_python_constant() and not value.mutable for value in values):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.__name__} with these arguments")
    return tuple(value.as_python_constant() for value in values)


def ask(tx: Tracing, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The real answer; the program's own error is left to plain Python."""
    try:
        return fn(*args)
    except (AssertionError, TypeError, RuntimeError, ValueError) as error:
        tx.fails(getattr(fn, "__name__", "torch"), error)


def _recorded(question: Callable[..., Any]) -> None:
    @rule(question)
    def read(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        tx.guard_global_state()
        return ConstantVariable(ask(tx, question, constants(tx, question, args, kwargs)))


def _guarded(question: Callable[..., Any], name: str) -> None:
    @rule(question)
    def read(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        values = constants(tx, question, args, kwargs)
        answer = ask(tx, question, values)
        guard_read(tx, name, values)
        return ConstantVariable(answer)


#: The part of the state that a question is about, where captured code can change it.
ABOUT: dict[str, Callable[..., Key]] = {
    "autocast": lambda device="cuda": Key("autocast", device),
    "autocast dtype": lambda device: Key("autocast dtype", device),
    "autocast cache": lambda: AUTOCAST_CACHE,
    "autocast nesting": lambda: AUTOCAST_NESTING,
    "default device": lambda: DEFAULT_DEVICE,
    "current device": lambda kind: Key("current device", kind),
    "anomaly mode": lambda: ANOMALY,
    "anomaly check of nan": lambda: ANOMALY,
    "float32 matmul precision": lambda: PRECISION,
    **{key.name: lambda key=key: key for key in ATTENTION.values()},  # type: ignore[misc]
}


def guard_read(tx: Tracing, name: str, args: tuple[Any, ...]) -> None:
    """Guard the answer, unless it is the trace that made it so."""
    if name not in ABOUT or ABOUT[name](*args) not in tx.trace.states:
        tx.install(make_guard(StateSource(), GuardBuilder.STATE_READ, name, args))


for _fn in RECORDED:
    _recorded(_fn)
for _fn, _name in NAMES.items():
    _guarded(_fn, _name)

# What changes the state: types of the arguments, and the parts that change.
SETTERS: dict[Callable[..., Any], tuple[tuple[type, ...], Callable[..., tuple[Key, ...]]]] = {
    torch.set_autocast_enabled: ((str, bool), lambda device, value: (Key("autocast", device),)),
    torch.set_autocast_dtype: ((str, torch.dtype), lambda device, value: (Key("autocast dtype", device),)),
    torch.set_autocast_cache_enabled: ((bool,), lambda value: (AUTOCAST_CACHE,)),
    torch.autocast_increment_nesting: ((), lambda: (AUTOCAST_NESTING,)),
    torch.autocast_decrement_nesting: ((), lambda: (AUTOCAST_NESTING,)),
    torch.set_default_dtype: ((torch.dtype,), lambda dtype: (DEFAULT_DTYPE,)),
    torch.clear_autocast_cache: ((), lambda: ()),
    torch.set_anomaly_enabled: ((bool, bool), lambda mode, check_nan=True: (ANOMALY,)),
    torch._C._set_sdp_use_flash: ((bool,), lambda value: (ATTENTION["flash"],)),
    torch._C._set_sdp_use_mem_efficient: ((bool,), lambda value: (ATTENTION["memory efficient"],)),
    torch._C._set_sdp_use_math: ((bool,), lambda value: (ATTENTION["math"],)),
    torch._C._set_sdp_use_cudnn: ((bool,), lambda value: (ATTENTION["cudnn"],)),
    torch._C._set_sdp_use_overrideable: ((bool,), lambda value: (ATTENTION["overrideable"],)),
    torch.set_float32_matmul_precision: ((str,), lambda precision: (PRECISION,)),
    torch.use_deterministic_algorithms: ((bool,), lambda mode: (DETERMINISTIC,)),
}
# What decides about operators when they run: a compiled graph does not set it.
AS_IT_IS = (torch.set_float32_matmul_precision, torch.use_deterministic_algorithms, torch.set_default_dtype)
PRECISIONS = ("highest", "high", "medium")
DEFAULT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Those whose result tells what was before.
TELLING = {
    torch.autocast_increment_nesting: "autocast nesting",
    torch.autocast_decrement_nesting: "autocast nesting",
}


def _setter(setter: Callable[..., Any]) -> None:
    types, keys = SETTERS[setter]
    torch.fx.node.has_side_effect(setter)

    @rule(setter)
    def change(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        values = constants(tx, setter, args, kwargs)
        if tuple(map(type, values)) != types:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{setter.__name__} with these arguments")
        if setter is torch.set_default_dtype and values[0] not in DEFAULT_DTYPES:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{setter.__name__} with {values[0]}")
        if setter is torch.set_float32_matmul_precision and values[0] not in PRECISIONS:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{setter.__name__} with {values[0]!r}")
        if setter in AS_IT_IS and tx.trace.for_compiler:
            tx.unsupported(GLOBAL_STATE_CALL, name=f"torch.{setter.__name__}")
        for key in keys(*values):
            ask(tx, key.get, ())
        if setter in TELLING:
            guard_read(tx, TELLING[setter], ())
        return ConstantVariable(tx.call_state(setter, values, *keys(*values)))


for _fn in SETTERS:
    _setter(_fn)


# --- the default device -------------------------------------------------------------------------------------


@rule(torch.device)
def _device(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    """torch.device(type), torch.device(type, index), torch.device(device)."""
    given = dict(zip(("type", "index"), args)) | kwargs
    values = dict(zip(given, constants(tx, torch.device, list(given.values()), {})))
    known = len(given) == len(args) + len(kwargs) and set(given) <= {"type", "index"}
    if (
        not known
        or type(values.get("type")) not in (str, torch.device)
        or type(values.get("index", 0)) is not int
    ):
        tx.unsupported(UNSUPPORTED_CALL, name="torch.device with these arguments")
    return ConstantVariable(ask(tx, torch.device, tuple(values[n] for n in ("type", "index") if n in values)))


@rule(torch.get_default_device)
@positional("get_default_device", 0, 0)
def _default_device(tx: Tracing) -> VariableTracker:
    tx.guard_global_state()
    return ConstantVariable(torch.get_default_device())


torch.fx.node.has_side_effect(torch.set_default_device)


@rule(torch.set_default_device)
@positional("set_default_device", 1, 1)
def _set_default_device(tx: Tracing, device: VariableTracker) -> VariableTracker:
    """Outside of blocks of `torch.device`, whose modes would have to be left in another order."""
    (given,) = constants(tx, torch.set_default_device, [device], {})
    if given is not None and type(given) not in (str, torch.device):
        tx.unsupported(UNSUPPORTED_CALL, name="set_default_device with these arguments")
    known = None if given is None else ask(tx, torch.device, (given,))
    if known is not None and not is_one_device(known):
        tx.unsupported(CONTEXT_STATE, name="device", what=f"is {known}, whichever is the current one")
    if default_devices() != (SET_DEVICE.get() or "") or tx.trace.for_compiler:
        tx.unsupported(GLOBAL_STATE_CALL, name="torch.set_default_device")
    tx.call_state(torch.set_default_device, (None if known is None else str(known),), SET_DEVICE)
    return NONE


@rule(_get_current_function_mode_stack)
@positional("_get_current_function_mode_stack", 0, 0)
def _modes(tx: Tracing) -> VariableTracker:
    """Blocks of devices; other modes are not followed."""
    devices = default_devices()
    if devices == OTHER_MODES:
        tx.unsupported(UNSUPPORTED_CALL, name="torch.overrides._get_current_function_mode_stack")
    tx.guard_global_state()
    return ListVariable([DeviceModeVariable() for _ in devices.split(", ") if devices])


# --- managers -----------------------------------------------------------------------------------------------


def _manager(cls: type) -> None:
    row = MANAGERS[cls]
    names = tuple(row.arguments)

    @rule(cls)
    def make(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        """A manager of constants. (`inference_mode(function)` decorates, which is left to plain Python.)"""
        given = dict(zip(names, args)) | kwargs
        known = len(given) == len(args) + len(kwargs) and set(given) <= set(names)
        values = constants(tx, cls, list(given.values()), {}) if known else ()
        found = row.defaults | dict(zip(given, values))
        if not known or len(found) < len(names) or not all(type(found[n]) in row.arguments[n] for n in names):
            tx.unsupported(UNSUPPORTED_CALL, name=f"{cls.__name__} with these arguments")
        return ContextVariable(cls, tuple(found[name] for name in names))


for _cls in MANAGERS:
    _manager(_cls)


@rule(torch.inference_mode.clone, torch.autograd.profiler.record_function._recreate_cm)
@positional("clone", 1, 1)
def _clone(tx: Tracing, manager: VariableTracker) -> VariableTracker:
    if not isinstance(manager, ContextVariable):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{manager.type_name()}.clone")
    return manager.again(tx)


assert set(ABOUT) <= set(STATE_READS)
