"""Metadata rules of joining and splitting: cat, stack, split, chunk, unbind, repeat, gather and their kin."""

from __future__ import annotations

import math
from typing import Any

import torch

from minidynamo.graph.meta_iterator import channels_last_strides, result_dtype, suggests_channels_last
from minidynamo.graph.meta_rules import (
    fresh,
    meta_rule,
    named,
    need_dim,
    need_dims,
    need_int,
    need_sizes,
    need_tensor,
    same_device,
    view_of,
    wants_grad,
)
from minidynamo.graph.meta_rules_pointwise import check_kind
from minidynamo.graph.meta_value import Decline, TensorMeta


def _need_tensors(tensors: Any) -> list[TensorMeta]:
    if not isinstance(tensors, (tuple, list)) or not tensors:
        raise Decline
    return [need_tensor(tensor) for tensor in tensors]


@meta_rule(torch.cat, torch.concat, torch.concatenate)
def cat(grad_mode: bool, tensors: Any, dim: Any = 0) -> TensorMeta:
    """cat along a dimension: contiguous, or channels-last if every operand is that."""
    every = _need_tensors(tensors)
    parts = [part for part in every if part.shape != (0,)] or every  # empty vectors join anything
    first = parts[0]
    axis = need_dim(dim, first.ndim)
    for part in parts:
        if part.ndim != first.ndim or not part.shape:
            raise Decline
        if part.shape[:axis] != first.shape[:axis] or part.shape[axis + 1 :] != first.shape[axis + 1 :]:
            raise Decline
    dtype = result_dtype(*every)
    check_kind(dtype, "bifc")
    shape = (*first.shape[:axis], sum(part.shape[axis] for part in parts), *first.shape[axis + 1 :])
    last = all(suggests_channels_last(part.shape, part.stride) for part in every)
    stride = channels_last_strides(shape) if last else None
    return fresh(shape, dtype, same_device(*every), wants_grad(grad_mode, *every), stride)


@meta_rule(torch.stack)
def stack(grad_mode: bool, tensors: Any, dim: Any = 0) -> TensorMeta:
    """stack along a new dimension."""
    parts = _need_tensors(tensors)
    shape = parts[0].shape
    axis = need_dim(dim, len(shape) + 1)
    if any(part.shape != shape for part in parts):
        raise Decline
    dtype = result_dtype(*parts)
    check_kind(dtype, "bifc")
    if len(shape) + 1 in (4, 5) and not all(part.is_contiguous for part in parts):
        raise Decline
    return fresh(
        (*shape[:axis], len(parts), *shape[axis:]), dtype, same_device(*parts), wants_grad(grad_mode, *parts)
    )


def _pieces(grad_mode: bool, x: TensorMeta, axis: int, sizes: list[int]) -> tuple[TensorMeta, ...]:
    return tuple(
        view_of(grad_mode, x, x.shape[:axis] + (size,) + x.shape[axis + 1 :], x.stride) for size in sizes
    )


