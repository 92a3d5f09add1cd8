"""Metadata rules of views: reshaping, permuting, indexing with ints, slices, None and Ellipsis."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import Any

import torch

from minidynamo.graph.meta_iterator import broadcast, in_place, written
from minidynamo.graph.meta_rules import (
    NUMBERS,
    fresh,
    is_tensor,
    meta_rule,
    named,
    need_dim,
    need_dims,
    need_int,
    need_sizes,
    need_tensor,
    same_device,
    view_of,
)
from minidynamo.graph.meta_value import Decline, MutatesMeta, Shape, TensorMeta, contiguous_strides


@lru_cache(maxsize=4096)
def view_strides(shape: Shape, stride: Shape, wanted: Shape) -> Shape | None:
    """Strides under which the elements of (shape, stride) are seen as `wanted` without a copy; None if there
    are none.

    Old dimensions fall into chunks that can be walked with one step; each chunk must be filled exactly by new
    dimensions.
    """
    if not shape:
        return (1,) * len(wanted)
    if 0 in shape:
        return stride if shape == wanted else contiguous_strides(wanted)
    result = [0] * len(wanted)
    new = len(wanted) - 1
    base, count = stride[-1], 1
    for old in range(len(shape) - 1, -1, -1):
        count *= shape[old]
        if old and (shape[old - 1] == 1 or stride[old - 1] == count * base):
            continue
        seen = 1
        while new >= 0 and (seen < count or wanted[new] == 1):
            result[new] = seen * base
            seen *= wanted[new]
            new -= 1
        if seen != count:
            return None
        if old:
            base, count = stride[old - 1], 1
    return tuple(result) if new < 0 else None


def filled_in(wanted: Shape, count: int) -> Shape:
    """Sizes with at most one -1, which stands for whatever makes `count` elements."""
    if -1 not in wanted:
        if math.prod(wanted) != count or any(size < 0 for size in wanted):
            raise Decline
        return wanted
    rest = -math.prod(wanted)
    if rest <= 0 or count % rest or any(size < -1 for size in wanted) or wanted.count(-1) > 1:
        raise Decline
    return tuple(count // rest if size == -1 else size for size in wanted)


@meta_rule(("method", "view"))
def view(grad_mode: bool, input: Any, *shape: Any) -> TensorMeta:
    """view(sizes); view(dtype) is declined."""
    x = need_tensor(input)
    wanted = filled_in(need_sizes(shape), x.numel)
    stride = view_strides(x.shape, x.stride, wanted)
    if stride is None:
        raise Decline
    return view_of(grad_mode, x, wanted, stride)


def _reshaped(grad_mode: bool, x: TensorMeta, wanted: Shape) -> TensorMeta:
    stride = view_strides(x.shape, x.stride, wanted)
    if stride is None:
        return fresh(wanted, x.dtype, x.device, grad_mode and x.requires_grad)
    return view_of(grad_mode, x, wanted, stride)


@meta_rule(("method", "reshape"))
def reshape_method(grad_mode: bool, input: Any, *shape: Any) -> TensorMeta:
    """reshape(sizes): a view where possible, else a contiguous copy."""
    x = need_tensor(input)
    return _reshaped(grad_mode, x, filled_in(need_sizes(shape), x.numel))


@meta_rule(torch.reshape)
def reshape(grad_mode: bool, input: Any, shape: Any) -> TensorMeta:
    """torch.reshape(input, sizes)."""
    return reshape_method(grad_mode, input, shape)


@meta_rule(*named("flatten"))
def flatten(grad_mode: bool, input: Any, start_dim: Any = 0, end_dim: Any = -1) -> TensorMeta:
    """flatten(start_dim, end_dim); of a single dimension it is the input itself."""
    x = need_tensor(input)
    first, last = need_dim(start_dim, x.ndim), need_dim(end_dim, x.ndim)
    if first > last:
        raise Decline
    if not x.shape:
        return _reshaped(grad_mode, x, (1,))
    if first == last:
        return x
    return _reshaped(
        grad_mode, x, x.shape[:first] + (math.prod(x.shape[first : last + 1]),) + x.shape[last + 1 :]
    )


@meta_rule(*named("unflatten"))
def unflatten(grad_mode: bool, input: Any, dim: Any, sizes: Any) -> TensorMeta:
    """unflatten(dim, sizes)."""
    x = need_tensor(input)
    axis = need_dim(dim, x.ndim)
    inner = need_sizes((sizes,))
    if not x.shape or not inner:
        raise Decline
    return view(grad_mode, x, x.shape[:axis] + filled_in(inner, x.shape[axis]) + x.shape[axis + 1 :])


def _permuted(grad_mode: bool, x: TensorMeta, order: tuple[int, ...]) -> TensorMeta:
    return view_of(
        grad_mode, x, tuple(x.shape[axis] for axis in order), tuple(x.stride[axis] for axis in order)
    )


@meta_rule(("method", "permute"))
def permute_method(grad_mode: bool, input: Any, *dims: Any) -> TensorMeta:
    """permute(dims)."""
    x = need_tensor(input)
    order = tuple(need_dim(dim, x.ndim) for dim in need_sizes(dims))
    if sorted(order) != list(range(x.ndim)):
        raise Decline
    return _permuted(grad_mode, x, order)


@meta_rule(torch.permute)
def permute(grad_mode: bool, input: Any, dims: Any) -> TensorMeta:
    """torch.permute(input, dims)."""
    return permute_method(grad_mode, input, dims)


def _swapped(grad_mode: bool, x: TensorMeta, first: int, second: int) -> TensorMeta:
    order = list(range(x.ndim))
    order[first], order[second] = order[second], order[first]
    return _permuted(grad_mode, x, tuple(order))


@meta_rule(*named("transpose"))
def transpose(grad_mode: bool, input: Any, dim0: Any, dim1: Any) -> TensorMeta:
    """transpose(dim0, dim1)."""
    x = need_tensor(input)
    first, second = need_dim(dim0, x.ndim), need_dim(dim1, x.ndim)
    if not x.shape:
        return view_of(grad_mode, x, (), ())
    return _swapped(grad_mode, x, first, second)


@meta_rule(*named("swapaxes"))
def swapaxes(grad_mode: bool, input: Any, axis0: Any, axis1: Any) -> TensorMeta:
    """swapaxes(axis0, axis1)."""
    return transpose(grad_mode, input, axis0, axis1)


@meta_rule(*named("swapdims"))
def swapdims(grad_mode: bool, input: Any, dim0: Any, dim1: Any) -> TensorMeta:
    """swapdims(dim0, dim1)."""
    return transpose(grad_mode, input, dim0, dim1)


@meta_rule(*named("t"))
def t(grad_mode: bool, input: Any) -> TensorMeta:
    """t() of at most two dimensions."""
    x = need_tensor(input)
    if x.ndim > 2:
        raise Decline
    return _permuted(grad_mode, x, tuple(reversed(range(x.ndim))))


@meta_rule(*named("movedim", "moveaxis"))
def movedim(grad_mode: bool, input: Any, source: Any, destination: Any) -> TensorMeta:
    """movedim(source, destination): ints or sequences of the same length."""
    x = need_tensor(input)
    starts, ends = need_dims(source, x.ndim), need_dims(destination, x.ndim)
    if not x.shape or len(starts) != len(ends):
        raise Decline
    moved = dict(zip(ends, starts, strict=True))
    rest = iter([axis for axis in range(x.ndim) if axis not in starts])
    return _permuted(
        grad_mode, x, tuple(moved[axis] if axis in moved else next(rest) for axis in range(x.ndim))
    )


@meta_rule(*named("unsqueeze"))
def unsqueeze(grad_mode: bool, input: Any, dim: Any) -> TensorMeta:
    """unsqueeze(dim)."""
    x = need_tensor(input)
    axis = need_dim(dim, x.ndim + 1)
    step = x.shape[axis] * x.stride[axis] if axis < x.ndim else 1
    return view_of(
        grad_mode, x, x.shape[:axis] + (1,) + x.shape[axis:], x.stride[:axis] + (step,) + x.stride[axis:]
    )


@meta_rule(*named("squeeze"))
def squeeze(grad_mode: bool, input: Any, dim: Any = ...) -> TensorMeta:
    """squeeze(), squeeze(dim), squeeze(dims)."""
    x = need_tensor(input)
    if dim is ...:
        candidates = set(range(x.ndim))
    else:
        candidates = {need_dim(one, x.ndim) for one in ((dim,) if type(dim) is int else need_sizes((dim,)))}
    kept = [axis for axis in range(x.ndim) if axis not in candidates or x.shape[axis] != 1]
    return view_of(
        grad_mode, x, tuple(x.shape[axis] for axis in kept), tuple(x.stride[axis] for axis in kept)
    )


def expanded(grad_mode: bool, x: TensorMeta, wanted: Shape) -> TensorMeta:
    """expand to sizes, where -1 keeps an existing size."""
    extra = len(wanted) - x.ndim
    if extra < 0:
        raise Decline
    shape, stride = list(wanted), [0] * len(wanted)
    for axis in range(len(wanted) - 1, -1, -1):
        if axis >= extra:
            have, step = x.shape[axis - extra], x.stride[axis - extra]
        elif x.shape:
            have, step = 1, shape[axis + 1] * stride[axis + 1]
        else:
            have, step = 1, 0
        if wanted[axis] == -1 and axis >= extra:
            shape[axis] = have
        elif wanted[axis] < 0 or (wanted[axis] != have and have != 1):
            raise Decline
        stride[axis] = step if shape[axis] == have else 0
    return view_of(grad_mode, x, tuple(shape), tuple(stride))


@meta_rule(("method", "expand"))
def expand(grad_mode: bool, input: Any, *sizes: Any) -> TensorMeta:
    """expand(sizes)."""
    return expanded(grad_mode, need_tensor(input), need_sizes(sizes))


@meta_rule(("method", "expand_as"))
def expand_as(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """expand_as(other)."""
    return expanded(grad_mode, need_tensor(input), need_tensor(other).shape)


@meta_rule(torch.broadcast_to, ("method", "broadcast_to"))
def broadcast_to(grad_mode: bool, input: Any, size: Any) -> TensorMeta:
    """broadcast_to(input, size)."""
    return expanded(grad_mode, need_tensor(input), need_sizes((size,)))


@meta_rule(("method", "view_as"))
def view_as(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """view_as(other)."""
    return view(grad_mode, input, need_tensor(other).shape)


@meta_rule(("method", "reshape_as"))
def reshape_as(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """reshape_as(other)."""
    return reshape_method(grad_mode, input, need_tensor(other).shape)


@meta_rule(*named("select"))
def select(grad_mode: bool, input: Any, dim: Any, index: Any) -> TensorMeta:
    """select(dim, index)."""
    x = need_tensor(input)
    axis = need_dim(dim, x.ndim)
    if not x.shape or not -x.shape[axis] <= need_int(index) < x.shape[axis]:
        raise Decline
    return view_of(grad_mode, x, x.shape[:axis] + x.shape[axis + 1 :], x.stride[:axis] + x.stride[axis + 1 :])


@meta_rule(*named("narrow"))
def narrow(grad_mode: bool, input: Any, dim: Any, start: Any, length: Any) -> TensorMeta:
    """narrow(dim, start, length). A start in a tensor decides about where the view begins, not about how large it is."""
    x = need_tensor(input)
    axis = need_dim(dim, x.ndim)
    if is_tensor(start):
        if start.shape or start.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
            raise Decline
        start = 0
    if not x.shape or not 0 <= need_int(start) <= need_int(length) + start <= x.shape[axis]:
        raise Decline
    return view_of(grad_mode, x, x.shape[:axis] + (length,) + x.shape[axis + 1 :], x.stride)


@meta_rule(*named("diagonal"))
def diagonal(grad_mode: bool, input: Any, offset: Any = 0, dim1: Any = 0, dim2: Any = 1) -> TensorMeta:
    """diagonal(offset, dim1, dim2)."""
    x = need_tensor(input)
    rows, columns = need_dim(dim1, x.ndim), need_dim(dim2, x.ndim)
    if rows == columns:
        raise Decline
    above = need_int(offset)
    length = (
        min(x.shape[rows], x.shape[columns] - above)
        if above >= 0
        else min(x.shape[rows] + above, x.shape[columns])
    )
    rest = [axis for axis in range(x.ndim) if axis not in (rows, columns)]
    shape = (*(x.shape[axis] for axis in rest), max(length, 0))
    stride = (*(x.stride[axis] for axis in rest), x.stride[rows] + x.stride[columns])
    return view_of(grad_mode, x, shape, stride)


# --- indexing -----------------------------------------------------------------------------------------------


def basic_index(shape: Shape, stride: Shape, index: tuple[Any, ...]) -> tuple[Shape, Shape]:
    """Shape and strides of x[index] for ints, slices with a positive step, None and at most one Ellipsis."""
    used = sum(1 for item in index if item is not None and item is not ...)
    if used > len(shape) or sum(1 for item in index if item is ...) > 1:
        raise Decline
    sizes: list[int] = []
    steps: list[int] = []
    axis = 0
    for item in index:
        kind = type(item)
        if kind is slice:
            step = 1 if item.step is None else need_int(item.step)
            for bound in (item.start, item.stop):
                if bound is not None:
                    need_int(bound)
            if step <= 0:
                raise Decline
            start, stop, _ = item.indices(shape[axis])
            sizes.append((max(stop - start, 0) + step - 1) // step)
            steps.append(stride[axis] * step)
            axis += 1
        elif kind is int:
            if not -shape[axis] <= item < shape[axis]:
                raise Decline
            axis += 1
        elif item is None:
            sizes.append(1)
            steps.append(shape[axis] * stride[axis] if axis < len(shape) else 1)
        elif item is ...:
            end = len(shape) - (used - axis)  # every item so far that is no None used one dimension
            sizes.extend(shape[axis:end])
            steps.extend(stride[axis:end])
            axis = end
        else:
            raise Decline
    return tuple(sizes) + shape[axis:], tuple(steps) + stride[axis:]


def _indexed_by_tensor(grad_mode: bool, x: TensorMeta, index: TensorMeta) -> TensorMeta:
    """x[index] with one tensor of integers over a contiguous x: rows are gathered into a new tensor."""
    if index.dtype not in (torch.int64, torch.int32) or not index.shape or not x.shape or not x.is_contiguous:
        raise Decline
    if index.device != x.device or index.layout is not torch.strided or not index.is_contiguous:
        raise Decline
    return fresh(index.shape + x.shape[1:], x.dtype, x.device, grad_mode and x.requires_grad)


@meta_rule(operator.getitem, ("method", "__getitem__"))
def getitem(grad_mode: bool, input: Any, index: Any) -> Any:
    """x[index]; of a sequence of results it is that element."""
    if isinstance(input, (tuple, list)):
        if type(index) not in (int, slice):
            raise Decline
        return input[index]
    x = need_tensor(input)
    if is_tensor(index):
        return _indexed_by_tensor(grad_mode, x, index)
    shape, stride = basic_index(x.shape, x.stride, index if type(index) is tuple else (index,))
    return view_of(grad_mode, x, shape, stride)


@meta_rule(operator.setitem, ("method", "__setitem__"))
def setitem(grad_mode: bool, input: Any, index: Any, value: Any) -> None:
    """x[index] = value for ints, slices, None and Ellipsis: a number, or a tensor that broadcasts."""
    x = need_tensor(input)
    shape, _ = basic_index(x.shape, x.stride, index if type(index) is tuple else (index,))
    if is_tensor(value):
        source = need_tensor(value).shape
        while len(source) > len(shape) and source[0] == 1:
            source = source[1:]
        if broadcast(source, shape) != shape:
            raise Decline
        same_device(x, value)
    elif type(value) not in NUMBERS or type(value) is complex:
        raise Decline
    in_place(grad_mode, x, (), x.dtype)
    after = written(grad_mode, x, (value,))
    if after is not x:
        raise MutatesMeta("the tensor gets the history of the value written into it", ((x, after),))
