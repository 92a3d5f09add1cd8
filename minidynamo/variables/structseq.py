"""Results such as `torch.max(x, 0)`: tuples with named fields (`torch.return_types`)."""

from __future__ import annotations

from ..pycode import expr as E
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .sequences import TupleVariable


class StructSequenceVariable(TupleVariable):
    """A tuple subclass of torch with named fields; always made in the trace and rebuilt by calling its type."""

    __slots__ = ("struct_type",)
    compares_as_tuple = False

    def __init__(
        self, items: list[VariableTracker], struct_type: type, guards: Provenance = NO_GUARDS
    ) -> None:
        super().__init__(items, None, guards)
        self.struct_type = struct_type

    def python_type(self) -> type:
        return self.struct_type

    def is_python_constant(self) -> bool:
        return False

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        fields = [
            f
            for f in vars(self.struct_type)
            if type(vars(self.struct_type)[f]).__name__ == "member_descriptor"
        ]
        if name in fields:
            return self.items[fields.index(name)]
        return super().getattr(tx, name)

    def like(self, items: list[VariableTracker], guards: Provenance) -> TupleVariable:
        return TupleVariable(items, guards=guards)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(self.struct_type), (E.Tuple(tuple(emit.value(item) for item in self.items)),))
