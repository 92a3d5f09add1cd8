"""How torch's elementwise operators choose shape, strides and dtype of their result.

Counterpart: ATen's TensorIterator (shape, stride order) and `torch.result_type` (type promotion). Everything
here works on plain tuples, so that one trip through the algorithm serves every later call with the same
shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from minidynamo.graph.meta_rules import NUMBERS, fresh, need_tensor, wants_grad
from minidynamo.graph.meta_value import Decline, Shape, TensorMeta, contiguous_strides, is_contiguous

Layout = tuple[Shape, Shape]  # shape and strides of one operand


@lru_cache(maxsize=4096)
def broadcast(*shapes: Shape) -> Shape:
    """The common shape of the operands; declines where they do not broadcast."""
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for axis, size in enumerate(shape, ndim - len(shape)):
            if size != 1:
                if result[axis] != 1 and result[axis] != size:
                    raise Decline
                result[axis] = size
    return tuple(result)


@lru_cache(maxsize=4096)
def is_channels_last(shape: Shape, stride: Shape) -> bool:
    """`is_contiguous(memory_format=channels_last)` (4 dimensions) or channels_last_3d (5)."""
    order = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}.get(len(shape))
    if order is None or len(stride) != len(shape):
        return False
    step = 1
    for axis in order:
        if shape[axis] != 1:
            if stride[axis] != step:
                return False
            step *= shape[axis]
    return True


@lru_cache(maxsize=4096)
def suggests_channels_last(shape: Shape, stride: Shape) -> bool:
    """Whether operators take the tensor for a channels-last one (`suggest_memory_format`).

    Stricter than `is_channels_last` where dimensions of one element leave it open, and also true of slices.
    """
    order = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}.get(len(shape))
    if order is None or stride[1] == 0 or 0 in shape:
        return False
    least = 0
    for axis in order:
        if stride[axis] < least or axis == 0 and least == stride[1]:
            return False
        least = stride[axis] * max(shape[axis], 1)
    return True


def suggested_strides(shape: Shape, *operands: Layout) -> Shape:
    """The strides of a result that is channels-last if one of the operands suggests so, else contiguous."""
    if any(suggests_channels_last(*operand) for operand in operands):
        return channels_last_strides(shape)
    return contiguous_strides(shape)


def channels_last_strides(shape: Shape) -> Shape:
    """The strides of a freshly made channels-last tensor of 4 or 5 dimensions."""
    order = (1, 3, 2, 0) if len(shape) == 4 else (1, 4, 3, 2, 0)
    strides, step = [0] * len(shape), 1
    for axis in order:
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


@lru_cache(maxsize=4096)
def is_dense(shape: Shape, stride: Shape) -> bool:
    """Whether some order of the dimensions makes the tensor contiguous (non-overlapping and dense)."""
    if is_contiguous(shape, stride) or is_channels_last(shape, stride):
        return True
    step = 1
    for have, size in sorted((st, sz) for sz, st in zip(shape, stride, strict=True) if sz > 1):
        if have != step:
            return False
        step *= size
    return True


def _walk_order(shape: Shape, strides: Sequence[Sequence[int]]) -> list[int]:
    """Dimensions from the fastest to the slowest: row-major, changed only where some operand's strides say
    otherwise.

    The first operand that has an opinion on a pair of dimensions wins; broadcast dimensions (stride 0) have
    none.
    """

    def verdict(inner: int, outer: int) -> int:
        for stride in strides:
            a, b = stride[inner], stride[outer]
            if a == 0 or b == 0:
                continue
            if a != b:
                return -1 if a < b else 1
            if shape[inner] > shape[outer]:
                return 1
        return 0

    order = list(range(len(shape) - 1, -1, -1))
    for position in range(1, len(order)):
        moving = position
        for other in range(position - 1, -1, -1):
            answer = verdict(order[other], order[moving])
            if answer > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif answer < 0:
                break
    return order


@lru_cache(maxsize=4096)
def preserved_strides(shape: Shape, stride: Shape) -> Shape:
    """Strides of a copy with memory_format=torch.preserve_format: the same if dense, else dense in the same
    order.
    """
    if is_dense(shape, stride):
        return stride
    result, step = [0] * len(shape), 1
    for axis in _walk_order(shape, (stride,)):
        result[axis] = step
        step *= max(shape[axis], 1)
    return tuple(result)


@lru_cache(maxsize=8192)
def iterator_layout(operands: tuple[Layout, ...]) -> Layout:
    """Shape and strides of the result of an elementwise operator over operands in argument order."""
    shape = broadcast(*(operand[0] for operand in operands))
    if all(operand[0] == shape for operand in operands):
        if all(is_contiguous(*operand) for operand in operands):
            return shape, contiguous_strides(shape)
        if all(is_channels_last(*operand) for operand in operands):
            return shape, channels_last_strides(shape)
        strides = operands[-1][1]
        if all(is_dense(*operand) and operand[1] == strides for operand in operands):
            return shape, strides
    ndim = len(shape)
    expanded = []
    for have, stride in operands:
        missing = ndim - len(have)
        expanded.append(
            [0] * missing
            + [
                0 if size == 1 and shape[axis] != 1 else step
                for axis, (size, step) in enumerate(zip(have, stride, strict=True), missing)
            ]
        )
    order = _walk_order(shape, expanded)
    if all(axis == ndim - 1 - position for position, axis in enumerate(order)):
        return shape, contiguous_strides(shape)
    result, step = [0] * ndim, 1
    for axis in order:
        result[axis] = step
        step *= shape[axis]
    return shape, tuple(result)


def scalar_dtype(value: Any) -> torch.dtype:
    """The dtype that a Python number has as an operand."""
    kind = type(value)
    if kind is bool:
        return torch.bool
    if kind is int:
        if not -(2**63) <= value < 2**63:
            raise Decline
        return torch.int64
    if kind is float:
        return torch.get_default_dtype()
    return complex_of(torch.get_default_dtype())


_COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64, torch.float16: torch.complex32}
_REAL = {complex_dtype: real for real, complex_dtype in _COMPLEX.items()}


def complex_of(dtype: torch.dtype) -> torch.dtype:
    """The complex dtype over a real floating dtype; declines for those that have none of their own."""
    if dtype.is_complex:
        return dtype
    if dtype not in _COMPLEX:
        raise Decline
    return _COMPLEX[dtype]


def real_of(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the absolute value."""
    return _REAL.get(dtype, dtype)


