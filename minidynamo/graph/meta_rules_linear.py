"""Metadata rules of matrix products and convolutions over plain dense operands."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F

from minidynamo.graph.meta_iterator import Layout, broadcast, suggested_strides
from minidynamo.graph.meta_rules import (
    fresh,
    is_tensor,
    meta_rule,
    named,
    need_tensor,
    same_device,
    wants_grad,
)
from minidynamo.graph.meta_rules_pointwise import check_kind
from minidynamo.graph.meta_value import Decline, Shape, TensorMeta, contiguous_strides


def _product(grad_mode: bool, shape: Shape, *operands: TensorMeta) -> TensorMeta:
    """The result of a product: one dtype, one device, freshly made."""
    dtype = operands[0].dtype
    check_kind(dtype, "ifc")
    for operand in operands:
        if operand.dtype is not dtype:
            raise Decline
    return fresh(shape, dtype, same_device(*operands), wants_grad(grad_mode, *operands))


@meta_rule(*named("mm"))
def mm(grad_mode: bool, input: Any, mat2: Any) -> TensorMeta:
    """(n, k) @ (k, m)."""
    a, b = need_tensor(input), need_tensor(mat2)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise Decline
    return _product(grad_mode, (a.shape[0], b.shape[1]), a, b)


@meta_rule(*named("bmm"))
def bmm(grad_mode: bool, input: Any, mat2: Any) -> TensorMeta:
    """(b, n, k) @ (b, k, m)."""
    a, b = need_tensor(input), need_tensor(mat2)
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise Decline
    return _product(grad_mode, (a.shape[0], a.shape[1], b.shape[2]), a, b)


@meta_rule(*named("mv"))
def mv(grad_mode: bool, input: Any, vec: Any) -> TensorMeta:
    """(n, k) @ (k)."""
    a, b = need_tensor(input), need_tensor(vec)
    if a.ndim != 2 or b.ndim != 1 or a.shape[1] != b.shape[0]:
        raise Decline
    return _product(grad_mode, a.shape[:1], a, b)


@meta_rule(*named("dot"))
def dot(grad_mode: bool, input: Any, tensor: Any) -> TensorMeta:
    """(k) . (k)."""
    a, b = need_tensor(input), need_tensor(tensor)
    if a.ndim != 1 or a.shape != b.shape:
        raise Decline
    return _product(grad_mode, (), a, b)


@meta_rule(*named("matmul"), operator.matmul)
def matmul(grad_mode: bool, input: Any, other: Any) -> TensorMeta:
    """matmul in all its forms; the leading dimensions broadcast."""
    a, b = need_tensor(input), need_tensor(other)
    if not a.shape or not b.shape or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise Decline
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    return _product(grad_mode, batch + a.shape[-2:-1] + (b.shape[-1:] if b.ndim > 1 else ()), a, b)


@meta_rule(*named("addmm"))
def addmm(grad_mode: bool, input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> TensorMeta:
    """beta * input + alpha * (mat1 @ mat2)."""
    bias, a, b = need_tensor(input), need_tensor(mat1), need_tensor(mat2)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise Decline
    if (
        type(beta) is not int
        and type(beta) is not float
        or type(alpha) is not int
        and type(alpha) is not float
    ):
        raise Decline
    shape = (a.shape[0], b.shape[1])
    if broadcast(bias.shape, shape) != shape:
        raise Decline
    check_kind(a.dtype, "fc")
    return _product(grad_mode, shape, bias, a, b)


@meta_rule(*named("baddbmm"))
def baddbmm(
    grad_mode: bool, input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1
) -> TensorMeta:
    """beta * input + alpha * bmm(batch1, batch2)."""
    product = bmm(grad_mode, batch1, batch2)
    if type(beta) not in (int, float) or type(alpha) not in (int, float):
        raise Decline
    if broadcast(need_tensor(input).shape, product.shape) != product.shape:
        raise Decline
    check_kind(product.dtype, "fc")
    return _product(grad_mode, product.shape, input, batch1, batch2)


@meta_rule(F.linear)
def linear(grad_mode: bool, input: Any, weight: Any, bias: Any = None) -> TensorMeta:
    """input @ weight.T + bias."""
    x, w = need_tensor(input), need_tensor(weight)
    if not x.shape or w.ndim != 2 or x.shape[-1] != w.shape[1]:
        raise Decline
    operands = [x, w]
    if bias is not None:
        if need_tensor(bias).shape != (w.shape[0],):
            raise Decline
        operands.append(bias)
    check_kind(x.dtype, "fc")
    return _product(grad_mode, (*x.shape[:-1], w.shape[0]), *operands)


def _per_dim(value: Any, count: int) -> tuple[int, ...]:
    """An int for every spatial dimension, or one for each."""
    if type(value) is int:
        return (value,) * count
    if (
        isinstance(value, (tuple, list))
        and len(value) in (1, count)
        and all(type(item) is int for item in value)
    ):
        return tuple(value) * (count if len(value) == 1 else 1)
    raise Decline


def _image(meta: TensorMeta) -> Layout:
    """The layout as the convolution sees it: a line is a contiguous image of height one."""
    if meta.ndim == 4:
        return meta.shape, meta.stride
    shape = (*meta.shape[:2], 1, meta.shape[2])
    return shape, contiguous_strides(shape)


def _convolved_strides(result: TensorMeta, x: TensorMeta, w: TensorMeta) -> Shape:
    """Channels-last if the input or the weight suggests so; known on the CPU, else only for plain operands."""
    layouts = _image(x), _image(w)
    if (
        not w.is_contiguous
        and w.ndim == 3
        or x.device.type != "cpu"
        and not (x.is_contiguous and w.is_contiguous)
    ):
        raise Decline
    stride = suggested_strides(_image(result)[0], *layouts)
    return stride if result.ndim == 4 else stride[:2] + stride[3:]


def convolution(spatial: int) -> Any:
    """The rule of a convolution over `spatial` dimensions with a batch dimension."""

    def rule(
        grad_mode: bool,
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> TensorMeta:
        x, w = need_tensor(input), need_tensor(weight)
        steps, pads, gaps = (_per_dim(value, spatial) for value in (stride, padding, dilation))
        if x.ndim != spatial + 2 or w.ndim != spatial + 2 or type(groups) is not int or groups < 1:
            raise Decline
        if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups or 0 in x.shape or 0 in w.shape:
            raise Decline
        if min(steps) < 1 or min(pads) < 0 or min(gaps) < 1:
            raise Decline
        operands = [x, w]
        if bias is not None:
            if need_tensor(bias).shape != w.shape[:1]:
                raise Decline
            operands.append(bias)
        check_kind(x.dtype, "f")
        sizes = []
        for size, kernel, step, pad, gap in zip(x.shape[2:], w.shape[2:], steps, pads, gaps, strict=True):
            reach = gap * (kernel - 1) + 1
            if size + 2 * pad < reach:
                raise Decline
            sizes.append((size + 2 * pad - reach) // step + 1)
        result = _product(grad_mode, (x.shape[0], w.shape[0], *sizes), *operands)
        return replace(result, stride=_convolved_strides(result, x, w))

    return rule


meta_rule(torch.conv1d, F.conv1d)(convolution(1))
meta_rule(torch.conv2d, F.conv2d)(convolution(2))


@meta_rule(*named("outer"))
def outer(grad_mode: bool, input: Any, vec2: Any) -> TensorMeta:
    """(n) x (m) -> (n, m)."""
    a, b = need_tensor(input), need_tensor(vec2)
    if a.ndim != 1 or b.ndim != 1 or not is_tensor(vec2):
        raise Decline
    return _product(grad_mode, (a.shape[0], b.shape[0]), a, b)
