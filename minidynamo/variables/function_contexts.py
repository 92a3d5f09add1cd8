"""`ctx` of a torch.autograd.Function, while its `forward` and `backward` are looked at."""

from __future__ import annotations

from collections.abc import Callable

from ..pycode import expr as E
from ..reasons import STORE
from .base import Emitting, Tracing, VariableTracker
from .sequences import NONE, TupleVariable

OWN = (
    "saved_tensors",
    "needs_input_grad",
    "to_save",
    "non_differentiable",
    "dirty_tensors",
    "materialize_grads",
)


class FunctionContextVariable(VariableTracker):
    """Attributes that `forward` stores are there in `backward`. It never outlives the look, and nothing rebuilds it."""

    __slots__ = ("attributes", "saved", "needs", "constant_outputs")
    mutable = True

    def __init__(self, needs: TupleVariable) -> None:
        super().__init__()
        self.attributes: dict[str, VariableTracker] = {}
        self.saved: list[VariableTracker] = []
        self.needs = needs
        self.constant_outputs: list[VariableTracker] = []  # those that were marked as not differentiable

    def python_type(self) -> type:
        return object  # which one nobody may ask

    def children(self) -> tuple[VariableTracker, ...]:
        return (*self.saved, *self.attributes.values())

    def forget(self) -> None:
        self.saved.clear()
        self.attributes.clear()

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name == "saved_tensors":
            return TupleVariable(list(self.saved))
        if name == "needs_input_grad":
            return self.needs
        if name in METHODS:
            return ContextMethodVariable(self, name)
        found = self.attributes.get(name)
        return super().getattr(tx, name) if found is None else found

    def setattr(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        if name in OWN or name.startswith("__"):
            tx.unsupported(
                STORE, operation=f"assignment of attribute {name}", what="the ctx of an autograd function"
            )
        self.attributes[name] = value

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.getattr(tx, name), args, kwargs)

    def type_name(self) -> str:
        return "ctx of an autograd function"

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.impossible("the ctx of an autograd function")


def _save(ctx: FunctionContextVariable, tx: Tracing, tensors: list[VariableTracker]) -> None:
    ctx.saved = [tensor.realize(tx) for tensor in tensors]


def _mark(ctx: FunctionContextVariable, tx: Tracing, tensors: list[VariableTracker]) -> None:
    ctx.constant_outputs = [tensor.realize(tx) for tensor in tensors]


def _materialize(ctx: FunctionContextVariable, tx: Tracing, given: list[VariableTracker]) -> None:
    value = given[0].realize(tx) if len(given) == 1 else ctx
    if not value.is_python_constant() or value.as_python_constant() is not True:
        ctx._opaque(tx, "set_materialize_grads(False)")


METHODS: dict[str, Callable[[FunctionContextVariable, Tracing, list[VariableTracker]], None]] = {
    "save_for_backward": _save,
    "mark_non_differentiable": _mark,
    "set_materialize_grads": _materialize,
}


class ContextMethodVariable(VariableTracker):
    """A bound method of `ctx`."""

    __slots__ = ("ctx", "name")

    def __init__(self, ctx: FunctionContextVariable, name: str) -> None:
        super().__init__()
        self.ctx = ctx
        self.name = name

    def python_type(self) -> type:
        return object

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.ctx,)

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if kwargs:
            self._opaque(tx, f"{self.name} with these arguments")
        METHODS[self.name](self.ctx, tx, args)
        return NONE

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.impossible("a method of the ctx of an autograd function")
