"""Read-only objects that follow from what is known: limits of dtypes, signatures of functions."""

from __future__ import annotations

import inspect
import types
from typing import Any

import torch

from ..pycode import expr as E
from .base import Emitting, Tracing, VariableTracker
from .constant import CONSTANT_TYPES, ConstantVariable
from .sequences import TupleVariable


class LimitsVariable(VariableTracker):
    """`torch.finfo(dtype)` and `torch.iinfo(dtype)`."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        found = getattr(self.value, name, None) if not name.startswith("_") else None
        return (
            ConstantVariable(found)
            if type(found) in CONSTANT_TYPES - {type(None)}
            else super().getattr(tx, name)
        )

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(type(self.value)), (E.Const(getattr(torch, self.value.dtype)),))


class SignatureVariable(VariableTracker):
    """`inspect.signature(fn)`: which parameters there are."""

    __slots__ = ("fn", "names")

    def __init__(self, fn: VariableTracker, names: tuple[str, ...]) -> None:
        super().__init__(None, VariableTracker.propagate(fn))
        self.fn = fn
        self.names = names

    def python_type(self) -> type:
        return inspect.Signature

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.fn,)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        return ParametersVariable(self) if name == "parameters" else super().getattr(tx, name)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(inspect.signature), (emit.value(self.fn),))


class ParametersVariable(VariableTracker):
    """`inspect.signature(fn).parameters`: the names, as keys of a mapping."""

    __slots__ = ("signature",)

    def __init__(self, signature: SignatureVariable) -> None:
        super().__init__(None, signature.guards)
        self.signature = signature

    def python_type(self) -> type:
        return types.MappingProxyType

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.signature,)

    def names(self) -> TupleVariable:
        return TupleVariable([ConstantVariable(name) for name in self.signature.names], guards=self.guards)

    def slot_len(self, tx: Tracing) -> int:
        return len(self.signature.names)

    def slot_truth(self, tx: Tracing) -> bool:
        return bool(self.signature.names)

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        return self.names().slot_contains(tx, item.realize(tx))

    def slot_iter(self, tx: Tracing) -> VariableTracker:
        return self.names().slot_iter(tx)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Attr(emit.value(self.signature), "parameters")


def parameter_names(code: types.CodeType) -> tuple[str, ...]:
    """The parameters in the order of a signature: positional, `*args`, keyword-only, `**kwargs`."""
    names, count, only = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    star = count + only
    rest = names[star : star + 1] if code.co_flags & inspect.CO_VARARGS else ()
    keywords = (
        names[star + len(rest) : star + len(rest) + 1] if code.co_flags & inspect.CO_VARKEYWORDS else ()
    )
    return (*names[:count], *rest, *names[count:star], *keywords)
