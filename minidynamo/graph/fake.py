"""Tier 2 of metadata: run the operator on fake tensors. Costs about a second once (sympy), so it starts at
first need.

One FakeTensorMode serves the process. Running an operator leaves no trace: grad mode, random numbers and
warnings are as they were; results are cached by the operator, the structure and metadata of its arguments,
and the global state they depend on.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from minidynamo.graph.meta_value import (
    MetaError,
    MutatesMeta,
    NeedsData,
    OpFailed,
    Result,
    TensorMeta,
    Unknown,
    named,
)
from minidynamo.guards.state_reads import current_device

_CACHE_SIZE = 4096
_REAL_RUN_BYTES = 1 << 24

_cache: OrderedDict[Hashable, tuple[str, Any]] = OrderedDict()
_lock = threading.RLock()
_mode: Any = None


def mode() -> Any:
    """The process's FakeTensorMode for tier 2 (made at the first call)."""
    global _mode
    if _mode is None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        _mode = FakeTensorMode()
    return _mode


def rebuild(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """A copy of a tree of tuples, lists, dicts and slices with `leaf` applied to everything else.

    Named tuples, torch.return_types and torch.Size keep their type; torch.fx's own lists and dicts become plain ones.
    """
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind([rebuild(item, leaf) for item in tree])
    if kind is immutable_list:
        return [rebuild(item, leaf) for item in tree]
    if kind is dict or kind is immutable_dict:
        return {key: rebuild(item, leaf) for key, item in tree.items()}
    if kind is slice:
        return slice(rebuild(tree.start, leaf), rebuild(tree.stop, leaf), rebuild(tree.step, leaf))
    if kind is torch.Size:
        return tree
    if isinstance(tree, tuple):
        items = [rebuild(item, leaf) for item in tree]
        return kind(*items) if hasattr(kind, "_make") else kind(items)
    return leaf(tree)


class _Uncacheable(Exception):
    """An argument has no value that could be compared later."""


_VALUES = (
    bool,
    int,
    str,
    bytes,
    type(None),
    type(...),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    TensorMeta,
)


def _frozen(value: Any) -> Hashable:
    """A hashable value equal only for equal arguments: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    kind = type(value)
    if kind in _VALUES:
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)
    if kind is dict:
        return kind, tuple((key, _frozen(item)) for key, item in value.items())
    if kind is slice:
        return kind, _frozen(value.start), _frozen(value.stop), _frozen(value.step)
    if isinstance(value, (tuple, list)):
        return kind, tuple(map(_frozen, value))
    raise _Uncacheable


def _state() -> Hashable:
    """Global state on which the metadata of results can depend."""
    device = torch.get_default_device()
    accelerator = torch.accelerator.current_accelerator()
    autocast: Hashable = None
    if torch._C._is_any_autocast_enabled():
        autocast = tuple(
            (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in {"cpu", "cuda", accelerator.type if accelerator is not None else "cpu"}
        )
    fused = (
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        torch._C._get_math_sdp_enabled(),
    )
    inference = torch.is_inference_mode_enabled()
    current = None
    if accelerator is not None and torch.get_device_module(accelerator).is_initialized():
        current = current_device(accelerator.type)
    return (
        torch.get_default_dtype(),
        device,
        autocast,
        torch.are_deterministic_algorithms_enabled(),
        fused,
        inference,
        current,
    )


def call(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operator: a callable, or ("method", name) on its first argument."""
    if type(op) is tuple:
        return getattr(args[0], op[1])(*args[1:], **kwargs)
    return op(*args, **kwargs)


def run(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool) -> Result:
    """Metadata of the result, from the cache or from fake tensors. Raises MetaError; see `infer`."""
    try:
        key: Hashable = (op, _frozen(args), _frozen(kwargs), grad_mode, _state())
        hash(key)
    except (_Uncacheable, TypeError):
        key = None
    with _lock:
        if key is not None and key in _cache:
            _cache.move_to_end(key)
            kind, value = _cache[key]
        else:
            kind, value = _outcome(op, args, kwargs, grad_mode)
            if key is not None:
                _cache[key] = (kind, value)
                if len(_cache) > _CACHE_SIZE:
                    _cache.popitem(last=False)
    if kind == "failed":
        raise _copy(value)
    return value


def _copy(error: MetaError) -> MetaError:
    """A new exception like a cached one, without its traceback."""
    if isinstance(error, OpFailed):
        error.exception.__context__ = None  # frames behind it hold tensors
        return OpFailed(error.exception.with_traceback(None))
    if isinstance(error, MutatesMeta):
        return MutatesMeta(str(error), error.after)
    return type(error)(*error.args)


def _outcome(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool) -> tuple[str, Any]:
    try:
        return "result", _on_fakes(op, args, kwargs, grad_mode)
    except MetaError as error:
        return "failed", _copy(error)


@contextmanager
def undisturbed(grad_mode: bool, arguments: Any) -> Iterator[None]:
    """Run with the given grad mode; generators (also those in arguments) and warnings are then as before."""
    generators = [torch.default_generator]
    rebuild(arguments, lambda value: generators.append(value) if type(value) is torch.Generator else None)
    states = [generator.get_state() for generator in generators]
    log = logging.getLogger("torch._subclasses.fake_tensor")
    silent = log.disabled
    log.disabled = True  # it would print the traceback of an error that is an answer here
    try:
        with warnings.catch_warnings(), torch.set_grad_enabled(grad_mode):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.disabled = silent
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def _on_fakes(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool) -> Result:
    fake_mode = mode()
    inputs: list[tuple[TensorMeta, torch.Tensor]] = []

    def make(value: Any) -> Any:
        if type(value) is not TensorMeta:
            return value
        tensor = value.make_empty()
        inputs.append((value, tensor))
        return tensor

    try:
        with undisturbed(grad_mode, (args, kwargs)), fake_mode, passing(op):
            fake_args, fake_kwargs = rebuild(args, make), rebuild(kwargs, make)
            before = [_shown(tensor) for _, tensor in inputs]
            result = call(op, fake_args, fake_kwargs)
            result = _described(op, result, inputs)
            _check_unchanged(op, result, inputs, before)
    except Exception as error:  # whatever the operator raises is the answer
        raise _failure(error, op, args, kwargs, grad_mode) from None
    return result


#: Operators that look at data in order to refuse some, and at nothing else.
CHECK_DATA = frozenset({torch.istft, ("method", "istft")})


def passing(op: Any) -> AbstractContextManager[Any]:
    """What lets such an operator run on fake tensors: no tensor is equal to what it refuses."""
    if op not in CHECK_DATA:
        return nullcontext()
    from torch.utils._python_dispatch import TorchDispatchMode

    class Passing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return False if func is torch.ops.aten.equal.default else func(*args, **(kwargs or {}))

    return Passing()


def _shown(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What an operator could change about a tensor besides its data."""
    offset = tensor.storage_offset() if tensor.layout is torch.strided else 0
    return TensorMeta.of(tensor), offset


def _described(op: Any, result: Any, inputs: list[tuple[TensorMeta, torch.Tensor]]) -> Result:
    """The result with TensorMeta for tensors; an argument that is returned unchanged gives its own
    TensorMeta.
    """

    def describe(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return described_constant(op, value)
        if not is_plain(value):
            raise Unknown(f"{name_of(op)} gives a {type(value).__name__}, which is no plain tensor")
        meta = TensorMeta.of(value)
        for given, tensor in inputs:
            if value is tensor and given == meta:
                return given
        return meta

    return rebuild(result, describe)


def described_constant(op: Any, value: Any) -> Any:
    """A result that is no tensor. Raises NeedsData, Unknown."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise NeedsData(f"{name_of(op)} gives a number that depends on data")
    if type(value) in _CONSTANTS:
        return value
    raise Unknown(f"{name_of(op)} gives a {type(value).__name__}, which metadata cannot describe")


def is_plain(value: torch.Tensor) -> bool:
    """Whether a result is a tensor of no subclass, real or fake."""
    from torch._subclasses.fake_tensor import FakeTensor

    return type(value) in (torch.Tensor, torch.nn.Parameter, FakeTensor)


_CONSTANTS = (
    bool,
    int,
    float,
    complex,
    str,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    torch.Size,
)


def _check_unchanged(
    op: Any, result: Result, inputs: list[tuple[TensorMeta, torch.Tensor]], before: list[tuple[Any, ...]]
) -> None:
    """Raise MutatesMeta if an input is not what it was. A history that a returned input gains is no such
    change.
    """
    after = []
    for (given, tensor), old in zip(inputs, before, strict=True):
        new = _shown(tensor)
        gained = new[0].requires_grad and not old[0].requires_grad and _but_history(new) == _but_history(old)
        if new == old or (gained and result == new[0]):
            continue
        after.append((given, new[0]))
    if after:
        raise MutatesMeta(f"{name_of(op)} changes the metadata of its argument", tuple(after))


def _but_history(shown: tuple[Any, ...]) -> tuple[Any, ...]:
    meta, offset = shown
    return meta.shape, meta.stride, meta.dtype, meta.device, meta.layout, offset


def name_of(op: Any) -> str:
    """An operator's name for messages."""
    if type(op) is tuple:
        return f"Tensor.{op[1]}"
    return f"{getattr(op, '__module__', None) or 'torch'}.{getattr(op, '__name__', repr(op))}"


def _failure(
    error: Exception, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool
) -> MetaError:
    """What an exception out of a fake run means for the real operator."""
    from torch._subclasses import fake_tensor

    if isinstance(error, MetaError):
        return error
    if isinstance(error, (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException)):
        return NeedsData(f"{name_of(op)} depends on the data of a tensor")
    real = on_real(op, args, kwargs, grad_mode)
    if isinstance(real, OpFailed):
        return real
    if real is not None:
        return Unknown(f"{name_of(op)} cannot run on fake tensors: {type(error).__name__}: {error}")
    unsupported = (
        fake_tensor.UnsupportedOperatorException,
        fake_tensor.UnsupportedFakeTensorException,
        NotImplementedError,
    )
    if isinstance(error, unsupported):
        return Unknown(f"{name_of(op)} cannot run on fake tensors: {type(error).__name__}: {error}")
    return OpFailed(error)


class Described:
    """The result of a real run, told apart from None."""

    __slots__ = ("result",)

    def __init__(self, result: Result) -> None:
        self.result = result


_DRAWS_NOTHING = ("cpu", "meta")  # an accelerator's random numbers must not be drawn for a look


def on_real(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grad_mode: bool
) -> Described | OpFailed | None:
    """Run on small real CPU tensors of zeros: what the operator gives or raises. None: too large, or not on
    the CPU.

    This is the referee where fake tensors fail: their error may be their own, and its wording often is.
    """
    if torch.get_default_device().type not in _DRAWS_NOTHING:
        return None
    total = 0
    inputs: list[tuple[TensorMeta, torch.Tensor]] = []

    def measure(value: Any) -> Any:
        nonlocal total
        if type(value) is TensorMeta:
            total += value.numel * value.dtype.itemsize if value.device.type == "cpu" else _REAL_RUN_BYTES + 1
        elif (device := named(value)) is not None and device.type not in _DRAWS_NOTHING:
            total = _REAL_RUN_BYTES + 1
        return value

    def make(value: Any) -> Any:
        if type(value) is not TensorMeta:
            return value
        tensor = value.make_empty()
        with torch.no_grad():
            if 0 not in value.stride:
                tensor.detach().zero_()
        inputs.append((value, tensor))
        return tensor

    rebuild((args, kwargs), measure)
    if total > _REAL_RUN_BYTES:
        return None
    try:
        real_args, real_kwargs = rebuild(args, make), rebuild(kwargs, make)
    except (RuntimeError, Unknown):
        return None
    with undisturbed(grad_mode, (args, kwargs)):
        try:
            result = call(op, real_args, real_kwargs)
        except Exception as error:  # the operator's own error is what is wanted
            return OpFailed(error)
    return Described(_described(op, result, inputs))
