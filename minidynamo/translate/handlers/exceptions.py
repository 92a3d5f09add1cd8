"""Raising and handling inside the trace. An exception that leaves the frame is left to plain Python."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import EXCEPTION
from ...variables.base import VariableTracker
from ...variables.constant import ConstantVariable
from ...variables.exceptions import CallersExceptionVariable, ExceptionVariable, ObservedException, follows
from ...variables.functions import BuiltinVariable
from ...variables.outside_exceptions import details, exception_class
from ...variables.sequences import TupleVariable
from .calls import callable_and_arguments
from .table import handles

CALLERS = CallersExceptionVariable()


def raised(tx: Any, value: VariableTracker) -> ObservedException:
    """What `raise value` does: a class is instantiated."""
    value = value.realize(tx)
    if isinstance(value, BuiltinVariable) and follows(value.fn):
        value = ExceptionVariable(value.fn, [])
    if not isinstance(value, ExceptionVariable):
        tx.unsupported(EXCEPTION)
    return passed_on(tx, value)


def passed_on(tx: Any, value: VariableTracker) -> ObservedException:
    """What raising again does, where that adds nothing to the traceback."""
    value = value.realize(tx)
    exception_class(tx, value)
    if isinstance(value, ExceptionVariable) and value.raised_at is None:
        value.raised_at = tx.trace.root_index
    return ObservedException(value)


@handles("RAISE_VARARGS")
def raise_varargs(tx: Any, inst: Instruction) -> None:
    """`raise`, `raise e`, `raise e from cause`. The cause matters only to who looks at the exception: that breaks the graph."""
    values = tx.popn(inst.arg)
    if values:
        raise raised(tx, values[0])
    if not tx.handled:
        tx.unsupported(EXCEPTION)
    raise passed_on(tx, tx.handled[-1])


@handles("RERAISE")
def reraise(tx: Any, inst: Instruction) -> None:
    raise passed_on(tx, tx.pop())


@handles("PUSH_EXC_INFO")
def push_exc_info(tx: Any, inst: Instruction) -> None:
    """CPython: what was handled before goes below the exception, which is handled from here on."""
    exception = tx.pop()
    tx.push(tx.handled[-1] if tx.handled else CALLERS)
    tx.push(exception)
    tx.handled.append(exception)


@handles("POP_EXCEPT")
def pop_except(tx: Any, inst: Instruction) -> None:
    tx.pop()
    tx.handled.pop()


@handles("CHECK_EXC_MATCH")
def check_exc_match(tx: Any, inst: Instruction) -> None:
    """CPython: PyErr_GivenExceptionMatches, which walks the MRO and asks no `__subclasscheck__`."""
    classes = tx.pop().realize(tx)
    raised_class = exception_class(tx, tx.stack[-1])
    wanted = classes.items if isinstance(classes, TupleVariable) else [classes]
    found = [c for c in (c.realize(tx) for c in wanted) if isinstance(c, BuiltinVariable)]
    if len(found) < len(wanted):
        tx.unsupported(EXCEPTION)
    mro = type.__dict__["__mro__"].__get__(raised_class)
    tx.push(ConstantVariable(any(c.fn in mro for c in found), guards=VariableTracker.propagate(*found)))


@handles("WITH_EXCEPT_START")
def with_except_start(tx: Any, inst: Instruction) -> None:
    """`__exit__(type, exception, traceback)`; the exit function lies below what the handler saved."""
    facts = details(tx, tx.stack[-1])
    below = [tx.stack[-inst.arg]] if inst.arg == 4 else [tx.stack[-inst.arg], tx.stack[-inst.arg + 1]]
    fn, args = callable_and_arguments(below) if len(below) == 2 else (below[0], [])
    tx.push(tx.call(fn, [*args, *facts], {}))
