"""`str`, `repr` and `format` of trackers. CPython: PyObject_Str, PyObject_Repr, PyObject_Format."""

from __future__ import annotations

from collections.abc import Callable

from ..reasons import OPERATOR_FAILS, UNSUPPORTED_CALL
from ..static_access import type_lookup
from .base import Tracing, VariableTracker
from .classes import ClassVariable
from .constant import ConstantVariable, fold
from .exceptions import ExceptionVariable
from .user_objects import UserObject


def text_of(tx: Tracing, value: VariableTracker, fn: Callable[..., str]) -> VariableTracker:
    """`fn(value)` for str, repr and ascii, where the text is the same everywhere."""
    value = value.realize(tx)
    if isinstance(value, ConstantVariable):
        return fold(tx, fn.__name__, fn, value)
    if fn is ascii:
        return fold(tx, "ascii", lambda text: ascii(_Printed(text)), text_of(tx, value, repr))
    made = text_of_object(tx, value, fn) if isinstance(value, UserObject) else None
    if isinstance(value, ClassVariable):
        made = text_of_class(tx, value)
    if made is None:
        tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.__name__} of a {value.type_name()}")
    return made


class _Printed:
    """Its repr is a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def text_of_object(tx: Tracing, value: UserObject, fn: Callable[..., str]) -> VariableTracker | None:
    """The user's `__str__` or `__repr__`; `object.__str__` is `__repr__`. None where the text is not known."""
    special = value.special(tx, f"__{fn.__name__}__")
    if special is not None:
        return checked(tx, tx.call(special, [value], {}), f"__{fn.__name__}__")
    if isinstance(value, ExceptionVariable):
        text = value.text(fn)
        return None if text is None else ConstantVariable(text, guards=VariableTracker.propagate(value))
    if fn is str and type_lookup(value.cls, "__str__") is vars(object)["__str__"]:
        return text_of_object(tx, value, repr)
    return None


def text_of_class(tx: Tracing, value: ClassVariable) -> VariableTracker | None:
    """CPython: type_repr. None where the metaclass has a text of its own."""
    if any(
        type_lookup(type(value.fn), name) is not type_lookup(type, name) for name in ("__repr__", "__str__")
    ):
        return None
    module, name = (value.getattr(tx, part).realize(tx) for part in ("__module__", "__qualname__"))
    if not module.is_python_constant() or not name.is_python_constant():
        return None
    path = name if module.as_python_constant() == "builtins" else None
    text = path.as_python_constant() if path else f"{module.as_python_constant()}.{name.as_python_constant()}"
    return ConstantVariable(f"<class {text!r}>", guards=VariableTracker.propagate(value, module, name))


def checked(tx: Tracing, text: VariableTracker, name: str) -> VariableTracker:
    """Special methods for text must give a string."""
    text = text.realize(tx)
    if text.python_type() is not str or not text.is_python_constant():
        if text.python_type() in (object, str):
            tx.unsupported(UNSUPPORTED_CALL, name=f"{name} whose text is not known")
        tx.unsupported(OPERATOR_FAILS, name=name, error="TypeError")
    return text


def formatted(tx: Tracing, value: VariableTracker, spec: VariableTracker) -> VariableTracker:
    """`format(value, spec)`."""
    value, spec = value.realize(tx), spec.realize(tx)
    if isinstance(value, ConstantVariable) and isinstance(spec, ConstantVariable):
        return fold(tx, "format", format, value, spec)
    if isinstance(value, UserObject):
        special = value.special(tx, "__format__")
        if special is not None:
            return checked(tx, tx.call(special, [value, spec], {}), "__format__")
        plain = type_lookup(value.cls, "__format__") is vars(object)["__format__"]
        if plain and spec.is_python_constant() and spec.as_python_constant() == "":
            return text_of(tx, value, str)
    tx.unsupported(UNSUPPORTED_CALL, name=f"formatting of {value.type_name()}")
