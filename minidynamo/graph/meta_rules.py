"""The table of metadata rules (tier 1), and the vocabulary they are written in.

A rule is a function `rule(grad_mode, *args, **kwargs)` with the operator's own parameters, TensorMeta in the
place of tensors. It returns metadata that is exact in shape, stride, dtype, device and requires_grad, or
raises Decline (or returns NotImplemented): a rule never guesses, and leaves every error to the operator
itself (tier 2 words it). Arguments that do not fit the rule's signature count as declined.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

import torch

from minidynamo.exc import InternalError
from minidynamo.graph.meta_value import Decline, Result, Shape, TensorMeta, contiguous_strides

Rule = Callable[..., Result]
RuleT = TypeVar("RuleT", bound=Rule)

#: operator -> rule. A key is the callable itself or ("method", name).
RULES: dict[Hashable, Rule] = {}

NUMBERS = (int, float, bool, complex)


def meta_rule(*operators: Hashable) -> Callable[[RuleT], RuleT]:
    """Register a rule for operators: callables or ("method", name). A second rule for an operator is an
    InternalError.
    """

    def register(rule: RuleT) -> RuleT:
        for operator in operators:
            if RULES.setdefault(operator, rule) is not rule:
                raise InternalError(f"two metadata rules for {operator!r}")
        return rule

    return register


def named(*names: str, spaces: Iterable[Any] = (torch,)) -> Iterator[Hashable]:
    """The operators of these names: the function in each namespace that has it, and the tensor method."""
    for name in names:
        seen: set[int] = set()
        for space in spaces:
            function = getattr(space, name, None)
            if function is not None and id(function) not in seen:
                seen.add(id(function))
                yield function
        if hasattr(torch.Tensor, name):
            yield ("method", name)


def is_tensor(value: object) -> bool:
    """Whether an argument stands for a tensor."""
    return type(value) is TensorMeta


def need_tensor(value: Any) -> TensorMeta:
    """The argument, which must stand for a strided tensor; else the rule declines."""
    if type(value) is not TensorMeta or value.layout is not torch.strided:
        raise Decline
    return value


def need_int(value: Any) -> int:
    """The argument, which must be a plain int."""
    if type(value) is not int:
        raise Decline
    return value


def need_dim(dim: Any, ndim: int) -> int:
    """A dimension number made non-negative; a 0-dim tensor counts as one of one dimension, as in torch."""
    if type(dim) is not int or not -max(ndim, 1) <= dim < max(ndim, 1):
        raise Decline
    return dim + max(ndim, 1) if dim < 0 else dim


def need_sizes(sizes: tuple[Any, ...]) -> Shape:
    """Sizes given as `(2, 3)` or as one sequence `((2, 3),)`, each a plain int."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    for size in sizes:
        if type(size) is not int:
            raise Decline
    return tuple(sizes)


def need_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """An int or a sequence of ints as distinct non-negative dimension numbers."""
    many = (dims,) if type(dims) is int else dims
    if not isinstance(many, (tuple, list)):
        raise Decline
    found = tuple(need_dim(dim, ndim) for dim in many)
    if len(set(found)) != len(found):
        raise Decline
    return found


def same_device(*tensors: TensorMeta) -> torch.device:
    """The one device of the tensors; declines when they lie on several."""
    device = tensors[0].device
    for tensor in tensors[1:]:
        if tensor.device != device:
            raise Decline
    return device


def differentiable(dtype: torch.dtype) -> bool:
    """Whether tensors of this dtype can require a gradient."""
    return dtype.is_floating_point or dtype.is_complex


def wants_grad(grad_mode: bool, *operands: Any) -> bool:
    """Whether the result of a differentiable operator on these operands requires a gradient."""
    if grad_mode:
        for operand in operands:
            if type(operand) is TensorMeta and operand.requires_grad:
                return True
    return False


def fresh(
    shape: Shape,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool = False,
    stride: Shape | None = None,
) -> TensorMeta:
    """The result of an operator: contiguous unless strides are given; a gradient only where the dtype can
    have one.
    """
    if requires_grad and not differentiable(dtype):
        requires_grad = False
    if stride is None:
        stride = contiguous_strides(shape)
    return TensorMeta(
        shape, stride, dtype, device, requires_grad, torch.strided, not requires_grad, False,
        torch.is_inference_mode_enabled(),
    )  # fmt: skip


def view_of(
    grad_mode: bool, base: TensorMeta, shape: Shape, stride: Shape, dtype: torch.dtype | None = None
) -> TensorMeta:
    """A view of `base`. Without grad mode it still requires a gradient, as its base does, but has no history
    of its own. (A view of a tensor made in inference mode requires none.)
    """
    needs = base.requires_grad and not base.is_inference
    return TensorMeta(
        shape, stride, dtype or base.dtype, base.device, needs, torch.strided, not (needs and grad_mode), False,
        base.is_inference,
    )  # fmt: skip