def _outranked(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    """A dtype of more weight against one of less: the lower one only counts if it is of a higher category."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return complex_of(higher) if lower.is_complex else higher
    if higher is torch.bool or lower.is_floating_point or lower.is_complex:
        return torch.promote_types(higher, lower)
    return higher


def _merge(known: torch.dtype | None, dtype: torch.dtype) -> torch.dtype:
    if known is None or known is dtype:
        return dtype
    try:
        return torch.promote_types(known, dtype)
    except (RuntimeError, TypeError):
        raise Decline from None


def result_dtype(*operands: Any) -> torch.dtype:
    """torch.result_type for any number of operands: tensors outrank 0-dim tensors, which outrank Python
    numbers.
    """
    with_dims: torch.dtype | None = None
    zero_dim: torch.dtype | None = None
    number: torch.dtype | None = None
    for operand in operands:
        if type(operand) is TensorMeta:
            if operand.shape:
                with_dims = _merge(with_dims, operand.dtype)
            else:
                zero_dim = _merge(zero_dim, operand.dtype)
        elif type(operand) in NUMBERS:
            number = _merge(number, scalar_dtype(operand))
        else:
            raise Decline
    if zero_dim is None and number is None and with_dims is not None:
        return with_dims
    result = _outranked(with_dims, _outranked(zero_dim, number))
    if result is None:
        raise Decline
    return result


def floating(dtype: torch.dtype) -> torch.dtype:
    """The dtype of a float-valued operator on operands of this dtype: integers become the default dtype."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


_SCALAR_LAYOUT: Layout = ((), ())


def operand_layouts(operands: Sequence[Any]) -> tuple[tuple[Layout, ...], torch.device]:
    """Layouts of the operands (a Python number is a 0-dim tensor) and the device of the tensors."""
    device: torch.device | None = None
    layouts = []
    for operand in operands:
        if type(operand) in NUMBERS:
            layouts.append(_SCALAR_LAYOUT)
            continue
        tensor = need_tensor(operand)
        if device is None:
            device = tensor.device
        elif tensor.device != device:
            raise Decline
        layouts.append((tensor.shape, tensor.stride))
    if device is None:
        raise Decline
    return tuple(layouts), device


def elementwise(
    grad_mode: bool, operands: Sequence[Any], dtype: torch.dtype, has_gradient: bool = True
) -> TensorMeta:
    """The result of an elementwise operator of result type `dtype` over tensors and Python numbers."""
    layouts, device = operand_layouts(operands)
    shape, stride = iterator_layout(layouts)
    return fresh(shape, dtype, device, has_gradient and wants_grad(grad_mode, *operands), stride)


def in_place(grad_mode: bool, target: Any, others: Sequence[Any], dtype: torch.dtype) -> TensorMeta:
    """The target of an in-place operator whose result type is `dtype`: its own metadata, perhaps with a new
    history.

    Declines where torch raises: operands that do not broadcast to the target, a result type that cannot be
    stored, elements that share memory, a leaf that requires a gradient.
    """
    target = need_tensor(target)
    layouts, _ = operand_layouts((target, *others))
    if broadcast(*(layout[0] for layout in layouts)) != target.shape or not torch.can_cast(
        dtype, target.dtype
    ):
        raise Decline
    if any(step == 0 and size > 1 for size, step in zip(target.shape, target.stride, strict=True)):
        raise Decline
    if grad_mode and target.requires_grad and target.is_leaf:
        raise Decline
    return written(grad_mode, target, others)


def written(grad_mode: bool, target: TensorMeta, others: Sequence[Any]) -> TensorMeta:
    """The target after a write of the others into it: with a history if one of them has one."""
    if (
        target.requires_grad
        or not wants_grad(grad_mode, *others)
        or not fresh((), target.dtype, target.device, True).requires_grad
    ):
        return target
    return fresh(target.shape, target.dtype, target.device, True, target.stride)


def numel(shape: Shape) -> int:
    """Number of elements of a shape."""
    return math.prod(shape)
