"""Metadata rules of torch.nn.functional beyond activations: normalisation, dropout, embedding, pooling,
losses, attention.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from minidynamo.graph.meta_iterator import (
    broadcast,
    elementwise,
    in_place,
    preserved_strides,
    suggested_strides,
    suggests_channels_last,
)
from minidynamo.graph.meta_rules import fresh, meta_rule, need_sizes, need_tensor, same_device, wants_grad
from minidynamo.graph.meta_rules_linear import _per_dim
from minidynamo.graph.meta_rules_pointwise import check_kind
from minidynamo.graph.meta_value import Decline, TensorMeta


def _affine(x: TensorMeta, shape: tuple[int, ...], *parameters: Any) -> list[TensorMeta]:
    """The optional scale and shift of a normalisation, each of the given shape and of the input's dtype."""
    check_kind(x.dtype, "f")
    given = [need_tensor(parameter) for parameter in parameters if parameter is not None]
    for parameter in given:
        if parameter.shape != shape or parameter.dtype is not x.dtype:
            raise Decline
    same_device(x, *given)
    return given


@meta_rule(F.layer_norm)
def layer_norm(
    grad_mode: bool,
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> TensorMeta:
    """layer_norm over the last dimensions."""
    x = need_tensor(input)
    inner = need_sizes((normalized_shape,))
    if not inner or x.shape[-len(inner) :] != inner:
        raise Decline
    given = _affine(x, inner, weight, bias)
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x, *given))


@meta_rule(F.group_norm)
def group_norm(
    grad_mode: bool, input: Any, num_groups: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> TensorMeta:
    """group_norm of a contiguous input."""
    x = need_tensor(input)
    if x.ndim < 3 or type(num_groups) is not int or num_groups < 1 or x.shape[1] % num_groups or 0 in x.shape:
        raise Decline
    if not x.is_contiguous or suggests_channels_last(x.shape, x.stride) or x.shape[0] * num_groups == x.numel:
        raise Decline
    given = _affine(x, x.shape[1:2], weight, bias)
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x, *given))


@meta_rule(F.batch_norm)
def batch_norm(
    grad_mode: bool,
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> TensorMeta:
    """batch_norm of a contiguous or channels-last input; the running statistics keep their metadata."""
    x = need_tensor(input)
    stride = suggested_strides(x.shape, (x.shape, x.stride))
    if x.ndim < 2 or 0 in x.shape or not x.is_contiguous and x.stride != stride:
        raise Decline
    if x.numel == x.shape[1] or (running_mean is None or running_var is None) and not training:
        raise Decline
    statistics = _affine(x, x.shape[1:2], running_mean, running_var)
    if any(statistic.requires_grad for statistic in statistics):
        raise Decline
    given = _affine(x, x.shape[1:2], weight, bias)
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x, *given), stride)


@meta_rule(F.dropout)
def dropout(
    grad_mode: bool, input: Any, p: Any = 0.5, training: bool = True, inplace: bool = False
) -> TensorMeta:
    """dropout: the input itself when it does nothing, else a masked copy."""
    x = need_tensor(input)
    if type(p) not in (int, float) or not 0 <= p < 1 or type(training) is not bool:
        raise Decline
    if not training or p == 0 or not x.numel:
        return x
    check_kind(x.dtype, "f")
    noise = fresh(x.shape, x.dtype, x.device, False, preserved_strides(x.shape, x.stride))
    return (
        in_place(grad_mode, x, (noise,), x.dtype) if inplace else elementwise(grad_mode, (x, noise), x.dtype)
    )


