"""Questions that metadata answers with a Python constant, and attributes that are views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from minidynamo.graph.meta_iterator import is_channels_last
from minidynamo.graph.meta_rules import fresh, is_tensor, meta_rule, named, need_dim, need_tensor
from minidynamo.graph.meta_rules_view import t, transpose
from minidynamo.graph.meta_value import Decline, TensorMeta


def question(answer: Callable[[TensorMeta], Any]) -> Callable[..., Any]:
    """The rule of a question without arguments."""

    def rule(grad_mode: bool, input: Any) -> Any:
        return answer(need_tensor(input))

    return rule


meta_rule(("method", "dim"), ("method", "ndimension"))(question(lambda x: x.ndim))
meta_rule(*named("numel"), ("method", "nelement"))(question(lambda x: x.numel))
meta_rule(("method", "element_size"))(question(lambda x: x.dtype.itemsize))
meta_rule(*named("is_floating_point"))(question(lambda x: x.dtype.is_floating_point))
meta_rule(*named("is_complex"))(question(lambda x: x.dtype.is_complex))
meta_rule(*named("is_inference"))(question(lambda x: x.is_inference))
meta_rule(*named("is_signed"))(question(lambda x: x.dtype.is_signed))
meta_rule(("method", "get_device"), torch.get_device)(
    question(lambda x: -1 if x.device.type == "cpu" else x.device.index)
)


@meta_rule(len, ("method", "__len__"))
def length(grad_mode: bool, input: Any) -> int:
    """len(x); a 0-dim tensor has none."""
    x = need_tensor(input)
    if not x.shape:
        raise Decline
    return x.shape[0]


@meta_rule(torch.is_tensor)
def is_tensor_(grad_mode: bool, obj: Any) -> bool:
    """torch.is_tensor."""
    return is_tensor(obj)


@meta_rule(("method", "size"))
def size(grad_mode: bool, input: Any, dim: Any = None) -> Any:
    """size() is a torch.Size, size(dim) an int."""
    x = need_tensor(input)
    if dim is None:
        return torch.Size(x.shape)
    axis = need_dim(dim, x.ndim)
    if not x.shape:
        raise Decline
    return x.shape[axis]


@meta_rule(("method", "stride"))
def stride_(grad_mode: bool, input: Any, dim: Any = None) -> Any:
    """stride() is a tuple, stride(dim) an int."""
    x = need_tensor(input)
    if dim is None:
        return x.stride
    axis = need_dim(dim, x.ndim)
    if not x.shape:
        raise Decline
    return x.stride[axis]


@meta_rule(("method", "is_contiguous"))
def is_contiguous_(grad_mode: bool, input: Any, memory_format: Any = torch.contiguous_format) -> bool:
    """is_contiguous(memory_format)."""
    x = need_tensor(input)
    if memory_format is torch.contiguous_format:
        return x.is_contiguous
    if memory_format not in (torch.channels_last, torch.channels_last_3d):
        raise Decline
    if x.ndim != (4 if memory_format is torch.channels_last else 5) or 0 in x.shape:
        raise Decline
    return is_channels_last(x.shape, x.stride)


@meta_rule(*named("is_same_size"))
def is_same_size(grad_mode: bool, input: Any, other: Any) -> bool:
    """is_same_size(other)."""
    return need_tensor(input).shape == need_tensor(other).shape


@meta_rule(torch.result_type)
def result_type(grad_mode: bool, tensor1: Any, tensor2: Any) -> torch.dtype:
    """torch.result_type."""
    from minidynamo.graph.meta_iterator import result_dtype

    return result_dtype(tensor1, tensor2)


#: Attributes that are constants of the metadata.
CONSTANT_ATTRIBUTES: dict[str, Callable[[TensorMeta], Any]] = {
    "shape": lambda x: torch.Size(x.shape),
    "dtype": lambda x: x.dtype,
    "device": lambda x: x.device,
    "layout": lambda x: x.layout,
    "ndim": lambda x: x.ndim,
    "requires_grad": lambda x: x.requires_grad,
    "is_leaf": lambda x: x.is_leaf,
    "itemsize": lambda x: x.dtype.itemsize,
    "nbytes": lambda x: x.numel * x.dtype.itemsize,
    "is_cpu": lambda x: x.device.type == "cpu",
    "is_cuda": lambda x: x.device.type == "cuda",
    "is_meta": lambda x: x.device.type == "meta",
    "is_mps": lambda x: x.device.type == "mps",
    "is_xpu": lambda x: x.device.type == "xpu",
    "is_xla": lambda x: x.device.type == "xla",
    "is_ipu": lambda x: x.device.type == "ipu",
    "is_maia": lambda x: x.device.type == "maia",
    "is_mtia": lambda x: x.device.type == "mtia",
    "is_vulkan": lambda x: x.device.type == "vulkan",
    "is_sparse": lambda x: x.layout is torch.sparse_coo,
    "is_sparse_csr": lambda x: x.layout is torch.sparse_csr,
    "is_mkldnn": lambda x: x.layout is torch._mkldnn,  # type: ignore[attr-defined]
    "is_quantized": lambda x: (
        x.dtype in (torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4)
    ),
    "is_nested": lambda x: False,
}


def _transposed(grad_mode: bool, x: TensorMeta) -> TensorMeta:
    if x.ndim != 2:
        raise Decline
    return t(grad_mode, x)


def _matrix_transposed(grad_mode: bool, x: TensorMeta) -> TensorMeta:
    if x.ndim < 2:
        raise Decline
    return transpose(grad_mode, x, -2, -1)


def _real(grad_mode: bool, x: TensorMeta) -> TensorMeta:
    return x if not x.dtype.is_complex else _declined(grad_mode, x)


def _data(grad_mode: bool, x: TensorMeta) -> TensorMeta:
    return fresh(x.shape, x.dtype, x.device, False, x.stride)


def _declined(grad_mode: bool, x: TensorMeta) -> TensorMeta:
    raise Decline


def _hermitian(grad_mode: bool, x: TensorMeta) -> TensorMeta:
    return _declined(grad_mode, x) if x.dtype.is_complex else _transposed(grad_mode, x)


def _matrix_hermitian(grad_mode: bool, x: TensorMeta) -> TensorMeta:
    return _declined(grad_mode, x) if x.dtype.is_complex else _matrix_transposed(grad_mode, x)


#: Attributes that are tensors.
TENSOR_ATTRIBUTES: dict[str, Callable[[bool, TensorMeta], TensorMeta]] = {
    "T": _transposed,
    "mT": _matrix_transposed,
    "H": _hermitian,
    "mH": _matrix_hermitian,
    "real": _real,
    "data": _data,
}


@meta_rule(getattr)
def attribute(grad_mode: bool, input: Any, name: Any) -> Any:
    """getattr(tensor, name) for attributes that follow from metadata."""
    if not is_tensor(input):
        raise Decline
    if name in CONSTANT_ATTRIBUTES:
        return CONSTANT_ATTRIBUTES[name](input)
    if name in TENSOR_ATTRIBUTES:
        return TENSOR_ATTRIBUTES[name](grad_mode, need_tensor(input))
    raise Decline
