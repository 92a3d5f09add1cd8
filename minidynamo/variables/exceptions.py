"""Exceptions made in the trace: of builtin classes and of the user's."""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable
from typing import Any

from ..pycode import expr as E
from ..reasons import EXCEPTION, UNSUPPORTED_CALL
from ..static_access import is_subtype, is_users_class, type_lookup
from .base import Emitting, Tracing, VariableTracker
from .classes import ClassVariable
from .constant import ConstantVariable
from .functions import BoundMethodVariable, BuiltinVariable
from .new_objects import NewObjectVariable
from .raising import ObservedException
from .sequences import NONE, ListVariable, TupleVariable
from .user_objects import has_plain_attributes

__all__ = ["ExceptionVariable", "ObservedException", "TracebackVariable", "follows", "make_exception"]

BUILTIN = [cls for cls in vars(builtins).values() if isinstance(cls, type) and issubclass(cls, BaseException)]
# Builtin classes that keep nothing but `args`, and whose `__new__` and `__init__` are BaseException's.
SIMPLE = frozenset(
    cls
    for cls in BUILTIN
    if all(vars(c).keys() <= {"__new__", "__init__", "__doc__", "__str__"} for c in cls.__mro__[:-2])
)
SIMPLE_INIT = [vars(cls)["__init__"] for cls in SIMPLE if "__init__" in vars(cls)]
# Classes that keep more, and take any positional arguments.
ANY_ARGUMENTS = (StopIteration, SystemExit, ImportError, AttributeError, NameError, OSError)


class ExceptionVariable(NewObjectVariable):
    """An exception that the trace made. One that was raised carries a traceback, which cannot be rebuilt: where it is still needed
    at the end of a graph, the graph ends where it was raised (decision 11), at instruction `raised_at` of the root frame.

    args: what attribute `args` has. cause: None while it was not set. context: None where it is not known: the frame may have been
    called while another exception was handled."""

    __slots__ = ("args", "raised_at", "cause", "context", "suppresses")

    def __init__(
        self,
        cls: type[BaseException],
        args: list[VariableTracker],
        class_tracker: VariableTracker | None = None,
    ) -> None:
        super().__init__(cls, class_tracker or ClassVariable(cls, None))
        self.replace_guards(VariableTracker.propagate(self.class_tracker, *args))
        self.args = args
        self.raised_at: int | None = None
        self.cause: VariableTracker | None = None
        self.context: VariableTracker | None = None
        self.suppresses = False

    @property
    def filled_later(self) -> bool:  # type: ignore[override]
        return self.is_simple()

    def is_simple(self) -> bool:
        """Its state is `args` and what the program stored."""
        return is_simple(self.cls)

    def is_users(self) -> bool:
        return is_users_class(self.cls)

    def children(self) -> tuple[VariableTracker, ...]:
        return (*super().children(), *self.args, *(() if self.cause is None else (self.cause,)))

    def forget(self) -> None:
        super().forget()
        self.args = []
        self.cause = self.context = None

    # --- attributes ------------------------------------------------------------------------------------------------------
    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        raw = type_lookup(self.cls, name)
        if is_builtin_state(raw) and (read := READ.get(name)) is not None:
            found = read(self)
            return self._opaque(tx, f"attribute {name}") if found is None else found
        if type(raw) is types.MemberDescriptorType and raw.__objclass__ in BUILTIN:
            if self.cls is StopIteration and name == "value":
                return self.args[0] if self.args else NONE
            self._opaque(tx, f"attribute {name}")
        if type(raw) is types.MethodDescriptorType and name in METHODS:
            return BoundMethodVariable(self, name)
        return super().getattr(tx, name)

    def generic_setattr(self, tx: Tracing, name: str, value: VariableTracker) -> None:
        if is_builtin_state(type_lookup(self.cls, name)):
            if name not in WRITE:
                self._opaque(tx, f"assignment of attribute {name}")
            WRITE[name](self, tx, value.realize(tx))
        else:
            super().generic_setattr(tx, name, value)

    def guard_storing(self, tx: Tracing, name: str, raw: Any, method: str = "__setattr__") -> None:
        if self.is_users():
            super().guard_storing(tx, name, raw, method)

    def special(self, tx: Tracing, name: str) -> VariableTracker | None:
        return super().special(tx, name) if self.is_users() else None

    def slot_truth(self, tx: Tracing) -> bool:
        return super().slot_truth(tx) if self.is_users() else True

    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        method = METHODS.get(name)
        if method is None or type(type_lookup(self.cls, name)) is not types.MethodDescriptorType:
            return super().call_method(tx, name, args, kwargs)
        if kwargs or len(args) != 1:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{name} with these arguments")
        return method(self, tx, args[0].realize(tx))

    # --- what raising does -----------------------------------------------------------------------------------------------
    def raised(self, tx: Tracing, handled: VariableTracker | None) -> ObservedException:
        """CPython: _PyErr_SetObject: what is being handled becomes the context, and no chain of contexts leads back."""
        if self.raised_at is None:
            self.raised_at = tx.trace.root_index
        if isinstance(handled, ExceptionVariable) and handled is not self:
            link: VariableTracker | None = handled
            while isinstance(link, ExceptionVariable):
                if link.context is self:
                    link.context = NONE
                link = link.context
            self.context = handled
        return ObservedException(self)

    # --- text and rebuilding -----------------------------------------------------------------------------------------------
    def text(self, fn: Callable[[Any], str]) -> str | None:
        """`str` or `repr`, when the arguments are known and the class prints them as a builtin one does."""
        values = [a.as_python_constant() for a in self.args if a.is_python_constant()]
        printer = type_lookup(self.cls, f"__{fn.__name__}__")
        if len(values) < len(self.args) or type(printer) is not types.WrapperDescriptorType:
            return None
        base = builtin_bases(self.cls)[0]
        if base is not self.cls and (fn is repr or base not in SIMPLE):
            return None
        return fn(base(*values))

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if not self.is_simple():
            if self.attributes or self.cause is not None:
                emit.impossible(f"an exception of type {self.type_name()} with attributes")
            return E.Call(emit.value(self.class_tracker), tuple(emit.value(a) for a in self.args))
        made = emit.temporary(E.Call(E.Const(BaseException.__new__), (emit.value(self.class_tracker),)))
        emit.remember(self, made)
        put = E.Const(BaseException.__setattr__)
        values: dict[str, VariableTracker] = {"args": TupleVariable(list(self.args)), **self.attributes}
        if self.cause is not None:
            values["__cause__"] = self.cause
            values["__suppress_context__"] = ConstantVariable(self.suppresses)
        for name, value in values.items():
            emit.do(E.Do(E.Call(put, (made, E.Const(name), emit.value(value)))))
        return made


