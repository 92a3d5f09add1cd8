"""Metadata rules of operators that make, copy and convert tensors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from minidynamo.graph.meta_iterator import channels_last_strides, is_channels_last, preserved_strides
from minidynamo.graph.meta_rules import (
    NUMBERS,
    differentiable,
    fresh,
    is_tensor,
    meta_rule,
    named,
    need_sizes,
    need_tensor,
    view_of,
    wants_grad,
)
from minidynamo.graph.meta_value import (
    Decline,
    MutatesMeta,
    Shape,
    TensorMeta,
    contiguous_strides,
    is_contiguous,
)
from minidynamo.guards.state_reads import UNNUMBERED, default_device, is_one_device

# --- copies and conversions ---------------------------------------------------------------------------------


def in_format(shape: Shape, stride: Shape, memory_format: Any) -> Shape:
    """The strides of a copy of (shape, stride) in a memory format."""
    if memory_format is torch.preserve_format:
        return preserved_strides(shape, stride)
    if memory_format is torch.contiguous_format:
        return contiguous_strides(shape)
    if (memory_format, len(shape)) in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
        return channels_last_strides(shape)
    raise Decline


@meta_rule(*named("clone"))
def clone(grad_mode: bool, input: Any, *, memory_format: Any = torch.preserve_format) -> TensorMeta:
    """clone(memory_format)."""
    x = need_tensor(input)
    return fresh(
        x.shape, x.dtype, x.device, wants_grad(grad_mode, x), in_format(x.shape, x.stride, memory_format)
    )


@meta_rule(("method", "contiguous"))
def contiguous(grad_mode: bool, input: Any, memory_format: Any = torch.contiguous_format) -> TensorMeta:
    """contiguous(memory_format): the input itself if it is so already."""
    x = need_tensor(input)
    if memory_format is torch.contiguous_format:
        already = is_contiguous(x.shape, x.stride)
    else:
        already = is_channels_last(x.shape, x.stride)
    stride = in_format(x.shape, x.stride, memory_format)
    return x if already else fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x), stride)


@meta_rule(*named("detach"))
def detach(grad_mode: bool, input: Any) -> TensorMeta:
    """detach(): a view without history."""
    x = need_tensor(input)
    return replace(fresh(x.shape, x.dtype, x.device, False, x.stride), is_inference=x.is_inference)


@meta_rule(("method", "requires_grad_"))
def requires_grad_(grad_mode: bool, input: Any, requires_grad: bool = True) -> TensorMeta:
    """requires_grad_(flag): nothing happens if the flag is so already."""
    x = need_tensor(input)
    if x.requires_grad == requires_grad:
        return x
    if not x.is_leaf or x.is_inference or requires_grad and not differentiable(x.dtype):
        raise Decline
    after = TensorMeta(x.shape, x.stride, x.dtype, x.device, requires_grad, x.layout, True, x.is_parameter)
    raise MutatesMeta("requires_grad_ changes requires_grad of its tensor", ((x, after),))


def convert(
    grad_mode: bool,
    input: Any,
    dtype: torch.dtype | None,
    device: torch.device | None,
    copy: Any = False,
    memory_format: Any = torch.preserve_format,
) -> TensorMeta:
    """The input itself if nothing changes, else a copy."""
    x = need_tensor(input)
    if memory_format is None:
        memory_format = torch.preserve_format
    if memory_format is not torch.preserve_format and (
        memory_format is not torch.contiguous_format or x.ndim in (4, 5)
    ):
        raise Decline
    same_place = device is None or device == x.device
    if (dtype is None or dtype is x.dtype) and same_place and not copy:
        return x
    return fresh(
        x.shape,
        dtype or x.dtype,
        device or x.device,
        wants_grad(grad_mode, x),
        in_format(x.shape, x.stride, memory_format),
    )


def need_device(device: Any) -> torch.device | None:
    """A device argument; only those that name exactly one device: the CPU, meta, or a type with an index. A tensor's own
    device has no index on the first two."""
    if device is None:
        return None
    if type(device) is str:
        try:
            device = torch.device(device)
        except RuntimeError:
            raise Decline from None
    if type(device) is not torch.device or not is_one_device(device):
        raise Decline
    return torch.device(device.type) if device.type in UNNUMBERED else device


@meta_rule(("method", "to"))
def to(grad_mode: bool, input: Any, *args: Any, **kwargs: Any) -> TensorMeta:
    """to(dtype), to(device), to(device, dtype), to(other)."""
    rest = list(args)
    dtype = kwargs.pop("dtype", None)
    device = kwargs.pop("device", None)
    other = kwargs.pop("other", None)
    if rest and is_tensor(rest[0]):
        other = rest.pop(0)
    if other is not None:
        dtype, device = need_tensor(other).dtype, other.device
    elif rest and type(rest[0]) in (str, torch.device):
        device = rest.pop(0)
        if rest and (type(rest[0]) is torch.dtype or rest[0] is None):
            dtype = rest.pop(0)
    elif rest and type(rest[0]) is torch.dtype:
        dtype = rest.pop(0)
    for name in ("non_blocking", "copy"):
        if rest:
            kwargs[name] = rest.pop(0)
    if (
        rest
        or set(kwargs) - {"non_blocking", "copy", "memory_format"}
        or (dtype is not None and type(dtype) is not torch.dtype)
    ):
        raise Decline
    place = need_device(device)
    return convert(
        grad_mode,
        input,
        dtype,
        place,
        kwargs.get("copy", False),
        kwargs.get("memory_format", torch.preserve_format),
    )


@meta_rule(("method", "type_as"))
def type_as(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """type_as(other)."""
    return convert(grad_mode, input, need_tensor(other).dtype, other.device)


@meta_rule(("method", "cpu"))
def cpu(grad_mode: bool, input: Any, memory_format: Any = torch.preserve_format) -> TensorMeta:
    """cpu()."""
    return convert(grad_mode, input, None, torch.device("cpu"), False, memory_format)


CONVERSIONS = {
    "float": torch.float32,
    "double": torch.float64,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "long": torch.int64,
    "int": torch.int32,
    "short": torch.int16,
    "char": torch.int8,
    "byte": torch.uint8,
    "bool": torch.bool,
}


def _conversion(dtype: torch.dtype) -> Any:
    def rule(grad_mode: bool, input: Any, memory_format: Any = torch.preserve_format) -> TensorMeta:
        return convert(grad_mode, input, dtype, None, False, memory_format)

    return rule


for _name, _dtype in CONVERSIONS.items():
    meta_rule(("method", _name))(_conversion(_dtype))


@meta_rule(("method", "type"))
def type_(grad_mode: bool, input: Any, dtype: Any, non_blocking: bool = False) -> TensorMeta:
    """type(dtype); the forms with a name or without argument are declined."""
    if type(dtype) is not torch.dtype:
        raise Decline
    return convert(grad_mode, input, dtype, None)


# --- factories ----------------------------------------------------------------------------------------------


def made(
    shape: Shape,
    dtype: Any,
    device: Any,
    layout: Any,
    requires_grad: Any,
    pin_memory: Any = False,
    stride: Shape | None = None,
) -> TensorMeta:
    """A new leaf. Without a device it lies on the default one."""
    place = need_device(default_device() if device is None else device)
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if (
        type(dtype) is not torch.dtype
        or layout not in (None, torch.strided)
        or pin_memory
        or type(requires_grad) is not bool
    ):
        raise Decline
    if requires_grad and not differentiable(dtype) or any(size < 0 for size in shape):
        raise Decline
    tensor = fresh(shape, dtype, place, False, stride)
    return replace(tensor, requires_grad=True) if requires_grad else tensor


@meta_rule(torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn)
def zeros(
    grad_mode: bool,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
) -> TensorMeta:
    """zeros, ones, empty, rand, randn of given sizes."""
    return made(need_sizes(size), dtype, device, layout, requires_grad, pin_memory)


def dtype_of_number(value: Any) -> torch.dtype:
    """The dtype that full() and tensor() give to a Python number."""
    if type(value) not in NUMBERS:
        raise Decline
    if type(value) is complex:
        raise Decline
    return {bool: torch.bool, int: torch.int64}.get(type(value), torch.get_default_dtype())


@meta_rule(torch.full)
def full(
    grad_mode: bool,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
) -> TensorMeta:
    """full(size, number)."""
    return made(
        need_sizes((size,)), dtype or dtype_of_number(fill_value), device, layout, requires_grad, pin_memory
    )


@meta_rule(torch.eye)
def eye(
    grad_mode: bool,
    n: Any,
    m: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
) -> TensorMeta:
    """eye(n, m)."""
    return made(need_sizes((n, n if m is None else m)), dtype, device, layout, requires_grad)


@meta_rule(torch.arange)
def arange(
    grad_mode: bool,
    *bounds: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
) -> TensorMeta:
    """arange(end), arange(start, end), arange(start, end, step) of Python numbers given by position."""
    if not 1 <= len(bounds) <= 3 or any(type(bound) not in (int, float) for bound in bounds):
        raise Decline
    start, end = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) == 3 else 1
    if dtype is None:
        dtype = torch.int64 if all(type(bound) is int for bound in bounds) else torch.get_default_dtype()
    if not step or not all(math.isfinite(bound) for bound in bounds) or (end - start) * step < 0:
        raise Decline
    if all(type(bound) is int for bound in bounds):
        count = -((start - end) // step)
    elif dtype in (torch.float32, torch.float64):
        count = math.ceil((end - start) / step)
    else:
        raise Decline
    return made((count,), dtype, device, layout, requires_grad, pin_memory)


@meta_rule(torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like, torch.randn_like)
def zeros_like(
    grad_mode: bool,
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
    memory_format: Any = torch.preserve_format,
) -> TensorMeta:
    """*_like(input): its layout, a new leaf."""
    x = need_tensor(input)
    stride = in_format(x.shape, x.stride, memory_format)
    return made(x.shape, dtype or x.dtype, device or x.device, layout, requires_grad, pin_memory, stride)


@meta_rule(torch.full_like)
def full_like(grad_mode: bool, input: Any, fill_value: Any, **kwargs: Any) -> TensorMeta:
    """full_like(input, number)."""
    if type(fill_value) not in (int, float, bool):
        raise Decline
    return zeros_like(grad_mode, input, **kwargs)


@meta_rule(("method", "new_zeros"), ("method", "new_ones"), ("method", "new_empty"))
def new_zeros(
    grad_mode: bool,
    input: Any,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
) -> TensorMeta:
    """new_zeros(size), new_ones, new_empty: dtype and device of the input."""
    x = need_tensor(input)
    return made(need_sizes(size), dtype or x.dtype, device or x.device, layout, requires_grad, pin_memory)


@meta_rule(("method", "new_full"))
def new_full(grad_mode: bool, input: Any, size: Any, fill_value: Any, **kwargs: Any) -> TensorMeta:
    """new_full(size, number)."""
    if type(fill_value) not in (int, float, bool):
        raise Decline
    return new_zeros(grad_mode, input, size, **kwargs)


@meta_rule(torch.linspace)
def linspace(
    grad_mode: bool,
    start: Any,
    end: Any,
    steps: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: Any = False,
) -> TensorMeta:
    """linspace between Python numbers."""
    if type(start) not in (int, float) or type(end) not in (int, float):
        raise Decline
    return made(need_sizes((steps,) if type(steps) is int else ()), dtype, device, layout, requires_grad)


def _nested_shape(data: Any) -> tuple[Shape, set[type]]:
    """Shape of nested sequences of Python numbers, and the types of the numbers."""
    if type(data) in (bool, int, float):
        return (), {type(data)}
    if type(data) not in (list, tuple):
        raise Decline
    shapes, kinds = set(), set()
    for item in data:
        shape, found = _nested_shape(item)
        shapes.add(shape)
        kinds |= found
    if len(shapes) > 1:
        raise Decline
    return (len(data), *(shapes.pop() if shapes else ())), kinds


@meta_rule(torch.tensor)
def tensor(
    grad_mode: bool,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
) -> TensorMeta:
    """torch.tensor of nested Python numbers."""
    shape, kinds = _nested_shape(data)
    if dtype is None:
        dtype = torch.int64 if int in kinds else torch.bool if bool in kinds else None
        dtype = None if float in kinds else dtype
    return made(shape, dtype, device, None, requires_grad, pin_memory)


@meta_rule(torch.as_tensor)
def as_tensor(grad_mode: bool, data: Any, *, dtype: Any = None, device: Any = None) -> TensorMeta:
    """as_tensor: a tensor is converted, Python numbers are copied."""
    if is_tensor(data):
        if device is None and torch._C._len_torch_function_stack():
            device = default_device()
        return convert(grad_mode, data, dtype, need_device(device))
    return tensor(grad_mode, data, dtype=dtype, device=device)


@meta_rule(torch.bernoulli)
def bernoulli(grad_mode: bool, input: Any) -> TensorMeta:
    """bernoulli(input) of contiguous probabilities."""
    x = need_tensor(input)
    if not x.is_contiguous or not x.dtype.is_floating_point:
        raise Decline
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x), x.stride)


@meta_rule(*named("view_as_real"))
def view_as_real(grad_mode: bool, input: Any) -> TensorMeta:
    """view_as_real of complex64 and complex128."""
    x = need_tensor(input)
    real = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(x.dtype)
    if real is None:
        raise Decline
    return view_of(grad_mode, x, (*x.shape, 2), (*(step * 2 for step in x.stride), 1), real)
