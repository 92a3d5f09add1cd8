"""Calls in all their forms."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import CALL_ARGUMENTS
from ...rules.builtins import items_of
from ...variables.base import VariableTracker
from ...variables.dicts import DictVariable
from ...variables.opaque import NullVariable
from ...variables.sequences import SequenceVariable
from .stack import constant_operand
from .table import handles


def callable_and_arguments(values: list[VariableTracker]) -> tuple[VariableTracker, list[VariableTracker]]:
    """CPython: of the two slots below the arguments one may be NULL, then the other is the callable; else the first is
    called with the second as first argument."""
    first, second = values[0], values[1]
    if type(first) is NullVariable:
        return second, values[2:]
    if type(second) is NullVariable:
        return first, values[2:]
    return first, values[1:]


@handles("CALL")
def call(tx: Any, inst: Instruction) -> None:
    stack, count = tx.stack, inst.arg + 2
    fn, args = callable_and_arguments(stack[-count:])
    del stack[-count:]
    stack.append(tx.call(fn, args, {}))


@handles("CALL_KW")
def call_kw(tx: Any, inst: Instruction) -> None:
    names = constant_operand(tx, tx.pop())
    fn, args = callable_and_arguments(tx.popn(inst.arg + 2))
    split = len(args) - len(names)
    tx.push(tx.call(fn, args[:split], dict(zip(names, args[split:]))))


@handles("CALL_FUNCTION_EX")
def call_function_ex(tx: Any, inst: Instruction) -> None:
    """`f(*args, **kwargs)`."""
    kwargs: dict[str, VariableTracker] = {}
    if inst.arg:
        named = tx.pop().realize(tx)
        if isinstance(named, DictVariable):
            for key in named.all_keys(tx):
                if type(key.value) is not str:
                    tx.unsupported(CALL_ARGUMENTS, name="a function", detail="keywords that are no strings")
                kwargs[key.value] = named.items[key]
        elif not isinstance(named, NullVariable):
            tx.unsupported(
                CALL_ARGUMENTS, name="a function", detail=f"**keywords of type {named.type_name()}"
            )
    fn, (star,) = callable_and_arguments(tx.popn(3))
    star = star.realize(tx)
    items = star.items if isinstance(star, SequenceVariable) else items_of(tx, "a call with *arguments", star)
    tx.push(tx.call(fn, list(items), kwargs))