@meta_rule(torch.split, ("method", "split"))
def split(grad_mode: bool, tensor: Any, split_size_or_sections: Any, dim: Any = 0) -> tuple[TensorMeta, ...]:
    """split into pieces of one size (the last may be smaller) or of given sizes."""
    x = need_tensor(tensor)
    axis = need_dim(dim, x.ndim)
    if not x.shape:
        raise Decline
    total = x.shape[axis]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = list(need_sizes((split_size_or_sections,)))
        if sum(sizes) != total or min(sizes, default=-1) < 0:
            raise Decline
        return _pieces(grad_mode, x, axis, sizes)
    size = need_int(split_size_or_sections)
    if size <= 0:
        raise Decline
    count = max(-(-total // size), 1)
    return _pieces(grad_mode, x, axis, [min(size, total - size * piece) for piece in range(count)])


@meta_rule(*named("chunk"))
def chunk(grad_mode: bool, input: Any, chunks: Any, dim: Any = 0) -> tuple[TensorMeta, ...]:
    """chunk into at most `chunks` pieces."""
    x = need_tensor(input)
    axis = need_dim(dim, x.ndim)
    if not x.shape or need_int(chunks) <= 0 or not x.shape[axis]:
        raise Decline
    return split(grad_mode, x, -(-x.shape[axis] // chunks), axis)


@meta_rule(*named("unbind"))
def unbind(grad_mode: bool, input: Any, dim: Any = 0) -> tuple[TensorMeta, ...]:
    """unbind a dimension into a tuple of views."""
    x = need_tensor(input)
    axis = need_dim(dim, x.ndim)
    if not x.shape:
        raise Decline
    one = view_of(grad_mode, x, x.shape[:axis] + x.shape[axis + 1 :], x.stride[:axis] + x.stride[axis + 1 :])
    return (one,) * x.shape[axis]


@meta_rule(("method", "repeat"))
def repeat(grad_mode: bool, input: Any, *repeats: Any) -> TensorMeta:
    """repeat(times for each dimension)."""
    x = need_tensor(input)
    times = need_sizes(repeats)
    if len(times) < x.ndim or any(count < 0 for count in times):
        raise Decline
    padded = (1,) * (len(times) - x.ndim) + x.shape
    return fresh(
        tuple(size * count for size, count in zip(padded, times, strict=True)),
        x.dtype,
        x.device,
        wants_grad(grad_mode, x),
    )


@meta_rule(*named("tile"))
def tile(grad_mode: bool, input: Any, *dims: Any) -> TensorMeta:
    """tile(times): like repeat, with ones put in front."""
    x = need_tensor(input)
    times = need_sizes(dims)
    return repeat(grad_mode, x, *((1,) * (x.ndim - len(times)) + times))


@meta_rule(*named("flip"))
def flip(grad_mode: bool, input: Any, *axes: Any, dims: Any = ()) -> TensorMeta:
    """flip(dims) of a contiguous tensor: a copy."""
    x = need_tensor(input)
    need_dims(need_sizes(axes or (dims,)), x.ndim)
    if not x.is_contiguous:
        raise Decline
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x), x.stride)


@meta_rule(*named("roll"))
def roll(grad_mode: bool, input: Any, shifts: Any, dims: Any = ()) -> TensorMeta:
    """roll(shifts, dims) of a contiguous tensor: a copy."""
    x = need_tensor(input)
    steps = need_sizes((shifts,) if type(shifts) is not int else ((shifts,),))
    axes = need_dims(dims, x.ndim)
    if not x.is_contiguous or len(steps) != (len(axes) or 1) or not x.numel or not x.shape:
        raise Decline
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x))


@meta_rule(*named("gather"))
def gather(grad_mode: bool, input: Any, dim: Any, index: Any, *, sparse_grad: bool = False) -> TensorMeta:
    """gather(dim, index): the shape of the index."""
    x, at = need_tensor(input), need_tensor(index)
    axis = need_dim(dim, x.ndim)
    if at.dtype is not torch.int64 or at.ndim != x.ndim or not x.shape or 0 in at.shape:
        raise Decline
    if any(size > x.shape[other] for other, size in enumerate(at.shape) if other != axis):
        raise Decline
    return fresh(at.shape, x.dtype, same_device(x, at), wants_grad(grad_mode, x))


@meta_rule(*named("index_select"))
def index_select(grad_mode: bool, input: Any, dim: Any, index: Any) -> TensorMeta:
    """index_select(dim, index) with a vector of indices."""
    x, at = need_tensor(input), need_tensor(index)
    axis = need_dim(dim, x.ndim)
    if at.dtype not in (torch.int64, torch.int32) or at.ndim != 1 or not x.shape:
        raise Decline
    shape = x.shape[:axis] + at.shape + x.shape[axis + 1 :]
    if not math.prod(shape):
        raise Decline
    return fresh(shape, x.dtype, same_device(x, at), wants_grad(grad_mode, x))