def _among(found: Any, known: list[Any]) -> bool:
    return any(found is each for each in known)


def is_builtin_state(raw: Any) -> bool:
    """A descriptor of what BaseException keeps."""
    return raw is not None and any(raw is vars(BaseException).get(name) for name in READ)


def raised_again(tx: Tracing, exception: VariableTracker) -> ObservedException:
    """Raising again what was raised before: nothing is chained. One from outside keeps its traceback, to which that adds nothing."""
    exception = exception.realize(tx)
    return (
        exception.raised(tx, None)
        if isinstance(exception, ExceptionVariable)
        else ObservedException(exception)
    )


def builtin_bases(cls: type) -> list[type]:
    """The builtin exception classes that it derives from, nearest first."""
    return [c for c in type.__dict__["__mro__"].__get__(cls) if c in BUILTIN]


def is_simple(cls: type) -> bool:
    """Instances keep `args` and what the program stores, and `__new__` is the builtin one."""
    own_new = type(type_lookup(cls, "__new__")) is staticmethod
    return not own_new and all(base in SIMPLE for base in builtin_bases(cls))


def _is_exception_or_none(tx: Tracing, value: VariableTracker) -> None:
    if not isinstance(value, ExceptionVariable) and value.python_type() is not type(None):
        tx.unsupported(EXCEPTION)


def set_cause(exception: ExceptionVariable, tx: Tracing, cause: VariableTracker) -> None:
    """CPython: PyException_SetCause."""
    _is_exception_or_none(tx, cause)
    exception.cause = cause
    exception.suppresses = True


def _set_context(exception: ExceptionVariable, tx: Tracing, context: VariableTracker) -> None:
    _is_exception_or_none(tx, context)
    if exception.raised_at is None:  # what is rebuilt has none
        tx.unsupported(EXCEPTION)
    exception.context = context


def _set_suppressing(exception: ExceptionVariable, tx: Tracing, value: VariableTracker) -> None:
    if type(value.as_python_constant() if value.is_python_constant() else None) is not bool:
        tx.unsupported(EXCEPTION)
    if exception.cause is None:
        exception.cause = NONE
    exception.suppresses = value.as_python_constant()


