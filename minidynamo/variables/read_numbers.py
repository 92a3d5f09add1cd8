"""Numbers that may be others when the function is compiled again: ints and floats from outside, sizes of tensors, what is computed
with them. They are constants; the tape (`graph/tape.py`) is told when the trace looks at one."""

from __future__ import annotations

from typing import Any

from ..graph.tape import Tape, plain
from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..sources import Source
from .base import NO_GUARDS, Emitting, Provenance, Tracing, VariableTracker
from .constant import BINARY, COMPARE, ConstantVariable
from .registry import wraps

#: Operators whose results are numbers that the tape knows.
ARITHMETIC = {symbol: BINARY[symbol] for symbol in ("+", "-", "*", "/", "//", "%")}
NEAR = 2  # steps to what may well be another number in the next call; the strides of a layer of a model are further away
LIMIT = 1 << 64  # larger ints are left to Python's own rules


class ReadNumber(ConstantVariable):
    """A constant whose `value` is looked at when it is read, and not before: operators of a graph take it as it is.

    tape: None when it was looked at before the tape knew it: then a guard on its place says all. traced: the number as the tape knows
    it, None before
    """

    __slots__ = ("number", "tape", "traced")

    def __init__(
        self,
        number: Any,
        tape: Tape,
        traced: Any = None,
        source: Source | None = None,
        guards: Provenance = NO_GUARDS,
    ) -> None:
        self.source = source
        self.guards = guards
        self.number = number
        self.tape: Tape | None = tape
        self.traced = traced

    @property
    def value(self) -> Any:  # type: ignore[override]
        if self.tape is not None:
            self.look()
        return self.number

    def look(self) -> None:
        """The trace depends on what the number is."""
        if self.tape is not None and self.traced is not None:
            self.tape.pin(self.traced)
        self.tape = None

    def known(self) -> Any:
        """The number as the tape knows it."""
        if self.tape is None:
            return self.number
        if self.traced is None:
            assert self.source is not None
            self.traced = self.tape.number(self.number, self.source)
        return self.traced

    def python_type(self) -> type:
        return type(self.number)

    def as_python_proxy(self) -> Any:
        if self.tape is None:
            return self.number
        self.tape.handed = True
        return self.known()

    def as_meta(self) -> Any:
        return self.number

    def slot_truth(self, tx: Tracing) -> bool:
        truth: bool = tx.graph.tape.check(bool, self.known())
        return truth

    def reconstruct(self, emit: Emitting) -> E.Expr:
        return E.Const(self.value) if self.source is None else emit.load(self.source)


def arithmetic(tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker) -> ReadNumber | None:
    """`left symbol right` of two numbers, one of them read; None where that is not followed."""
    fn = ARITHMETIC.get(symbol.removesuffix("="))
    operands = None if fn is None else _operands(left, right)
    if fn is None or operands is None:
        return None
    try:
        value = fn(*map(plain, operands))
    except ArithmeticError:  # the program's own error
        return None
    if type(value) not in (int, float) or abs(value) > LIMIT:
        return None
    tape = tx.graph.tape
    traced = tape.computed(fn, operands, value)
    return ReadNumber(value, tape, traced, guards=VariableTracker.propagate(left, right))


def comparison(
    tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker
) -> ConstantVariable | None:
    """`left symbol right` of two numbers, one of them read; None where that is not followed."""
    operands = _operands(left, right)
    if operands is None:
        return None
    value = tx.graph.tape.check(COMPARE[symbol], *operands)
    return ConstantVariable(value, guards=VariableTracker.propagate(left, right))


def _operands(*operands: VariableTracker) -> tuple[Any, ...] | None:
    """The two numbers as the tape knows them; None where one is no number."""
    found = []
    for operand in operands:
        if type(operand) is ReadNumber:
            found.append(operand.known())
        elif type(operand) is ConstantVariable and type(operand.value) in (int, float):
            found.append(operand.value)
        else:
            return None
    return tuple(found)


@wraps(int, float)
def wrap_number(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    near = source.place()[0] <= NEAR
    made = ReadNumber(value, tx.graph.tape, None, source) if near else ConstantVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH, GuardBuilder.EQUALS_MATCH)
    return made
