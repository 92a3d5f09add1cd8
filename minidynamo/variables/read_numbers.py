"""Numbers that may be others when the function is compiled again: ints and floats from outside, sizes of tensors, what is computed
with them. They are constants; the tape (`graph/tape.py`) is told when the trace looks at one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..graph.tape import Tape, plain
from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..sources import Source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import ConstantVariable
from .registry import wraps

#: Operators whose results are numbers that the tape knows.
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "/": operator.truediv,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
LIMIT = 1 << 64  # larger ints are left to Python's own rules


class ReadNumber(ConstantVariable):
    """A constant whose `value` is looked at when it is read, and not before: operators of a graph take it as it is."""

    __slots__ = ("tape", "traced")

    def __init__(
        self, traced: Any, tape: Tape, source: Source | None = None, guards: Provenance = NO_GUARDS
    ) -> None:
        self.source = source
        self.guards = guards
        self.traced = traced
        self.tape = tape

    @property
    def value(self) -> Any:  # type: ignore[override]
        self.tape.pin(self.traced)
        return plain(self.traced)

    def python_type(self) -> type:
        kind: type = self.traced.__class__.__base__
        return kind

    def as_python_proxy(self) -> Any:
        return self.traced

    def as_meta(self) -> Any:
        return plain(self.traced)

    def slot_truth(self, tx: Tracing) -> bool:
        truth: bool = self.tape.check(bool, self.traced)
        return truth

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Const(self.value) if self.source is None else emit.load(self.source)


def arithmetic(symbol: str, left: VariableTracker, right: VariableTracker) -> ReadNumber | None:
    """`left symbol right` of two numbers, one of them read; None where that is not followed."""
    fn = ARITHMETIC.get(symbol.removesuffix("="))
    found = None if fn is None else _operands(left, right)
    if fn is None or found is None:
        return None
    tape, operands = found
    try:
        value = fn(*map(plain, operands))
    except ArithmeticError:  # the program's own error
        return None
    if type(value) not in (int, float) or abs(value) > LIMIT:
        return None
    return ReadNumber(tape.computed(fn, operands, value), tape, guards=VariableTracker.propagate(left, right))


def comparison(symbol: str, left: VariableTracker, right: VariableTracker) -> ConstantVariable | None:
    """`left symbol right` of two numbers, one of them read; None where that is not followed."""
    found = _operands(left, right)
    if found is None:
        return None
    tape, operands = found
    value = tape.check(COMPARISONS[symbol], *operands)
    return ConstantVariable(value, guards=VariableTracker.propagate(left, right))


def _operands(left: VariableTracker, right: VariableTracker) -> tuple[Tape, tuple[Any, Any]] | None:
    """The tape, and the two numbers as it knows them."""
    read = left if isinstance(left, ReadNumber) else right
    if not isinstance(read, ReadNumber):
        return None
    other = right if read is left else left
    if isinstance(other, ReadNumber):
        given = other.traced
    elif type(other) is ConstantVariable and type(other.value) in (int, float):
        given = other.value
    else:
        return None
    return read.tape, (read.traced, given) if read is left else (given, read.traced)


@wraps(int, float)
def wrap_number(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    tape = tx.graph.tape
    made = ReadNumber(tape.number(value, source), tape, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.EQUALS_MATCH)
    return made