@meta_rule(F.embedding)
def embedding(
    grad_mode: bool,
    input: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> TensorMeta:
    """Rows of a table; renormalisation (max_norm) changes the table and is declined."""
    at, table = need_tensor(input), need_tensor(weight)
    if at.dtype not in (torch.int64, torch.int32) or table.ndim != 2 or max_norm is not None:
        raise Decline
    if padding_idx is not None and (
        type(padding_idx) is not int or not -table.shape[0] <= padding_idx < table.shape[0]
    ):
        raise Decline
    return fresh(
        (*at.shape, table.shape[1]), table.dtype, same_device(at, table), wants_grad(grad_mode, table)
    )


def _images(x: TensorMeta) -> None:
    """A batch of images, which pooling answers with one in the suggested memory format."""
    check_kind(x.dtype, "f")
    if x.ndim != 4 or 0 in x.shape:
        raise Decline


@meta_rule(F.max_pool2d)
def max_pool2d(
    grad_mode: bool,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> TensorMeta:
    """max_pool2d without ceil_mode and indices."""
    if return_indices or ceil_mode:
        raise Decline
    return _pooled(grad_mode, input, kernel_size, stride, padding, dilation)


@meta_rule(F.avg_pool2d)
def avg_pool2d(
    grad_mode: bool,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> TensorMeta:
    """avg_pool2d without ceil_mode."""
    if ceil_mode or divisor_override is not None:
        raise Decline
    return _pooled(grad_mode, input, kernel_size, stride, padding, 1)


def _pooled(
    grad_mode: bool, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> TensorMeta:
    x = need_tensor(input)
    _images(x)
    kernels = _per_dim(kernel_size, 2)
    steps = (
        kernels
        if stride is None or (isinstance(stride, (tuple, list)) and not stride)
        else _per_dim(stride, 2)
    )
    pads, gaps = _per_dim(padding, 2), _per_dim(dilation, 2)
    sizes = []
    for size, kernel, step, pad, gap in zip(x.shape[2:], kernels, steps, pads, gaps, strict=True):
        reach = gap * (kernel - 1) + 1
        if kernel < 1 or step < 1 or gap < 1 or not 0 <= pad <= kernel // 2 or size + 2 * pad < reach:
            raise Decline
        sizes.append((size + 2 * pad - reach) // step + 1)
    shape = (*x.shape[:2], *sizes)
    stride = suggested_strides(shape, (x.shape, x.stride))
    return fresh(shape, x.dtype, x.device, wants_grad(grad_mode, x), stride)


@meta_rule(F.adaptive_avg_pool2d)
def adaptive_avg_pool2d(grad_mode: bool, input: Any, output_size: Any) -> TensorMeta:
    """adaptive_avg_pool2d to given sizes (None keeps a size)."""
    x = need_tensor(input)
    _images(x)
    wanted = (output_size, output_size) if type(output_size) is int else output_size
    if not isinstance(wanted, (tuple, list)) or len(wanted) != 2:
        raise Decline
    sizes = tuple(have if want is None else want for have, want in zip(x.shape[2:], wanted, strict=True))
    if any(type(size) is not int or size < 1 for size in sizes):
        raise Decline
    shape = (*x.shape[:2], *sizes)
    stride = suggested_strides(shape, (x.shape, x.stride))
    return fresh(shape, x.dtype, x.device, wants_grad(grad_mode, x), stride)


def _reduced_loss(grad_mode: bool, reduction: Any, *operands: TensorMeta) -> TensorMeta:
    if reduction not in ("mean", "sum"):
        raise Decline
    return fresh((), operands[0].dtype, same_device(*operands), wants_grad(grad_mode, *operands))


@meta_rule(F.cross_entropy)
def cross_entropy(
    grad_mode: bool,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> TensorMeta:
    """cross_entropy of (n, classes) against n class numbers, reduced to one number."""
    x, classes = need_tensor(input), need_tensor(target)
    if x.ndim != 2 or classes.shape != x.shape[:1] or classes.dtype is not torch.int64 or 0 in x.shape:
        raise Decline
    if size_average is not None or reduce is not None:
        raise Decline
    given = _affine(x, x.shape[1:], weight)
    if given:
        raise Decline
    return _reduced_loss(grad_mode, reduction, x, classes)


@meta_rule(F.nll_loss)
def nll_loss(
    grad_mode: bool,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> TensorMeta:
    """nll_loss of (n, classes) against n class numbers, reduced to one number."""
    return cross_entropy(grad_mode, input, target, weight, size_average, ignore_index, reduce, reduction)


def _equal_shapes(input: Any, target: Any, *unwanted: Any) -> tuple[TensorMeta, TensorMeta]:
    x, goal = need_tensor(input), need_tensor(target)
    if any(value is not None for value in unwanted) or x.shape != goal.shape or x.dtype is not goal.dtype:
        raise Decline
    check_kind(x.dtype, "f")
    return x, goal


@meta_rule(F.mse_loss, F.l1_loss)
def mse_loss(
    grad_mode: bool,
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> TensorMeta:
    """mse_loss and l1_loss of equal shapes, reduced to one number."""
    return _reduced_loss(grad_mode, reduction, *_equal_shapes(input, target, size_average, reduce, weight))


@meta_rule(F.smooth_l1_loss)
def smooth_l1_loss(
    grad_mode: bool,
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: Any = 1.0,
) -> TensorMeta:
    """smooth_l1_loss of equal shapes, reduced to one number."""
    if type(beta) is not float or beta <= 0:
        raise Decline
    return _reduced_loss(grad_mode, reduction, *_equal_shapes(input, target, size_average, reduce))


@meta_rule(F.binary_cross_entropy_with_logits)
def binary_cross_entropy_with_logits(
    grad_mode: bool,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> TensorMeta:
    """binary_cross_entropy_with_logits of equal shapes without weights, reduced to one number."""
    operands = _equal_shapes(input, target, weight, size_average, reduce, pos_weight)
    return _reduced_loss(grad_mode, reduction, *operands)


@meta_rule(F.scaled_dot_product_attention)
def scaled_dot_product_attention(
    grad_mode: bool,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> TensorMeta:
    """Attention on the CPU: the fused kernel answers in the layout of the query; with dropout the products of
    matrices do, contiguously.
    """
    q, k, v = need_tensor(query), need_tensor(key), need_tensor(value)
    if same_device(q, k, v).type != "cpu" or not torch._C._get_flash_sdp_enabled():
        raise Decline
    if type(dropout_p) is not float or type(enable_gqa) is not bool:
        raise Decline
    check_kind(q.dtype, "f")
    if q.ndim != 4 or k.shape != v.shape or k.ndim != 4 or k.dtype is not q.dtype or v.dtype is not q.dtype:
        raise Decline
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or 0 in q.shape or 0 in k.shape:
        raise Decline
    if q.shape[1] % k.shape[1] if enable_gqa else q.shape[1] != k.shape[1]:
        raise Decline
    if any(operand.stride[3] != 1 for operand in (q, k, v)) or q.shape[3] == 1:
        raise Decline
    if attn_mask is not None:
        mask = need_tensor(attn_mask)
        scores = (*q.shape[:3], k.shape[2])
        if (
            mask.requires_grad
            or is_causal
            or mask.dtype not in (torch.bool, q.dtype)
            or mask.ndim not in (2, 4)
        ):
            raise Decline
        if broadcast(mask.shape, scores) != scores:
            raise Decline
    stride = None if dropout_p else preserved_strides(q.shape, q.stride)
    return fresh(q.shape, q.dtype, q.device, wants_grad(grad_mode, q, k, v), stride)


@meta_rule(F.pad)
def pad(grad_mode: bool, input: Any, pad: Any, mode: str = "constant", value: Any = None) -> TensorMeta:
    """pad with a constant, where at least one element is added."""
    x = need_tensor(input)
    amounts = need_sizes((pad,))
    if mode != "constant" or len(amounts) % 2 or len(amounts) > 2 * x.ndim or max(amounts, default=0) <= 0:
        raise Decline
    if suggests_channels_last(x.shape, x.stride):
        raise Decline
    if value is not None and type(value) not in (int, float):
        raise Decline
    sizes = list(x.shape)
    for position in range(0, len(amounts), 2):
        before, after = amounts[position : position + 2]
        axis = x.ndim - 1 - position // 2
        sizes[axis] += before + after
        if sizes[axis] <= 0 or x.shape[axis] + min(before, 0) + min(after, 0) < 0:
            raise Decline
    return fresh(tuple(sizes), x.dtype, x.device, wants_grad(grad_mode, x))


@meta_rule(F.rms_norm)
def rms_norm(
    grad_mode: bool, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None
) -> TensorMeta:
    """rms_norm of a contiguous input over the last dimensions."""
    x = need_tensor(input)
    inner = need_sizes((normalized_shape,))
    if not inner or x.shape[-len(inner) :] != inner or not x.is_contiguous or 0 in x.shape:
        raise Decline
    given = _affine(x, inner, weight)
    return fresh(x.shape, x.dtype, x.device, wants_grad(grad_mode, x, *given))


@meta_rule(F.one_hot)
def one_hot(grad_mode: bool, tensor: Any, num_classes: Any = -1) -> TensorMeta:
    """one_hot with a number of classes; without it the data decides."""
    x = need_tensor(tensor)
    if x.dtype is not torch.int64 or type(num_classes) is not int or num_classes < 1 or not x.numel:
        raise Decline
    return fresh((*x.shape, num_classes), torch.int64, x.device)
