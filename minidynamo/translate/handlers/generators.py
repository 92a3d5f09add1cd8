"""Generators consumed in the frame: the frame of an inlined generator stops at each yield."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...static_access import is_subtype
from ...variables import protocol
from ...variables.base import VariableTracker
from ...variables.constant import ConstantVariable
from ...variables.exceptions import raised_again
from ...variables.generators import GeneratorVariable, value_of
from ...variables.raising import ObservedException
from ...variables.user_objects import UserObject
from .table import handles

NONE = ConstantVariable(None)


@handles("RETURN_GENERATOR")
def return_generator(tx: Any, inst: Instruction) -> None:
    """The generator exists already when its frame is executed: the first value sent is None."""
    tx.push(NONE)


@handles("YIELD_VALUE")
def yield_value(tx: Any, inst: Instruction) -> None:
    """What is sent takes the place of the None that is pushed here."""
    tx.yielded = tx.pop()
    tx.push(NONE)


@handles("GET_YIELD_FROM_ITER")
def get_yield_from_iter(tx: Any, inst: Instruction) -> None:
    tx.push(protocol.iterate(tx, tx.pop()))


@handles("SEND")
def send(tx: Any, inst: Instruction) -> None:
    """CPython: PyIter_Send. `delegate` is what an exception that is thrown in goes to, while the frame stands at the yield behind."""
    value = tx.pop().realize(tx)
    receiver = tx.stack[-1].realize(tx)
    tx.delegate = None
    item, result = _advance(tx, receiver, value)
    if item is None:
        tx.push(result)
        tx.jump(inst.target)
    else:
        tx.delegate, tx.delegation_ends = receiver, inst.target
        tx.push(item)


def _advance(
    tx: Any, receiver: VariableTracker, value: VariableTracker
) -> tuple[VariableTracker | None, VariableTracker]:
    if isinstance(receiver, GeneratorVariable):
        return receiver.advance(tx, value)
    nothing = value.python_type() is type(None)
    if nothing and not isinstance(receiver, UserObject):
        return receiver.slot_next(tx), NONE
    try:
        if nothing and isinstance(receiver, UserObject):
            return receiver.call_special(tx, "__next__", []), NONE
        return receiver.call_method(tx, "send", [value], {}), NONE
    except ObservedException as stop:
        if not is_subtype(stop.exception.python_type(), StopIteration):
            raise
        return None, value_of(tx, stop.exception)


@handles("END_SEND")
def end_send(tx: Any, inst: Instruction) -> None:
    result = tx.pop()
    tx.pop()
    tx.push(result)


@handles("CLEANUP_THROW")
def cleanup_throw(tx: Any, inst: Instruction) -> None:
    """What was thrown into `yield from` and came out of what it delegates to: StopIteration carries the result."""
    exception = tx.pop().realize(tx)
    if not is_subtype(exception.python_type(), StopIteration):
        raise raised_again(tx, exception)
    tx.popn(2)
    tx.push(NONE)
    tx.push(value_of(tx, exception))
