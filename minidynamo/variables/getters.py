"""operator.itemgetter, attrgetter and methodcaller made in the trace."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..pycode import expr as E
from ..reasons import UNSUPPORTED_CALL
from . import protocol
from .base import Emitting, Tracing, VariableTracker
from .sequences import TupleVariable


class GetterVariable(VariableTracker):
    """`cls(*args, **kwargs)`. Rebuilt by the same call."""

    __slots__ = ("cls", "args", "keywords")
    mutable = True

    def __init__(self, cls: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]) -> None:
        super().__init__(None, VariableTracker.propagate(*args, *kwargs.values()))
        self.cls = cls
        self.args = TupleVariable(args)
        self.keywords = kwargs

    def python_type(self) -> Any:
        return self.cls

    def children(self) -> tuple[VariableTracker, ...]:
        return (*self.args.items, *self.keywords.values())

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if kwargs or len(args) != 1:
            tx.unsupported(UNSUPPORTED_CALL, name=f"an {self.type_name()} with these arguments")
        return GETTERS[self.cls](tx, self, args[0])

    def each(self, get: Callable[[VariableTracker], VariableTracker]) -> VariableTracker:
        """One value for one key, a tuple for several."""
        found = [get(key) for key in self.args.items]
        return found[0] if len(found) == 1 else TupleVariable(found)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        args = tuple(emit.value(a) for a in self.args.items)
        if not self.keywords:
            return E.Call(E.Const(self.cls), args)
        names = E.Map(
            tuple(E.Const(name) for name in self.keywords), tuple(map(emit.value, self.keywords.values()))
        )
        return E.CallEx(E.Const(self.cls), E.Tuple(args), names)


def text(tx: Tracing, value: VariableTracker) -> str:
    value = value.realize(tx)
    if not value.is_python_constant() or type(value.as_python_constant()) is not str:
        tx.unsupported(UNSUPPORTED_CALL, name="a getter of operator with a name that is not known")
    return str(value.as_python_constant())


def _attribute(tx: Tracing, owner: VariableTracker, path: str) -> VariableTracker:
    for name in path.split("."):
        owner = protocol.getattr_(tx, owner, name)
    return owner


def _item(tx: Tracing, self: GetterVariable, owner: VariableTracker) -> VariableTracker:
    return self.each(lambda key: protocol.getitem(tx, owner, key))


def _attr(tx: Tracing, self: GetterVariable, owner: VariableTracker) -> VariableTracker:
    return self.each(lambda name: _attribute(tx, owner, text(tx, name)))


def _method(tx: Tracing, self: GetterVariable, owner: VariableTracker) -> VariableTracker:
    method = protocol.getattr_(tx, owner, text(tx, self.args.items[0]))
    return tx.call(method, list(self.args.items[1:]), dict(self.keywords))


GETTERS: dict[Any, Callable[[Tracing, GetterVariable, VariableTracker], VariableTracker]] = {
    operator.itemgetter: _item,
    operator.attrgetter: _attr,
    operator.methodcaller: _method,
}