@meta_rule(*named("tril", "triu"))
def tril(grad_mode: bool, input: Any, diagonal: Any = 0) -> TensorMeta:
    """tril and triu of matrices."""
    x = need_tensor(input)
    need_int(diagonal)
    if x.ndim < 2:
        raise Decline
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x))


@meta_rule(*named("topk"))
def topk(
    grad_mode: bool, input: Any, k: Any, dim: Any = -1, largest: bool = True, sorted: bool = True
) -> Any:
    """topk(k, dim): (values, indices)."""
    x = need_tensor(input)
    axis = need_dim(dim, x.ndim)
    if not x.shape or not 0 <= need_int(k) <= x.shape[axis]:
        raise Decline
    check_kind(x.dtype, "if")
    shape = x.shape[:axis] + (k,) + x.shape[axis + 1 :]
    return torch.return_types.topk(
        (fresh(shape, x.dtype, x.device, wants_grad(grad_mode, x)), fresh(shape, torch.int64, x.device))
    )


@meta_rule(torch.sort, ("method", "sort"))
def sort(grad_mode: bool, input: Any, dim: Any = -1, descending: bool = False) -> Any:
    """sort of a contiguous tensor: (values, indices)."""
    x = need_tensor(input)
    need_dim(dim, x.ndim)
    check_kind(x.dtype, "if")
    if not x.is_contiguous or type(descending) is not bool:
        raise Decline
    values = fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x), x.stride)
    return torch.return_types.sort((values, fresh(x.shape, torch.int64, x.device, False, x.stride)))


@meta_rule(*named("argsort"))
def argsort(grad_mode: bool, input: Any, dim: Any = -1, descending: bool = False) -> TensorMeta:
    """argsort of a contiguous tensor."""
    return sort(False, input, dim, descending)[1]


@meta_rule(*named("repeat_interleave"))
def repeat_interleave(grad_mode: bool, input: Any, repeats: Any, dim: Any = None) -> TensorMeta:
    """repeat_interleave by one number."""
    x = need_tensor(input)
    if type(repeats) is not int or repeats < 1 or 0 in x.shape:
        raise Decline
    shape = x.shape if dim is not None else (x.numel,)
    axis = need_dim(0 if dim is None else dim, len(shape))
    if not x.shape:
        raise Decline
    return fresh(
        (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]),
        x.dtype,
        x.device,
        wants_grad(grad_mode, x),
    )


def scattered(grad_mode: bool, input: Any, dim: Any, index: Any, src: Any) -> TensorMeta:
    """scatter and scatter_add into a contiguous tensor."""
    x, at = need_tensor(input), need_tensor(index)
    axis = need_dim(dim, x.ndim)
    if (
        at.dtype is not torch.int64
        or at.ndim != x.ndim
        or not x.shape
        or 0 in at.shape
        or not x.is_contiguous
    ):
        raise Decline
    if any(size > x.shape[other] for other, size in enumerate(at.shape) if other != axis):
        raise Decline
    same_device(x, at)
    if type(src) is TensorMeta:
        if src.dtype is not x.dtype or src.ndim != x.ndim or src.device != x.device:
            raise Decline
        if any(size > have for size, have in zip(at.shape, src.shape, strict=True)):
            raise Decline
    elif type(src) not in (int, float) or type(src) is float and not x.dtype.is_floating_point:
        raise Decline
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x, src))


@meta_rule(*named("scatter"))
def scatter(grad_mode: bool, input: Any, dim: Any, index: Any, src: Any) -> TensorMeta:
    """scatter(dim, index, src)."""
    return scattered(grad_mode, input, dim, index, src)


@meta_rule(*named("scatter_add"))
def scatter_add(grad_mode: bool, input: Any, dim: Any, index: Any, src: Any) -> TensorMeta:
    """scatter_add(dim, index, src)."""
    return scattered(grad_mode, input, dim, index, need_tensor(src))
