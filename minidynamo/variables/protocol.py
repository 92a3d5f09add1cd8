"""CPython's own algorithms over trackers: which operand's slot is asked first, and what a refusal means."""

from __future__ import annotations

import types
from typing import Any

from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..reasons import OPAQUE_VALUE, OPERATOR_FAILS
from ..static_access import is_subtype, type_lookup
from .base import Tracing, VariableTracker
from .classes import class_of
from .constant import SINGLE, ConstantVariable
from .functions import BoundMethodVariable, CellVariable, UserFunctionVariable
from .numbers import NumberVariable
from .opaque import NullVariable, OpaqueVariable
from .read_numbers import ReadNumber, arithmetic, comparison
from .sequences import TupleVariable
from .special_names import reflected
from .tensor import TensorVariable
from .user_objects import UserObject

SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def binary_op(tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """CPython: binary_iop1, binary_op1: the left operand's in-place slot, then the two operands' slots. The slot of one type is
    asked once."""
    left, right = left.realize(tx), right.realize(tx)
    if type(left) is ConstantVariable and type(right) is ConstantVariable:
        return left.of_constants(tx, symbol, left, right)
    if type(left) is ReadNumber or type(right) is ReadNumber:
        number = arithmetic(tx, symbol, left, right)
        if number is not None:
            return number
    result = left.slot_inplace(tx, symbol, right) if symbol.endswith("=") else None
    if result is not None:
        return result
    first, second = right, left
    if not _right_first(left, right) or not _overrides(right, left, symbol):
        first, second = left, right
    for operand in (first, second) if left.python_type() is not right.python_type() else (first,):
        result = operand.slot_binary(tx, symbol, left, right)
        if result is not None:
            return result
    tx.unsupported(
        OPERATOR_FAILS,
        name=f"operator {symbol} on {left.type_name()} and {right.type_name()}",
        error="TypeError",
    )


def compare_op(tx: Tracing, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """CPython: do_richcompare; == and != fall back on identity."""
    left, right = left.realize(tx), right.realize(tx)
    if type(left) is ReadNumber or type(right) is ReadNumber:
        known = comparison(tx, symbol, left, right)
        if known is not None:
            return known
    first, second = (right, left) if _right_first(left, right) else (left, right)
    for operand in (first, second):
        result = operand.slot_compare(tx, symbol, left, right)
        if result is not None:
            return result
    if symbol in ("==", "!="):
        same = identical(tx, left, right)
        return ConstantVariable(same == (symbol == "=="), guards=VariableTracker.propagate(left, right))
    tx.unsupported(
        OPERATOR_FAILS,
        name=f"operator {symbol} on {left.type_name()} and {right.type_name()}",
        error="TypeError",
    )


def _right_first(left: VariableTracker, right: VariableTracker) -> bool:
    """CPython: the right operand is asked first if its type is a proper subclass of the left's. A tensor on the right is asked before
    numbers and sequences, whose slots would decline it."""
    left_type, right_type = left.python_type(), right.python_type()
    if isinstance(right, TensorVariable) and left_type in DECLINE_TENSORS:
        return True
    if isinstance(right, NumberVariable):  # no value of a builtin type knows what to do with one
        return not isinstance(left, (TensorVariable, UserObject))
    return left_type is not right_type and is_subtype(right_type, left_type)


DECLINE_TENSORS = (int, float, bool, complex, list, tuple)


def _overrides(right: VariableTracker, left: VariableTracker, symbol: str) -> bool:
    """CPython: method_is_overloaded, asked between two classes of the user's."""
    if not isinstance(right, UserObject) or not isinstance(left, UserObject):
        return True
    name = reflected(symbol)
    return type_lookup(right.cls, name) is not type_lookup(left.cls, name)


def identical(tx: Tracing, left: VariableTracker, right: VariableTracker) -> bool:
    """`left is right`, where it follows from what is known; else a graph break.

    Singletons are compared by value. Two values from outside are the same object exactly when they are the same tracker
    (the builder unifies them, with guards both ways). A tensor made in the graph may be an argument of its operator, unless
    that one always makes a new tensor.
    """
    left, right = left.realize(tx), right.realize(tx)
    if left is right and not isinstance(left, NullVariable):
        return True
    if left.is_python_constant() and right.is_python_constant():
        a, b = left.as_python_constant(), right.as_python_constant()
        if type(a) is not type(b):
            return False
        if type(a) in SINGLE:
            return a is b
        if type(a) in (int, str) and left.source is None and right.source is None and a != b:
            return False
    types = known_type(left), known_type(right)
    if None not in types and types[0] is not types[1]:
        return False
    known = left.known_object(), right.known_object()
    if all(known):
        return known[0][0] is known[1][0]
    if isinstance(left, UserFunctionVariable) and isinstance(right, UserFunctionVariable):
        return same_function(tx, left, right)
    if isinstance(left, OpaqueVariable) and isinstance(right, OpaqueVariable):
        return same_opaque(tx, left, right)
    if left.source is not None and right.source is not None and _has_identity(left) and _has_identity(right):
        tx.guard_distinct(left.source, right.source)
        return False
    if isinstance(left, TensorVariable) and isinstance(right, TensorVariable):
        if tx.are_different(left.proxy.node, right.proxy.node):
            return False
    if left.mutable and right.mutable and None in (left.source, right.source):
        if not isinstance(left, CellVariable):  # of one cell there are several trackers
            return False
    tx.unsupported(OPAQUE_VALUE, operation="operator is", type=f"{left.type_name()} and {right.type_name()}")


def same_opaque(tx: Tracing, left: OpaqueVariable, right: OpaqueVariable) -> bool:
    """Values that are not followed are where they were when the frame began, whatever the trace has put in their places."""
    frame = tx.trace.frame
    if left.source.read(frame) is right.source.read(frame):
        tx.install(make_guard(left.source, GuardBuilder.DUPLICATE_INPUT, right.source))
        return True
    tx.guard_distinct(left.source, right.source)
    return False


def same_function(tx: Tracing, left: UserFunctionVariable, right: UserFunctionVariable) -> bool:
    """Functions are guarded by their code; that two places hold one function, or two, is guarded where it is asked."""
    if left.fn is right.fn:
        tx.install(make_guard(left.source, GuardBuilder.DUPLICATE_INPUT, right.source))
        return True
    tx.guard_distinct(left.source, right.source)
    return False


def _has_identity(value: VariableTracker) -> bool:
    """Kinds that the builder unifies by object, so that different trackers are different objects."""
    return value.mutable or isinstance(value, TensorVariable)


def getattr_(tx: Tracing, owner: VariableTracker, name: str) -> VariableTracker:
    """CPython: PyObject_GetAttr. Methods of builtin containers stay bound until they are called."""
    owner = owner.realize(tx)
    static = type_lookup(owner.python_type(), name)
    if name == "__class__" and static is vars(object)["__class__"] and known_type(owner) is not None:
        return class_of(tx, owner)
    if isinstance(owner, ConstantVariable) and type(static) is types.WrapperDescriptorType:
        return BoundMethodVariable(owner, name)
    if type(static).__name__ == "method_descriptor" and not isinstance(owner, TensorVariable):
        if type(owner).call_method is not VariableTracker.call_method:
            return BoundMethodVariable(owner, name)
    return owner.getattr(tx, name)


def getitem(tx: Tracing, owner: VariableTracker, key: VariableTracker) -> VariableTracker:
    """CPython: PyObject_GetItem. A list or tuple indexed by a tensor needs the tensor's data: `__index__`."""
    return owner.realize(tx).slot_getitem(tx, key.realize(tx))


def truth(tx: Tracing, value: VariableTracker) -> bool:
    """CPython: PyObject_IsTrue."""
    return value.realize(tx).slot_truth(tx)


def iterate(tx: Tracing, value: VariableTracker) -> VariableTracker:
    """CPython: PyObject_GetIter."""
    value = value.realize(tx)
    items = value.sequence_items(tx) if value.is_python_constant() else None
    if items is not None and isinstance(value, ConstantVariable):
        # A string's iterator: its items are known, and nothing but its type tells it from a tuple's.
        return TupleVariable(items, guards=value.guards).slot_iter(tx)
    return value.slot_iter(tx)


def known_type(value: VariableTracker) -> Any:
    """The exact type, or None where it is not known (results of instructions that plain Python ran)."""
    tp = value.python_type()
    return None if tp is object and value.source is None else tp
