"""Python numbers that are read from tensors: `x.sum().item()`. What such a number is, only the graph knows when it runs; it is handed
to operators, returned and stored like any other value. What must know it ends the graph."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from ..graph.meta import NumberMeta
from ..pycode import expr as E
from ..reasons import TENSOR_DATA, TENSOR_TRUTH
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import BINARY
from .tensor import TensorVariable

#: Arithmetic of integers, which compilers do as Python does. (Of floats they do it in another order.)
INTEGER_OPERATORS = ("+", "-", "*")
#: The types of elements that are followed.
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def kind_of(dtype: torch.dtype) -> type | None:
    """The type of the number that an element of this dtype is; None where it is not followed."""
    if dtype is torch.bool:
        return bool
    return int if dtype in INTEGERS else float if dtype in FLOATS else None


class NumberVariable(VariableTracker):
    """A node of the graph whose value is a bool, an int or a float."""

    __slots__ = ("proxy", "kind")

    def __init__(self, proxy: torch.fx.Proxy, kind: type, guards: Provenance = NO_GUARDS) -> None:
        super().__init__(None, guards)
        self.proxy = proxy
        self.kind = kind

    def python_type(self) -> type:
        return self.kind

    def is_proxy(self) -> bool:
        return True

    def as_proxy(self) -> torch.fx.Proxy:
        return self.proxy

    def as_meta(self) -> Any:
        return NumberMeta(self.kind)

    def _opaque(self, tx: Tracing, operation: str) -> NoReturn:
        tx.unsupported(TENSOR_DATA, name=f"{operation} of a number that was read from a tensor")

    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """CPython: the slots of int and float decline tensors, sequences and whatever is no number."""
        other = right if left is self else left
        if isinstance(other, TensorVariable):
            return None
        plain = symbol.removesuffix("=")
        if self.kind is not int or other.python_type() is not int or plain not in INTEGER_OPERATORS:
            self._opaque(tx, f"operator {symbol}")
        operands = tuple(operand.as_python_proxy() for operand in (left, right))
        proxy = tx.graph.add_op(BINARY[plain], operands, {}, tx.position())
        tx.note_operator()
        return NumberVariable(proxy, int, VariableTracker.propagate(left, right))

    def as_key(self, tx: Tracing) -> Any:
        self._opaque(tx, "hashing")

    def slot_truth(self, tx: Tracing) -> bool:
        tx.unsupported(TENSOR_TRUTH)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.graph_output(self.proxy.node)
