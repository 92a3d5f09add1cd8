"""Metadata rules of reductions and scans. Their results are always freshly made and contiguous."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from minidynamo.graph.meta_iterator import floating, real_of, result_dtype
from minidynamo.graph.meta_rules import fresh, meta_rule, named, need_dim, need_dims, need_tensor, wants_grad
from minidynamo.graph.meta_rules_pointwise import check_kind
from minidynamo.graph.meta_value import Decline, Shape, TensorMeta


def reduced(shape: Shape, dim: Any, keepdim: Any, empty_means_all: bool = True) -> Shape:
    """The shape that is left of `shape` when `dim` (None, int or ints) is reduced."""
    if type(keepdim) is not bool:
        raise Decline
    if dim is None or (empty_means_all and isinstance(dim, (tuple, list)) and not dim):
        gone: tuple[int, ...] = tuple(range(len(shape)))
    else:
        gone = need_dims(dim, len(shape))
    if keepdim:
        return tuple(1 if axis in gone else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


def _summed(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _need_dtype(dtype: Any) -> None:
    if dtype is not None and type(dtype) is not torch.dtype:
        raise Decline


@meta_rule(*named("sum", "nansum"))
def sum_(
    grad_mode: bool, input: Any, dim: Any = None, keepdim: Any = False, *, dtype: Any = None
) -> TensorMeta:
    """sum(input, dim, keepdim, dtype): integers add up as int64."""
    x = need_tensor(input)
    _need_dtype(dtype)
    check_kind(x.dtype, "bif")
    return fresh(
        reduced(x.shape, dim, keepdim), dtype or _summed(x.dtype), x.device, wants_grad(grad_mode, x)
    )


@meta_rule(*named("mean"))
def mean(
    grad_mode: bool, input: Any, dim: Any = None, keepdim: Any = False, *, dtype: Any = None
) -> TensorMeta:
    """mean(input, dim, keepdim, dtype): the result type is floating or complex."""
    x = need_tensor(input)
    _need_dtype(dtype)
    result = dtype or x.dtype
    check_kind(result, "fc")
    return fresh(reduced(x.shape, dim, keepdim), result, x.device, wants_grad(grad_mode, x))


@meta_rule(*named("prod"))
def prod(
    grad_mode: bool, input: Any, dim: Any = None, keepdim: Any = False, *, dtype: Any = None
) -> TensorMeta:
    """prod(input, dim, keepdim, dtype): one dimension or all."""
    x = need_tensor(input)
    _need_dtype(dtype)
    check_kind(x.dtype, "bifc")
    if dim is not None and type(dim) is not int:
        raise Decline
    return fresh(
        reduced(x.shape, dim, keepdim), dtype or _summed(x.dtype), x.device, wants_grad(grad_mode, x)
    )


@meta_rule(*named("amax", "amin"))
def amax(grad_mode: bool, input: Any, dim: Any = (), keepdim: Any = False) -> TensorMeta:
    """amax and amin; dimensions without elements are an error."""
    x = need_tensor(input)
    check_kind(x.dtype, "bif")
    _need_elements(x, dim)
    return fresh(reduced(x.shape, dim, keepdim), x.dtype, x.device, wants_grad(grad_mode, x))


def _need_elements(x: TensorMeta, dim: Any) -> None:
    """Reductions without identity refuse dimensions without elements."""
    if 0 in x.shape:
        raise Decline


@meta_rule(*named("any", "all"))
def any_(grad_mode: bool, input: Any, dim: Any = None, keepdim: Any = False) -> TensorMeta:
    """any and all; uint8 stays uint8."""
    x = need_tensor(input)
    check_kind(x.dtype, "bifc")
    if isinstance(dim, (tuple, list)) and not dim:
        raise Decline
    return fresh(
        reduced(x.shape, dim, keepdim), torch.uint8 if x.dtype is torch.uint8 else torch.bool, x.device
    )


@meta_rule(*named("argmax", "argmin"))
def argmax(grad_mode: bool, input: Any, dim: Any = None, keepdim: Any = False) -> TensorMeta:
    """argmax and argmin over one dimension or all."""
    x = need_tensor(input)
    check_kind(x.dtype, "if")
    _need_elements(x, dim)
    if dim is not None and type(dim) is not int:
        raise Decline
    return fresh(reduced(x.shape, dim, keepdim), torch.int64, x.device)


_VARIANCE_KINDS = "f"


def variance(
    grad_mode: bool,
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: Any = False,
    *,
    correction: Any = None,
) -> TensorMeta:
    """var and std. A bool in the place of dim is `unbiased`."""
    x = need_tensor(input)
    check_kind(x.dtype, _VARIANCE_KINDS)
    if type(dim) is bool:
        dim = None
    if unbiased is not None and (type(unbiased) is not bool or correction is not None):
        raise Decline
    if correction is not None and type(correction) not in (int, float):
        raise Decline
    return fresh(reduced(x.shape, dim, keepdim), x.dtype, x.device, wants_grad(grad_mode, x))


meta_rule(*named("var", "std"))(variance)


@meta_rule(*named("var_mean", "std_mean"))
def var_mean(
    grad_mode: bool,
    input: Any,
    dim: Any = None,
    unbiased: Any = None,
    keepdim: Any = False,
    *,
    correction: Any = None,
) -> tuple[TensorMeta, TensorMeta]:
    """(var or std, mean)."""
    result = variance(grad_mode, input, dim, unbiased, keepdim, correction=correction)
    return result, result


def extremum(kind: str) -> Any:
    """The rule of max and min in their three forms: all elements, along a dimension, elementwise."""
    pair = getattr(torch.return_types, kind)

    def rule(grad_mode: bool, input: Any, dim: Any = None, keepdim: Any = False) -> Any:
        x = need_tensor(input)
        check_kind(x.dtype, "bif")
        if type(dim) is TensorMeta:
            if keepdim is not False:
                raise Decline
            return _elementwise_extremum(grad_mode, x, dim)
        _need_elements(x, dim)
        if dim is None:
            return fresh((), x.dtype, x.device, wants_grad(grad_mode, x))
        if type(dim) is not int:
            raise Decline
        shape = reduced(x.shape, dim, keepdim)
        return pair(
            (fresh(shape, x.dtype, x.device, wants_grad(grad_mode, x)), fresh(shape, torch.int64, x.device))
        )

    return rule


def _elementwise_extremum(grad_mode: bool, input: TensorMeta, other: TensorMeta) -> TensorMeta:
    from minidynamo.graph.meta_iterator import elementwise

    return elementwise(grad_mode, (input, need_tensor(other)), result_dtype(input, other))


meta_rule(*named("max"))(extremum("max"))
meta_rule(*named("min"))(extremum("min"))


@meta_rule(*named("cumsum", "cumprod"))
def cumsum(grad_mode: bool, input: Any, dim: Any, *, dtype: Any = None) -> TensorMeta:
    """cumsum and cumprod along a dimension."""
    x = need_tensor(input)
    _need_dtype(dtype)
    check_kind(x.dtype, "bifc")
    need_dim(dim, x.ndim)
    return fresh(x.shape, dtype or _summed(x.dtype), x.device, wants_grad(grad_mode, x))


@meta_rule(*named("logsumexp"))
def logsumexp(grad_mode: bool, input: Any, dim: Any, keepdim: Any = False) -> TensorMeta:
    """logsumexp over dimensions."""
    x = need_tensor(input)
    check_kind(x.dtype, "bif")
    return fresh(reduced(x.shape, dim, keepdim), floating(x.dtype), x.device, wants_grad(grad_mode, x))


def softmax(grad_mode: bool, input: Any, dim: Any, dtype: Any = None) -> TensorMeta:
    """softmax and log_softmax along a dimension: contiguous."""
    x = need_tensor(input)
    _need_dtype(dtype)
    result = dtype or x.dtype
    check_kind(result, "f")
    check_kind(x.dtype, "bif")
    need_dim(dim, x.ndim)
    return fresh(x.shape, result, x.device, wants_grad(grad_mode, x))


meta_rule(*named("softmax", "log_softmax"))(softmax)
meta_rule(torch.special.softmax, torch.special.log_softmax)(softmax)


@meta_rule(F.softmax, F.log_softmax)
def functional_softmax(
    grad_mode: bool, input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> TensorMeta:
    """The forms of torch.nn.functional; without `dim` they warn and choose one: declined."""
    return softmax(grad_mode, input, dim, dtype)


@meta_rule(torch.linalg.vector_norm)
def vector_norm(
    grad_mode: bool, x: Any, ord: Any = 2, dim: Any = None, keepdim: Any = False, *, dtype: Any = None
) -> TensorMeta:
    """linalg.vector_norm of floating-point numbers."""
    tensor = need_tensor(x)
    check_kind(tensor.dtype, "f")
    if dtype is not None or type(ord) not in (int, float) or 0 in tensor.shape:
        raise Decline
    return fresh(
        reduced(tensor.shape, dim, keepdim),
        real_of(tensor.dtype),
        tensor.device,
        wants_grad(grad_mode, tensor),
    )
