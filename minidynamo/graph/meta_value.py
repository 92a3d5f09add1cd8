"""What the tracer knows of a tensor, and the ways in which working that out can fail."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import torch

from minidynamo.exc import MinidynamoError

Shape: TypeAlias = tuple[int, ...]

#: A tree of TensorMeta and Python constants: what `infer` takes as arguments and gives as result.
Result: TypeAlias = Any


@lru_cache(maxsize=4096)
def contiguous_strides(shape: Shape) -> Shape:
    """The strides of a freshly made contiguous tensor (an empty dimension counts as one element)."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=4096)
def is_contiguous(shape: Shape, stride: Shape) -> bool:
    """Tensor.is_contiguous(): dimensions of one element may have any stride; a tensor without elements is
    contiguous.
    """
    if 0 in shape:
        return True
    step = 1
    for size, have in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1:
            if have != step:
                return False
            step *= size
    return True


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """Everything about a tensor that does not depend on its data. Equality is by value.

    `stride` is () for layouts that have none. `is_leaf` is False for a tensor with a history (a non-leaf that
    requires a gradient); it decides whether in-place operators are allowed. `is_inference`: made in inference mode.
    """

    shape: Shape
    stride: Shape
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool = False
    layout: torch.layout = torch.strided
    is_leaf: bool = True
    is_parameter: bool = False
    is_inference: bool = False

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorMeta:
        """The metadata of a real (or fake) tensor. Raises Unknown for nested tensors, which have no one
        shape.
        """
        if tensor.is_nested:
            raise Unknown("a nested tensor has no single shape")
        layout = tensor.layout
        return cls(
            tuple(tensor.shape),
            tuple(tensor.stride()) if layout is torch.strided else (),
            tensor.dtype,
            tensor.device,
            tensor.requires_grad,
            layout,
            tensor.is_leaf,
            type(tensor) is not torch.Tensor and isinstance(tensor, torch.nn.Parameter),
            tensor.is_inference(),
        )

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def shape_text(self) -> str:
        """Its sizes for people: `(2, 3)`."""
        return str(tuple(self.shape))

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps; False for layouts without strides."""
        return self.layout is torch.strided and is_contiguous(self.shape, self.stride)

    def make_empty(self) -> torch.Tensor:
        """A tensor with this metadata and undefined data: real, or fake inside a FakeTensorMode.

        A non-leaf is built with a history, so that in-place operators see what they would see in the program.
        Raises Unknown for layouts other than strided.
        """
        if self.layout is not torch.strided:
            raise Unknown(f"tensors of layout {self.layout} cannot be made from metadata")
        if self.is_inference != torch.is_inference_mode_enabled():
            with torch.inference_mode(self.is_inference):
                return self.make_empty()
        if not self.requires_grad or self.is_leaf:
            tensor = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=self.device)
            tensor.requires_grad_(self.requires_grad)
            return torch.nn.Parameter(tensor, self.requires_grad) if self.is_parameter else tensor
        with torch.enable_grad():
            leaf = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=self.device)
            copy = leaf.requires_grad_().clone()
            if tuple(copy.stride()) == self.stride:
                return copy
            extent = (
                0
                if 0 in self.shape
                else 1 + sum((n - 1) * step for n, step in zip(self.shape, self.stride, strict=True))
            )
            flat = torch.empty(extent, dtype=self.dtype, device=self.device)
            return flat.requires_grad_().clone().as_strided(self.shape, self.stride)


class MetaError(MinidynamoError):
    """Metadata of a result could not be worked out. The tracer answers with a graph break or a symbolic
    raise.
    """


class NeedsData(MetaError):
    """The result (its value or its shape) depends on the data of a tensor, e.g. `.item()`, `nonzero()`."""


class OpFailed(MetaError):
    """The operator itself raises for these arguments; `exception` is what it raises."""

    def __init__(self, exception: BaseException) -> None:
        super().__init__(f"{type(exception).__name__}: {exception}")
        self.exception = exception


class MutatesMeta(MetaError):
    """The operator changes the metadata of an argument, e.g. `t_()`, `requires_grad_()`.

    `after` holds (metadata of the argument before, metadata after) for each argument that changes, as far as
    known. `history_only`: all that changes is that the arguments have a history now (`x[0] = w` where only w
    requires a gradient).
    """

    def __init__(self, message: str, after: tuple[tuple[TensorMeta, TensorMeta], ...] = ()) -> None:
        super().__init__(message)
        self.after = after
        self.history_only = bool(after) and all(
            _without_history(old) == _without_history(new) for old, new in after
        )


def _without_history(meta: TensorMeta) -> TensorMeta | None:
    """The metadata apart from a history; None for a leaf that requires a gradient: no write makes one."""
    if meta.requires_grad and meta.is_leaf:
        return None
    return replace(meta, requires_grad=False, is_leaf=True)


class Unknown(MetaError):
    """Neither a metadata rule nor a fake tensor can run the operator on these arguments."""


class Decline(Exception):
    """Raised by a metadata rule that cannot be exact for its arguments; `infer` then asks a fake tensor."""


def named(value: Any) -> torch.device | None:
    """The device that an argument of an operator names: a torch.device or its text."""
    if type(value) is torch.device:
        return value
    if type(value) is str:
        try:
            return torch.device(value)
        except RuntimeError:  # any other text
            return None
    return None
