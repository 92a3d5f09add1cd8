"""`x.__dict__`: the attributes that lie in an instance, as a dict."""

from __future__ import annotations

from ..pycode import expr as E
from ..reasons import OPAQUE_VALUE
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable

NONE = ConstantVariable(None)


class InstanceDictVariable(VariableTracker):
    """Reads, tests and writes of single attributes go to the instance's tracker. Rebuilt by reading `__dict__` again."""

    __slots__ = ("owner",)
    mutable = True

    def __init__(self, owner: VariableTracker) -> None:
        super().__init__(None, VariableTracker.propagate(owner))
        self.owner = owner

    def python_type(self) -> type:
        return dict

    def children(self) -> tuple[VariableTracker, ...]:
        return (self.owner,)

    def attribute(self, tx: Tracing, key: VariableTracker) -> VariableTracker | None:
        """The value under a name that is known, None when it is not there."""
        key = key.realize(tx)
        if not key.is_python_constant() or type(key.as_python_constant()) is not str:
            tx.unsupported(
                OPAQUE_VALUE, operation="key that is no known name", type="__dict__ of an instance"
            )
        return self.owner.instance_attribute(tx, key.as_python_constant())  # type: ignore[attr-defined, no-any-return]

    def slot_truth(self, tx: Tracing) -> bool:
        self._opaque(tx, "truth value")

    def slot_contains(self, tx: Tracing, item: VariableTracker) -> bool:
        return self.attribute(tx, item) is not None

    def slot_getitem(self, tx: Tracing, key: VariableTracker) -> VariableTracker:
        found = self.attribute(tx, key)
        if found is None:
            tx.raises("subscript", KeyError, key)
        return found

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "get" and len(args) in (1, 2) and not kwargs:
            found = self.attribute(tx, args[0])
            return found if found is not None else args[1] if len(args) == 2 else NONE
        if name == "__getitem__" and len(args) == 1 and not kwargs:
            return self.slot_getitem(tx, args[0])
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(object.__getattribute__), (emit.value(self.owner), E.Const("__dict__")))
