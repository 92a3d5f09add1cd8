"""Metadata rules of activation functions."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F

from minidynamo.graph.meta_iterator import elementwise, floating, in_place
from minidynamo.graph.meta_rules import meta_rule, need_tensor
from minidynamo.graph.meta_rules_pointwise import check_kind
from minidynamo.graph.meta_value import Decline, TensorMeta


def activation(grad_mode: bool, input: Any, inplace: Any = False) -> TensorMeta:
    """An elementwise activation over floating-point numbers."""
    check_kind(need_tensor(input).dtype, "f")
    if inplace:
        return in_place(grad_mode, input, (), input.dtype)
    return elementwise(grad_mode, (input,), input.dtype)


@meta_rule(F.silu, F.mish, F.hardswish, F.hardsigmoid, F.selu)
def activation_inplace(grad_mode: bool, input: Any, inplace: bool = False) -> TensorMeta:
    """Activations of the form f(input, inplace)."""
    return activation(grad_mode, input, inplace)


@meta_rule(F.relu6)
def relu6(grad_mode: bool, input: Any, inplace: bool = False) -> TensorMeta:
    """relu6 is hardtanh between 0 and 6."""
    return hardtanh(grad_mode, input, 0.0, 6.0, inplace)


@meta_rule(F.relu)
def relu(grad_mode: bool, input: Any, inplace: bool = False) -> TensorMeta:
    """relu also takes integers."""
    check_kind(need_tensor(input).dtype, "if")
    return (
        in_place(grad_mode, input, (), input.dtype)
        if inplace
        else elementwise(grad_mode, (input,), input.dtype)
    )


@meta_rule(F.sigmoid, F.tanh)
def sigmoid_tanh(grad_mode: bool, input: Any) -> TensorMeta:
    """The old names in torch.nn.functional."""
    check_kind(need_tensor(input).dtype, "bifc")
    return elementwise(grad_mode, (input,), floating(input.dtype))


@meta_rule(F.gelu)
def gelu(grad_mode: bool, input: Any, *, approximate: str = "none") -> TensorMeta:
    """gelu, exact or with tanh."""
    if approximate not in ("none", "tanh"):
        raise Decline
    return activation(grad_mode, input)


@meta_rule(F.leaky_relu, F.celu, F.elu)
def leaky_relu(grad_mode: bool, input: Any, alpha: Any = 0.01, inplace: bool = False) -> TensorMeta:
    """Activations of the form f(input, alpha, inplace) (leaky_relu: by position only)."""
    if type(alpha) not in (int, float):
        raise Decline
    return activation(grad_mode, input, inplace)


@meta_rule(F.hardtanh)
def hardtanh(
    grad_mode: bool, input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False
) -> TensorMeta:
    """hardtanh(input, min_val, max_val)."""
    if type(min_val) not in (int, float) or type(max_val) not in (int, float) or min_val > max_val:
        raise Decline
    if 0 in need_tensor(input).shape:  # returned by another road, with other strides
        raise Decline
    return activation(grad_mode, input, inplace)


@meta_rule(F.softplus)
def softplus(grad_mode: bool, input: Any, beta: Any = 1, threshold: Any = 20) -> TensorMeta:
    """softplus(input, beta, threshold)."""
    if type(beta) not in (int, float) or type(threshold) not in (int, float):
        raise Decline
    return activation(grad_mode, input)
