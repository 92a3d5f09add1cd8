"""Keys of dicts and elements of sets: values whose hash and equality are known while tracing and run no code of the user's."""

from __future__ import annotations

import enum
import types
import typing
from typing import Any

import torch

from ..literals import is_immutable, is_literal, is_weakrefable
from ..reasons import OPERATOR_FAILS, USER_OBJECT_KEY
from ..static_access import is_one_of, is_subtype, type_lookup
from .base import Tracing, VariableTracker
from .bound_enums import is_bound_enumeration
from .constant import CONSTANT_TYPES, ConstantVariable
from .registry import FROM_PYTHON

CONTAINERS = (tuple, frozenset, torch.Size)
# Classes of special forms of `typing`; like classes they hash and compare by identity.
FORMS = tuple({type(typing.Any), type(typing.Union), type(typing.Literal), type(typing.Final)})
# Functions, and methods of types written in C: likewise.
FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)
_HASHES: tuple[Any, ...] = (enum.Enum.__hash__, enum.Flag.__hash__)


class Identity:
    """What stands for an object that hashes and compares by identity: one for each such object of a trace. Its hash is not the
    object's, so the order of a set that has it is not known."""

    __slots__ = ()


def is_orderly(values: Any) -> bool:
    """The hashes of these keys are those of the real ones."""
    return not any(
        type(value) is Identity or type(value) in (tuple, frozenset) and not is_orderly(value)
        for value in values
    )


class Key:
    """Hashes and compares as the real key does. Constants by value (1 == 1.0 == True), tuples and frozensets by their items, classes,
    builtins, enum members and plain objects by identity."""

    __slots__ = ("tracker", "value")

    def __init__(self, tx: Tracing, tracker: VariableTracker) -> None:
        self.tracker = tracker.realize(tx)
        self.value = self.tracker.as_key(tx)
        if not is_plain(self.value):
            tx.unsupported(USER_OBJECT_KEY, type=self.tracker.type_name())
        try:
            hash(self.value)
        except TypeError:
            tx.unsupported(OPERATOR_FAILS, name=f"hash of {self.tracker.type_name()}", error="TypeError")

    @classmethod
    def of(cls, value: Any, tracker: VariableTracker) -> Key:
        """The key of a real value that is a plain one; `tracker` may be lazy and stays so."""
        made = cls.__new__(cls)
        made.value, made.tracker = value, tracker
        return made

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and bool(self.value == other.value)


def is_plain(value: Any) -> bool:
    """Hash and equality are those of a builtin type, or identity. nan is not plain: it equals only the very same object."""
    cls = type(value)
    if cls in CONSTANT_TYPES:
        return bool(value == value)
    if cls in CONTAINERS:
        return all(map(is_plain, value))
    if cls in (list, set, dict, slice, range):  # hash() decides
        return True
    if is_bound_enumeration(cls):
        return True
    found, equal = type_lookup(cls, "__hash__"), type_lookup(cls, "__eq__")
    if is_subtype(cls, enum.Enum):
        own_hash = any(found is known for known in _HASHES) or type(found) is types.WrapperDescriptorType
        return own_hash and type(equal) is types.WrapperDescriptorType
    return type(found) is types.WrapperDescriptorType and type(equal) is types.WrapperDescriptorType


def can_be_named(value: Any) -> bool:
    """A real key that a guard can name and compare without running user code."""
    cls = type(value)
    if cls in CONSTANT_TYPES:
        return bool(value == value)
    if cls is tuple:
        return is_literal(value) and is_plain(value)
    by_identity = is_subtype(cls, enum.Enum) or is_subtype(cls, type) or is_one_of(cls, (*FORMS, *FUNCTIONS))
    return by_identity and (is_weakrefable(value) or is_immutable(value)) and is_plain(value)


def check_name(tx: Tracing, key: Key) -> None:
    """Breaks the graph for a key that no guard can name."""
    if not is_literal(key.value) and not can_be_named(key.value):
        tx.unsupported(USER_OBJECT_KEY, type=key.tracker.type_name())


def constant_key(value: Any) -> VariableTracker | None:
    """The tracker of a key that consists of constants; None for one with objects in it."""
    cls = type(value)
    if cls in CONSTANT_TYPES:
        return ConstantVariable(value)
    if cls is not tuple:
        return None
    items = [constant_key(item) for item in value]
    return None if None in items else FROM_PYTHON[tuple](items)