def _set_traceback(exception: ExceptionVariable, tx: Tracing, value: VariableTracker) -> None:
    """Nobody sees the traceback of an exception that is handled in the trace: looking at it breaks the graph, and one that is needed
    later is raised by plain Python."""
    if exception.raised_at is None or not isinstance(value, TracebackVariable):
        tx.unsupported(EXCEPTION)


def _set_args(exception: ExceptionVariable, tx: Tracing, value: VariableTracker) -> None:
    if not isinstance(value, TupleVariable) or not exception.is_simple():
        tx.unsupported(EXCEPTION)
    exception.args = list(value.items)


def _with_traceback(exception: ExceptionVariable, tx: Tracing, value: VariableTracker) -> VariableTracker:
    _set_traceback(exception, tx, value)
    return exception


def _add_note(exception: ExceptionVariable, tx: Tracing, note: VariableTracker) -> VariableTracker:
    """CPython: BaseException_add_note."""
    if note.python_type() is not str:
        tx.unsupported(EXCEPTION)
    notes = exception.attributes.get("__notes__")
    if notes is None:
        notes = exception.attributes["__notes__"] = ListVariable([])
    notes.realize(tx).call_method(tx, "append", [note], {})
    return NONE


READ: dict[str, Callable[[ExceptionVariable], VariableTracker | None]] = {
    "args": lambda e: TupleVariable(list(e.args), guards=e.guards),
    "__cause__": lambda e: e.cause or NONE,
    "__context__": lambda e: e.context if e.raised_at is not None else NONE,
    "__suppress_context__": lambda e: ConstantVariable(e.suppresses),
    "__traceback__": lambda e: TracebackVariable() if e.raised_at is not None else NONE,
}
WRITE: dict[str, Callable[[ExceptionVariable, Tracing, VariableTracker], None]] = {
    "args": _set_args,
    "__cause__": set_cause,
    "__context__": _set_context,
    "__suppress_context__": _set_suppressing,
    "__traceback__": _set_traceback,
}
METHODS: dict[str, Callable[[ExceptionVariable, Tracing, VariableTracker], VariableTracker]] = {
    "with_traceback": _with_traceback,
    "add_note": _add_note,
}


class TracebackVariable(VariableTracker):
    """A traceback: it can be passed on and compared with None, not looked into."""

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
    """Calling `cls` makes an exception by what is known: a builtin class, or one of the user's over one that takes any arguments."""
    if type(cls) is not type or not is_subtype(cls, BaseException) or is_subtype(cls, BaseExceptionGroup):
        return False
    if not is_users_class(cls):
        return cls in BUILTIN
    if not has_plain_attributes(cls) or type_lookup(cls, "__del__") is not None:
        return False
    if type(type_lookup(cls, "__new__")) is staticmethod:
        return False
    any_arguments = builtin_bases(cls)[0] in ANY_ARGUMENTS
    return is_simple(cls) or any_arguments and type(type_lookup(cls, "__init__")) is not types.FunctionType


def make_exception(
    tx: Tracing, fn: BuiltinVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """`cls(*args)` of a class that `follows`. CPython: type_call, BaseException_new, BaseException_init."""
    cls = fn.fn
    if not is_users_class(cls):
        if kwargs:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()} with keywords")
        return ExceptionVariable(_builtin_class(tx, cls, args), list(args), fn)
    made = ExceptionVariable(cls, list(args), fn)
    tx.trace.holds(made)
    init = made.special(tx, "__init__")
    if init is not None:
        tx.call(init, [made, *args], kwargs)
    elif kwargs or not _among(type_lookup(cls, "__init__"), SIMPLE_INIT) and made.is_simple():
        tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.name()} with these arguments")
    return made


def _builtin_class(tx: Tracing, cls: Any, args: list[VariableTracker]) -> Any:
    """The class of the instance: OSError has one for each error number."""
    if cls in SIMPLE or cls is StopIteration or cls in ANY_ARGUMENTS and len(args) < 2:
        return cls
    values = [a.realize(tx) for a in args]
    if not all(v.is_python_constant() for v in values):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{cls.__name__} with arguments that are not known")
    try:
        made = cls(*[v.as_python_constant() for v in values])
    except Exception as error:
        tx.fails(cls.__name__, error)
    return type(made)
