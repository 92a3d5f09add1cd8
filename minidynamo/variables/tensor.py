"""Tensors: a graph node and what is known of its metadata."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ..graph.meta import SymbolicMeta, TensorMeta, WrapperMeta
from ..guards.builder import GuardBuilder
from ..markers import DYNAMIC_MARK, tell_static
from ..pycode import expr as E
from ..reasons import OPERATOR_FAILS, TENSOR_STATE, TENSOR_SUBCLASS, TENSOR_TRUTH
from ..sources import Source
from ..static_access import has_static_attr, type_lookup
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import BINARY, COMPARE, INPLACE, UNARY, ConstantVariable
from .functions import BuiltinVariable
from .registry import wraps


class TensorVariable(VariableTracker):
    """A tensor in the graph. One that came from outside is rebuilt from its source (identity kept), one that was made in
    the graph is a graph output."""

    __slots__ = ("proxy", "meta")

    def __init__(
        self,
        proxy: torch.fx.Proxy,
        meta: TensorMeta | SymbolicMeta | WrapperMeta,
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
    ) -> None:
        super().__init__(source, guards)
        self.proxy = proxy
        self.meta = meta

    def python_type(self) -> type:
        return torch.nn.Parameter if self.meta.is_parameter else torch.Tensor

    def is_proxy(self) -> bool:
        return True

    def as_proxy(self) -> torch.fx.Proxy:
        return self.proxy

    def as_python_proxy(self) -> Any:
        return self.proxy.node

    def as_meta(self) -> Any:
        return self.meta

    def as_key(self, tx: Tracing) -> Any:
        """By identity. (A set compares two tensors only when their hashes, the identities, are equal.)"""
        return super().as_key(tx) if self.source is None else tx.trace.identity_of(self)

    def origin(self) -> Source | None:
        """Where the tensor comes from whose memory an operator that writes into this one certainly changes."""
        return self.source

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return emit.graph_output(self.proxy.node)

    # --- operators: each is one node ---------------------------------------------------------------------------------
    def slot_binary(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        """`2 *= tensor` is `2 * tensor`: a number has no in-place slot."""
        if symbol in INPLACE and not isinstance(left, TensorVariable):
            symbol = symbol.removesuffix("=")
        return tx.tensor_op(BINARY.get(symbol) or INPLACE[symbol], [left, right], {})

    def slot_compare(
        self, tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | None:
        return tx.tensor_op(COMPARE[symbol], [left, right], {})

    def slot_unary(self, tx: Tracing, symbol: str) -> VariableTracker:
        return tx.tensor_op(UNARY[symbol], [self], {})

    def slot_truth(self, tx: Tracing) -> bool:
        tx.unsupported(TENSOR_TRUTH)

    def slot_len(self, tx: Tracing) -> int:
        if not self.meta.ndim:
            return VariableTracker.slot_len(self, tx)
        if isinstance(self.meta, SymbolicMeta):
            size: int = tx.tensor_op("__len__", [self], {}).as_python_constant()
            return size
        tape, size = tx.graph.tape, self.meta.shape[0]
        tape.pin(tape.ask(("method", "__len__"), (self.proxy.node,), {}, size))
        return size

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        return tx.tensor_op(operator.getitem, [self, key], {})

    def slot_setitem(self, tx: Tracing, key: VariableTracker, value: VariableTracker) -> None:
        tx.tensor_op(operator.setitem, [self, key, value], {})

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        """Iterating a tensor unbinds it."""
        if not self.meta.ndim:
            return VariableTracker.slot_iter(self, tx)
        return tx.tensor_op("unbind", [self, ConstantVariable(0)], {}).slot_iter(tx)

    # --- attributes and methods -----------------------------------------------------------------------------------------
    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        kind = tx.tensor_attribute(name)
        if kind == "method":
            return TensorMethodVariable(self, name)
        if name == "data":
            return self.read_data(tx)
        if kind in ("meta", "graph"):
            return tx.tensor_op(getattr, [self, ConstantVariable(name)], {})
        if type_lookup(self.python_type(), name) is None and not self.has_own(tx, name):
            tx.unsupported(OPERATOR_FAILS, name=f"Tensor.{name}", error="AttributeError")
        tx.unsupported(TENSOR_STATE, name=f"Tensor.{name}")

    def read_data(self, tx: Tracing) -> VariableTracker:
        """Attribute `data`: another tensor over the same memory, of which autograd knows nothing."""
        return tx.tensor_op(READ_DATA, [self], {})

    def has_own(self, tx: Tracing, name: str) -> bool:
        """Whether the object has an attribute that its type has not: one that somebody stored there."""
        return self.source is not None and has_static_attr(tx.graph.inputs[self.proxy.node].example, name)

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name in RULED_METHODS:
            return tx.call(BuiltinVariable(RULED_METHODS[name], None), [self, *args], kwargs)
        return tx.tensor_op(name, [self, *args], kwargs)


READ_DATA = torch._C._autograd._get_data_attr  # type: ignore[attr-defined]
RULED_METHODS: dict[str, Any] = {"as_subclass": torch.Tensor.as_subclass}  # methods that are no operators


class TensorMethodVariable(VariableTracker):
    """`tensor.name`, a bound method that has not been called yet."""

    __slots__ = ("tensor", "name")

    def __init__(self, tensor: TensorVariable, name: str) -> None:
        super().__init__(None, VariableTracker.propagate(tensor))
        self.tensor = tensor
        self.name = name

    def python_type(self) -> type:
        return type(torch.Tensor.add)

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.tensor,)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.tensor.call_method(tx, self.name, args, kwargs)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Attr(emit.value(self.tensor), self.name)


REFUSED: tuple[tuple[str, Callable[[torch.Tensor], bool]], ...] = (
    ("nested", lambda t: t.is_nested),
    ("layout without strides", lambda t: t.layout is not torch.strided),
    ("a view of a tensor without strides", lambda t: t._is_view() and t._base.layout is not torch.strided),  # type: ignore[union-attr]
    ("quantized", lambda t: t.is_quantized),
    ("lazily conjugated or negated", lambda t: t.is_conj() or t.is_neg()),
    ("a functorch wrapper", torch._C._functorch.is_functorch_wrapped_tensor),
)


def refused_detail(value: torch.Tensor) -> str | None:
    """Why a tensor of class torch.Tensor is not followed, or None."""
    return next((text for text, refuses in REFUSED if refuses(value)), None)


@wraps(torch.Tensor, torch.nn.Parameter)
def wrap_tensor(tx: Tracing, value: torch.Tensor, source: Source) -> VariableTracker:
    detail = refused_detail(value)
    if detail is not None:
        tx.unsupported(TENSOR_SUBCLASS, type=type(value).__name__, detail=detail)
    if DYNAMIC_MARK in value.__dict__:  # torch's mark_dynamic was here
        tell_static(tx.where())
    meta = TensorMeta.of(value)
    made = TensorVariable(tx.graph.add_input(source, value, meta=meta), meta, source)
    made.make_guards(tx, GuardBuilder.TENSOR_MATCH)
    return made
