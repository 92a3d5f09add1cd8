"""Exceptions made in the trace, and what travels when one is raised in the trace."""

from __future__ import annotations

import sys
import types
from typing import Any

from ..pycode import expr as E
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .sequences import TupleVariable


class ObservedException(Exception):
    """The program raises `exception` at the current instruction of the trace. Caught by the frame that has a handler."""

    def __init__(self, exception: VariableTracker) -> None:
        super().__init__(exception.type_name())
        self.exception = exception


class ExceptionVariable(VariableTracker):
    """`cls(*args)` of a builtin exception class, or of one that adds nothing to it. One that was raised carries a traceback, which
    cannot be rebuilt: where it is still needed at the end of a graph, the graph ends where it was raised (decision 11), at
    instruction `raised_at` of the root frame."""

    __slots__ = ("cls", "args", "raised_at")
    mutable = True

    def __init__(self, cls: type[BaseException], args: list[VariableTracker]) -> None:
        super().__init__(None, VariableTracker.propagate(*args))
        self.cls = cls
        self.args = args
        self.raised_at: int | None = None

    def python_type(self) -> type:
        return self.cls

    def children(self) -> tuple[VariableTracker, ...]:
        return tuple(self.args)

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name == "args":
            return TupleVariable(list(self.args), guards=self.guards)
        if name == "value" and self.cls is StopIteration:
            return self.args[0] if self.args else ConstantVariable(None)
        return super().getattr(tx, name)

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def text(self) -> str | None:
        """`str(exception)`, when the arguments are known and the class prints them as BaseException does."""
        values = [a.as_python_constant() for a in self.args if a.is_python_constant()]
        if len(values) < len(self.args) or type(self.cls.__str__) is not types.WrapperDescriptorType:
            return None
        return str(self.cls(*values))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Call(E.Const(self.cls), tuple(emit.value(a) for a in self.args))


class TracebackVariable(VariableTracker):
    """The traceback that `__exit__` is given: it can be passed on and compared with None, not looked into."""

    __slots__ = ()

    def python_type(self) -> type:
        return types.TracebackType

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.impossible("a traceback")


class CallersExceptionVariable(VariableTracker):
    """What the frame's callers handle, an exception or None: what a handler of the frame saves and puts back."""

    __slots__ = ()

    def python_type(self) -> type:
        return object

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Item(E.Call(E.Const(sys.exc_info)), E.Const(1))


def follows(cls: Any) -> bool:
    """Making an instance runs nothing of the user's: a builtin exception class, or a subclass without `__init__`, `__new__` and
    `__str__` of its own."""
    if not (type(cls) is type and issubclass(cls, BaseException)):
        return False
    names = ("__init__", "__new__", "__getattribute__", "__setattr__", "__del__")
    return all(type(getattr(cls, name, None)) is not types.FunctionType for name in names)
