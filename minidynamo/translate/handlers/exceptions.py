"""Raising and handling inside the trace. An exception that leaves the frame is left to plain Python."""

from __future__ import annotations

from typing import Any, NoReturn

from ...pycode.instruction import Instruction
from ...reasons import EXCEPTION, OPERATOR_FAILS
from ...rules import dispatch
from ...static_access import is_subtype
from ...variables.base import VariableTracker
from ...variables.constant import ConstantVariable
from ...variables.exceptions import (
    CallersExceptionVariable,
    ExceptionVariable,
    follows,
    raised_again,
    set_cause,
)
from ...variables.functions import BuiltinVariable
from ...variables.outside_exceptions import details, exception_class
from ...variables.raising import ObservedException
from ...variables.sequences import TupleVariable
from ...variables.user_objects import UserObject
from .calls import callable_and_arguments
from .table import handles

NONE = ConstantVariable(None)
CALLERS = CallersExceptionVariable()


def instance_of(tx: Any, value: VariableTracker) -> VariableTracker:
    """What `raise value` raises: a class is called."""
    value = value.realize(tx)
    if isinstance(value, BuiltinVariable) and follows(value.fn):
        value = dispatch.call(tx, value, [], {}).realize(tx)
    return value


def not_followed(tx: Any, value: VariableTracker) -> NoReturn:
    """It is raised; where no handler of the captured part may see it, the caller gets it."""
    if not tx.covered():
        tx.unsupported(OPERATOR_FAILS, name="the program", error=f"an exception ({value.type_name()})")
    raise tx.unsupported(EXCEPTION)


def passed_on(tx: Any, value: VariableTracker) -> ObservedException:
    """What raising again does, where that adds nothing to the traceback."""
    value = value.realize(tx)
    if not is_subtype(value.python_type(), BaseException):
        not_followed(tx, value)
    return raised_again(tx, value)


@handles("RAISE_VARARGS")
def raise_varargs(tx: Any, inst: Instruction) -> None:
    """CPython: do_raise. `raise`, `raise e`, `raise e from cause`."""
    values = tx.popn(inst.arg)
    if not values:
        again = tx.handled_exception()
        if again is None:
            not_followed(tx, NONE)
        raise passed_on(tx, again)
    exception = instance_of(tx, values[0])
    if not isinstance(exception, ExceptionVariable):
        not_followed(tx, exception)
    if len(values) == 2:
        cause = instance_of(tx, values[1])
        if not isinstance(cause, ExceptionVariable) and cause.python_type() is not type(None):
            not_followed(tx, exception)
        set_cause(exception, tx, cause)
    raise exception.raised(tx, tx.handled_exception())


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
    exception = tx.stack[-1].realize(tx)
    if isinstance(exception, UserObject):
        for each in found:
            exception.guard_bases(tx, each.fn)
    tx.push(ConstantVariable(any(c.fn in mro for c in found), guards=VariableTracker.propagate(*found)))


@handles("WITH_EXCEPT_START")
def with_except_start(tx: Any, inst: Instruction) -> None:
    """`__exit__(type, exception, traceback)`; the exit function lies below what the handler saved."""
    facts = details(tx, tx.stack[-1])
    below = [tx.stack[-inst.arg]] if inst.arg == 4 else [tx.stack[-inst.arg], tx.stack[-inst.arg + 1]]
    fn, args = callable_and_arguments(below) if len(below) == 2 else (below[0], [])
    tx.push(tx.call(fn, [*args, *facts], {}))
