"""A value nobody has looked at yet: it costs no guard and is rebuilt by loading it again."""

from __future__ import annotations

from typing import Any

from ..pycode import expr as E
from ..sources import Source
from .base import NO_GUARDS, Emitting, Tracing, VariableTracker


class LazyVariable(VariableTracker):
    """Wraps (value, source); the first `realize` makes the real tracker, with its guards. Always rebuilt from its source
    while nobody looked; afterwards it stands for the real tracker."""

    __slots__ = ("value", "real")
    source: Source

    def __init__(self, value: Any, source: Source) -> None:
        self.source = source
        self.guards = NO_GUARDS
        self.value = value
        self.real: VariableTracker | None = None

    def realize(self, tx: Tracing) -> VariableTracker:
        if self.real is None:
            self.real = tx.trace.wrap(tx, self.value, self.source)
        return self.real

    def python_type(self) -> type:
        return type(self.value)

    def is_python_constant(self) -> bool:
        return self.real is not None and self.real.is_python_constant()

    def as_python_constant(self) -> Any:
        return (
            VariableTracker.as_python_constant(self) if self.real is None else self.real.as_python_constant()
        )

    def as_python_proxy(self) -> Any:
        return VariableTracker.as_python_proxy(self) if self.real is None else self.real.as_python_proxy()

    def as_meta(self) -> Any:
        return VariableTracker.as_meta(self) if self.real is None else self.real.as_meta()

    def children(self) -> tuple[VariableTracker, ...]:
        return () if self.real is None else (self.real,)

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.real is not None:
            return emit.value(self.real)
        return emit.load(self.source)
