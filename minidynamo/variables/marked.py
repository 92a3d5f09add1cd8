"""Functions that a program has marked: `disable`, `assume_constant_result`; ours or torch's."""

from __future__ import annotations

import types
from typing import Any

from ..cache import reset_code
from ..guards.builder import GuardBuilder
from ..markers import CONSTANT_MARK, is_left_out, leave_out
from ..pycode import expr as E
from ..reasons import CALL_ARGUMENTS, DISABLED_CALL
from ..sources import Source
from .base import Emitting, Tracing, VariableTracker
from .constant import constant_value


class MarkedVariable(VariableTracker):
    """A marked function: guarded by identity, always rebuilt from its source."""

    __slots__ = ("fn",)
    source: Source

    def __init__(self, fn: Any, source: Source) -> None:
        super().__init__(source)
        self.fn = fn

    def python_type(self) -> type:
        return type(self.fn)

    def name(self) -> str:
        return getattr(self.fn, "__qualname__", repr(type(self.fn)))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return emit.load(self.source)


class DisabledVariable(MarkedVariable):
    """Calling it breaks the graph."""

    __slots__ = ()

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        tx.unsupported(DISABLED_CALL, name=self.name())


class ConstantResultVariable(MarkedVariable):
    """`assume_constant_result`: called here and now, the one place where a trace runs code of the program; that is what the mark says."""

    __slots__ = ()

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        tx.trace.comparable = False  # plain Python may give another result
        args = [each.realize(tx) for each in args]
        kwargs = {key: value.realize(tx) for key, value in kwargs.items()}
        if not all(each.is_python_constant() for each in (*args, *kwargs.values())):
            detail = "assume_constant_result takes constants"
            tx.unsupported(CALL_ARGUMENTS, name=self.name(), detail=detail)
        try:
            value = self.fn(
                *(each.as_python_constant() for each in args),
                **{key: each.as_python_constant() for key, each in kwargs.items()},
            )
        except Exception as error:  # the program's own: plain Python raises it again
            tx.fails(self.name(), error)
        return constant_value(tx, self.name(), value, VariableTracker.propagate(*args, *kwargs.values()))


def marked(tx: Tracing, value: types.FunctionType, source: Source) -> VariableTracker | None:
    """The tracker of a function with a mark; None for one without."""
    own = value.__dict__
    made: VariableTracker
    if is_left_out(value.__code__) or own.get("_torchdynamo_disable") is True:
        if own.get("_torchdynamo_disable_recursive") is False:
            _leave_out_inner(own.get("_torchdynamo_orig_callable"))
        made = DisabledVariable(value, source)
    elif own.get(CONSTANT_MARK) is True:
        made = ConstantResultVariable(value, source)
    else:
        return None
    made.make_guards(tx, GuardBuilder.ID_MATCH)
    return made


def _leave_out_inner(fn: Any) -> None:
    """torch's `disable(fn, recursive=False)` gives a wrapper: the frame of `fn` is the one that is not captured."""
    if isinstance(fn, types.FunctionType) and not is_left_out(fn.__code__):
        leave_out(fn.__code__)
        reset_code(fn.__code__)
