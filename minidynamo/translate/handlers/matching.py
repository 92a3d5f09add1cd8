"""Patterns of `match` that look into classes and mappings."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import OPAQUE_VALUE, OPERATOR_FAILS
from ...rules.builtins import RULES, lacks
from ...static_access import type_lookup
from ...variables import protocol
from ...variables.base import VariableTracker
from ...variables.classes import ClassVariable
from ...variables.constant import ConstantVariable
from ...variables.dicts import DictVariable
from ...variables.keys import Key
from ...variables.sequences import TupleVariable
from .stack import constant_operand
from .table import handles

NONE = ConstantVariable(None)
MATCH_SELF = 1 << 22  # _Py_TPFLAGS_MATCH_SELF: one positional pattern is matched against the subject


@handles("MATCH_KEYS")
def match_keys(tx: Any, inst: Instruction) -> None:
    """CPython: match_keys, which asks `get`; that of a dict adds nothing."""
    keys, subject = tx.stack[-1].realize(tx), tx.stack[-2].realize(tx)
    if not isinstance(subject, DictVariable) or not isinstance(keys, TupleVariable):
        tx.unsupported(OPAQUE_VALUE, operation="match", type=subject.type_name())
    wanted = [Key(tx, item) for item in keys.items]
    if len(set(wanted)) < len(wanted):
        tx.unsupported(OPERATOR_FAILS, name="a mapping pattern with a key twice", error="ValueError")
    values = []
    for key in wanted:
        value = subject.look_up(tx, key)
        if value is None:
            tx.push(NONE)
            return
        values.append(value)
    tx.push(TupleVariable(values, guards=VariableTracker.propagate(subject, keys)))


@handles("MATCH_CLASS")
def match_class(tx: Any, inst: Instruction) -> None:
    """CPython: match_class."""
    names = list(constant_operand(tx, tx.pop()))
    cls, subject = tx.pop().realize(tx), tx.pop().realize(tx)
    if not isinstance(cls, ClassVariable):
        tx.unsupported(OPAQUE_VALUE, operation="match", type=subject.type_name())
    if not protocol.truth(tx, RULES[isinstance](tx, [subject, cls], {})):
        tx.push(NONE)
        return
    positional = match_args(tx, cls, inst.arg) if inst.arg else []
    found = [subject] if positional is None else []
    for name in (*(positional or ()), *names):
        if lacks(tx, subject, name):
            tx.push(NONE)
            return
        found.append(protocol.getattr_(tx, subject, name))
    tx.push(TupleVariable(found, guards=VariableTracker.propagate(subject, cls)))


def match_args(tx: Any, cls: ClassVariable, count: int) -> list[str] | None:
    """The attributes that `count` positional patterns name; None where the only one stands for the subject itself."""
    if cls.is_users() and not cls.lacks(tx, "__match_args__"):
        names = cls.getattr(tx, "__match_args__").realize(tx)
        if isinstance(names, TupleVariable):
            names.realize_deep(tx)
        known = names.as_python_constant() if names.is_python_constant() else None
        if type(known) is tuple and count <= len(known) and len(set(known)) == len(known):
            if all(type(name) is str for name in known):
                return list(known[:count])
    elif type_lookup(cls.fn, "__match_args__") is None and cls.fn.__flags__ & MATCH_SELF and count == 1:
        return None
    return tx.unsupported(OPERATOR_FAILS, name="a class pattern", error="TypeError")  # type: ignore[no-any-return]
