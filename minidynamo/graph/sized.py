"""Operators whose results' sizes depend on data and that fake tensors refuse, or say more about than is needed: what they give, as a
function of the sizes that are not known.

A rule is `rule(grad_mode, size, *args, **kwargs)` with the operator's own parameters; `size(n)` is the n-th unknown size. It raises
Decline for arguments that it is not exact for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch

from minidynamo.graph.meta_rules import (
    fresh,
    meta_rule,
    named,
    need_dim,
    need_int,
    need_tensor,
    view_of,
    wants_grad,
)
from minidynamo.graph.meta_value import Decline, NeedsData, Result, TensorMeta

Size = Callable[[int], int]

#: operator -> rule
SIZED: dict[Hashable, Callable[..., Result]] = {}


def sized_rule(*names: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Register a rule for the function and the method of each name."""

    def register(rule: Callable[..., Result]) -> Callable[..., Result]:
        SIZED.update(dict.fromkeys(named(*names), rule))
        return rule

    return register


@sized_rule("tensor_split")
def tensor_split(
    grad_mode: bool, size: Size, input: Any, tensor_indices_or_sections: Any, dim: Any = 0
) -> tuple[TensorMeta, ...]:
    """At the indices in a tensor. (In how many parts a number in a tensor splits it, only its data says.)"""
    x, indices = need_tensor(input), need_tensor(tensor_indices_or_sections)
    axis = need_dim(dim, x.ndim)
    if not x.shape or indices.ndim != 1 or indices.dtype is not torch.int64 or indices.device.type != "cpu":
        raise Decline
    return tuple(
        view_of(grad_mode, x, x.shape[:axis] + (size(part),) + x.shape[axis + 1 :], x.stride)
        for part in range(indices.shape[0] + 1)
    )


@meta_rule(*named("tensor_split"))
def tensor_split_known(
    grad_mode: bool, input: Any, indices_or_sections: Any, dim: Any = 0
) -> tuple[TensorMeta, ...]:
    """At indices that are not known while tracing; known ones are left to fake tensors, which cannot read tensors."""
    need_tensor(indices_or_sections)
    raise NeedsData("tensor_split at indices in a tensor")


@sized_rule("combinations")
def combinations(
    grad_mode: bool, size: Size, input: Any, r: Any = 2, with_replacement: Any = False
) -> TensorMeta:
    """The rows are selected by a mask."""
    x = need_tensor(input)
    if x.ndim != 1 or need_int(r) < 1:
        raise Decline
    return fresh((size(0), r), x.dtype, x.device, wants_grad(grad_mode, x))
