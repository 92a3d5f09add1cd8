"""`out=`: an operator that writes its result into a tensor that is given, and gives that tensor back.

It is captured where the result would have the tensor's size, dtype and device anyway, and autograd records nothing: then all that it
does is write. What would resize, convert or fail is left to plain Python.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..graph.meta import TensorMeta
from ..reasons import CALL_ARGUMENTS
from ..variables.base import Tracing, VariableTracker
from ..variables.tensor import TensorVariable
from ..variables.tensor_subclasses import TensorSubclass

#: Python functions of torch that hand `out` to an operator and return what that gives.
HANDED_ON = frozenset({torch.nn.functional.normalize})


def given(
    tx: Tracing, name: str, target: Callable[..., Any] | str, kwargs: dict[str, VariableTracker]
) -> TensorVariable | None:
    """The tensor that the call writes into; None without one. Breaks the graph where it is no tensor that is followed."""
    out = kwargs.get("out")
    if out is None or out.python_type() is type(None):
        return None
    known = type(target) is types.BuiltinFunctionType or target in HANDED_ON
    usual = isinstance(out, TensorVariable) and not isinstance(out, TensorSubclass)
    if not known or not usual or not isinstance(out.meta, TensorMeta):  # type: ignore[attr-defined]
        tx.unsupported(CALL_ARGUMENTS, name=name, detail="out=")
    return out  # type: ignore[return-value]


def check(tx: Tracing, name: str, out: TensorVariable, others: Sequence[TensorVariable], result: Any) -> None:
    """`result` is the metadata that the call would have without `out`. Breaks the graph where it differs, and where autograd has a say."""
    meta = out.meta
    assert isinstance(meta, TensorMeta)
    fits = (
        type(result) is TensorMeta
        and (result.shape, result.dtype, result.device) == (meta.shape, meta.dtype, meta.device)
        and result.layout is meta.layout is torch.strided
    )
    if not fits or meta.requires_grad or tx.grad_mode and any(map(may_require_grad, others)):
        tx.unsupported(CALL_ARGUMENTS, name=name, detail="out= of another size or dtype, or with gradients")


def may_require_grad(tensor: TensorVariable) -> bool:
    return not isinstance(tensor.meta, TensorMeta) or tensor.meta.requires_grad
