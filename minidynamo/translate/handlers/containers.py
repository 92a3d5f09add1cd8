"""Tuples, lists, dicts, sets and slices: building, extending, unpacking."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import CALL_ARGUMENTS, OPAQUE_VALUE, OPERATOR_FAILS
from ...rules.builtins import items_of
from ...variables import sets
from ...variables.base import VariableTracker
from ...variables.constant import ConstantVariable
from ...variables.dicts import DictVariable
from ...variables.keys import Key
from ...variables.protocol import known_type
from ...variables.sequences import ListVariable, SequenceVariable, SliceVariable, TupleVariable
from .table import Handler, handles


@handles("BUILD_TUPLE")
def build_tuple(tx: Any, inst: Instruction) -> None:
    items = tx.popn(inst.arg)
    tx.push(TupleVariable(items, guards=VariableTracker.propagate(*items)))


@handles("BUILD_LIST")
def build_list(tx: Any, inst: Instruction) -> None:
    items = tx.popn(inst.arg)
    tx.push(ListVariable(items, guards=VariableTracker.propagate(*items)))


@handles("BUILD_SLICE")
def build_slice(tx: Any, inst: Instruction) -> None:
    parts = [v.realize(tx) for v in tx.popn(inst.arg)]
    if len(parts) == 2:
        parts.append(ConstantVariable(None))
    tx.push(SliceVariable((parts[0], parts[1], parts[2])))


def _filled(tx: Any, depth: int, kind: type[VariableTracker]) -> Any:
    """The container that a display or comprehension is filling."""
    made = tx.stack[-depth].realize(tx)
    if not isinstance(made, kind):
        tx.unsupported(OPAQUE_VALUE, operation="filling a container", type=made.type_name())
    return made


@handles("BUILD_SET")
def build_set(tx: Any, inst: Instruction) -> None:
    tx.push(sets.display(tx, tx.popn(inst.arg)))


@handles("SET_ADD")
def set_add(tx: Any, inst: Instruction) -> None:
    item = tx.pop()
    _filled(tx, inst.arg, sets.SetVariable).call_method(tx, "add", [item], {})


@handles("SET_UPDATE")
def set_update(tx: Any, inst: Instruction) -> None:
    more = tx.pop()
    _filled(tx, inst.arg, sets.SetVariable).call_method(tx, "update", [more], {})


@handles("LIST_APPEND")
def list_append(tx: Any, inst: Instruction) -> None:
    item = tx.pop()
    _filled(tx, inst.arg, ListVariable).call_method(tx, "append", [item], {})


@handles("LIST_EXTEND")
def list_extend(tx: Any, inst: Instruction) -> None:
    more = items_of(tx, "unpacking", tx.pop())
    _filled(tx, inst.arg, ListVariable).call_method(tx, "extend", [TupleVariable(more)], {})


@handles("BUILD_MAP")
def build_map(tx: Any, inst: Instruction) -> None:
    pairs = tx.popn(2 * inst.arg)
    made = DictVariable({}, guards=VariableTracker.propagate(*pairs))
    for key, value in zip(pairs[::2], pairs[1::2]):
        made.put(tx, Key(tx, key), value)
    tx.push(made)


@handles("BUILD_CONST_KEY_MAP")
def build_const_key_map(tx: Any, inst: Instruction) -> None:
    keys = tx.pop().realize(tx)
    values = tx.popn(inst.arg)
    made = DictVariable({}, guards=VariableTracker.propagate(*values))
    for key, value in zip(keys.items, values):
        made.put(tx, Key(tx, key), value)
    tx.push(made)


@handles("MAP_ADD")
def map_add(tx: Any, inst: Instruction) -> None:
    key, value = tx.popn(2)
    made = _filled(tx, inst.arg, DictVariable)
    made.put(tx, Key(tx, key), value)


@handles("DICT_UPDATE")
def dict_update(tx: Any, inst: Instruction) -> None:
    more = tx.pop()
    _filled(tx, inst.arg, DictVariable).call_method(tx, "update", [more], {})


@handles("DICT_MERGE")
def dict_merge(tx: Any, inst: Instruction) -> None:
    """`f(**a, **b)`: like update, but a key that is there already is an error of the program."""
    more = tx.pop().realize(tx)
    made = _filled(tx, inst.arg, DictVariable)
    if not isinstance(more, DictVariable) or any(
        made.look_up(tx, key) is not None for key in more.all_keys(tx)
    ):
        tx.unsupported(CALL_ARGUMENTS, name="a function", detail="**keywords")
    made.call_method(tx, "update", [more], {})


@handles("LIST_TO_TUPLE")
def list_to_tuple(tx: Any, inst: Instruction) -> None:
    made = tx.pop().realize(tx)
    tx.push(TupleVariable(list(made.items), guards=VariableTracker.propagate(made)))


def unpacked(tx: Any, value: VariableTracker) -> list[VariableTracker]:
    value = value.realize(tx)
    if isinstance(value, SequenceVariable):
        return list(value.items)
    return items_of(tx, "unpacking", value)


@handles("UNPACK_SEQUENCE")
def unpack_sequence(tx: Any, inst: Instruction) -> None:
    items = unpacked(tx, tx.pop())
    if len(items) != inst.arg:
        tx.unsupported(OPERATOR_FAILS, name="unpacking", error="ValueError")
    tx.stack.extend(reversed(items))


@handles("UNPACK_EX")
def unpack_ex(tx: Any, inst: Instruction) -> None:
    before, after = inst.arg & 0xFF, inst.arg >> 8
    items = unpacked(tx, tx.pop())
    if len(items) < before + after:
        tx.unsupported(OPERATOR_FAILS, name="unpacking", error="ValueError")
    end = len(items) - after
    tx.stack.extend(reversed([*items[:before], ListVariable(items[before:end]), *items[end:]]))


@handles("GET_LEN")
def get_len(tx: Any, inst: Instruction) -> None:
    """The value stays below its length."""
    tx.push(ConstantVariable(tx.stack[-1].realize(tx).slot_len(tx)))


def matches(flag: int) -> Handler:
    """CPython: Py_TPFLAGS_SEQUENCE and Py_TPFLAGS_MAPPING of the value's type; strings are neither."""

    def handler(tx: Any, inst: Instruction) -> None:
        value = tx.stack[-1].realize(tx)
        tp = known_type(value)
        if tp is None:
            tx.unsupported(OPAQUE_VALUE, operation="match", type=value.type_name())
        tx.push(ConstantVariable(bool(tp.__flags__ & flag), guards=VariableTracker.propagate(value)))

    return handler


handles("MATCH_SEQUENCE")(matches(1 << 5))
handles("MATCH_MAPPING")(matches(1 << 6))
