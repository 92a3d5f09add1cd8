"""Exceptions that exist outside of the trace: what a graph break met, or was given."""

from __future__ import annotations

import types

from ..guards.builder import GuardBuilder
from ..reasons import EXCEPTION
from ..sources import AttrSource, Source, TypeSource
from ..static_access import is_subtype, is_users_class, static_attr, type_lookup
from .base import Tracing, VariableTracker
from .exceptions import ExceptionVariable, TracebackVariable
from .opaque import OpaqueVariable
from .registry import wraps_if
from .user_objects import UserObjectVariable

KEPT_BY_C = (types.GetSetDescriptorType, types.MemberDescriptorType)


class OutsideExceptionVariable(OpaqueVariable):
    """A real exception of a class written in C, guarded by its exact type. What C code keeps in it can be read; a traceback grows
    where it is raised, so raising it in the trace is no more than passing it on."""

    __slots__ = ("value",)

    def __init__(self, value: BaseException, source: Source) -> None:
        super().__init__(value, source)
        self.value = value

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if isinstance(type_lookup(self.tp, name), KEPT_BY_C):
            try:
                return tx.lazily(static_attr(self.value, name), AttrSource(self.source, name))
            except AttributeError:
                pass  # unset: plain Python says so
        return super().getattr(tx, name)


@wraps_if(
    "exception",
    lambda value: is_subtype(type(value), BaseException) and not is_users_class(type(value)),
)
def wrap_exception(tx: Tracing, value: BaseException, source: Source) -> VariableTracker:
    made = OutsideExceptionVariable(value, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made


def exception_class(tx: Tracing, value: VariableTracker) -> type[BaseException]:
    """The class of an exception that is raised or handled. Breaks the graph for what is none."""
    cls = value.realize(tx).python_type()
    if not is_subtype(cls, BaseException):
        tx.unsupported(EXCEPTION)
    return cls


def details(tx: Tracing, value: VariableTracker) -> list[VariableTracker]:
    """What `__exit__` is given for an exception: its class, itself, its traceback."""
    value, cls = value.realize(tx), exception_class(tx, value)
    if isinstance(value, ExceptionVariable):
        return [value.class_tracker, value, TracebackVariable()]
    assert value.source is not None
    assert isinstance(value, OutsideExceptionVariable | UserObjectVariable)
    traceback = tx.lazily(
        static_attr(value.value, "__traceback__"), AttrSource(value.source, "__traceback__")
    )
    return [tx.wrap(cls, TypeSource(value.source)), value, traceback]
