"""Metadata rules of the `torch._foreach_*` operators of optimizers: the rule for one tensor, along lists.

Only where nothing is recorded by autograd: there a gradient of one tensor makes all results require one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch

from minidynamo.graph import meta_rules_make, meta_rules_pointwise  # noqa: F401 - the rules that are applied
from minidynamo.graph.meta_rules import NUMBERS, RULES, is_tensor, meta_rule, need_tensor, wants_grad
from minidynamo.graph.meta_value import Decline, TensorMeta

#: How many operands follow the list of tensors -> names of operators.
FOREACH = {
    0: "abs ceil cos erf exp expm1 floor log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin "
    "sqrt tan tanh trunc zero",
    1: "add sub mul div maximum minimum clamp_min clamp_max pow copy",
    2: "addcmul addcdiv lerp",
}


def _along(operand: Any, count: int) -> list[Any]:
    """An operand for each tensor of the list: one number or 0-dim tensor for all, or a list of as many."""
    if isinstance(operand, (tuple, list)):
        if len(operand) != count or not all(is_tensor(item) or type(item) in NUMBERS for item in operand):
            raise Decline
        return list(operand)
    if type(operand) in NUMBERS or is_tensor(operand) and not operand.shape:
        return [operand] * count
    raise Decline


def foreach(single: Callable[..., Any], in_place: bool, takes: int) -> Callable[..., Any]:
    """The rule of `torch._foreach_name(tensors, *operands)`: a tuple; of `name_` the list itself."""

    def rule(grad_mode: bool, self: Any, *operands: Any, **options: Any) -> Any:
        if not isinstance(self, (tuple, list)) or not self or not takes <= len(operands) <= takes + 1:
            raise Decline
        tensors = [need_tensor(tensor) for tensor in self]
        if any(tensor.device.type != "cpu" or tensor.dtype.is_complex for tensor in tensors):
            raise Decline
        columns = [_along(operand, len(tensors)) for operand in operands[:takes]]
        if wants_grad(grad_mode, *tensors, *(value for column in columns for value in column)):
            raise Decline
        if "alpha" in options and not all(map(is_tensor, columns[0])):
            raise Decline
        values = options.pop("value", operands[takes] if len(operands) > takes else None)
        named = (
            [{}] * len(tensors) if values is None else [{"value": v} for v in _along(values, len(tensors))]
        )
        rows = zip(*columns, strict=True) if columns else [()] * len(tensors)
        results = [
            single(grad_mode, tensor, *row, **options, **more)
            for tensor, row, more in zip(tensors, rows, named, strict=True)
        ]
        if any(type(result) is not TensorMeta for result in results):
            raise Decline
        return self if in_place else tuple(results)

    return rule


def _register() -> None:
    for takes, names in FOREACH.items():
        for name in names.split():
            for suffix in ("", "_"):
                function = getattr(torch, f"_foreach_{name}{suffix}", None)
                key: Hashable = ("method", name + suffix)
                if function is not None and key in RULES:
                    meta_rule(function)(foreach(RULES[key], bool(suffix), takes))


_register()
