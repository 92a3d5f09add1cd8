"""copy.copy and copy.deepcopy of what the trace knows: the algorithm of the module `copy`, and of `object.__reduce_ex__` behind it."""

from __future__ import annotations

import copy
import copyreg
from typing import NoReturn

from ..reasons import UNSUPPORTED_CALL
from ..sources import AttrSource, ItemSource, ModulesSource
from ..static_access import type_lookup
from ..variables.base import NO_GUARDS, Provenance, Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.deques import DequeVariable
from ..variables.dict_kinds import DefaultDictVariable, OrderedDictVariable
from ..variables.dict_objects import DictObject
from ..variables.dicts import DictVariable
from ..variables.enums import EnumVariable
from ..variables.functions import BuiltinVariable, FunctionVariable
from ..variables.instance_dict import InstanceDictVariable
from ..variables.keys import Key
from ..variables.methods import UserMethodVariable
from ..variables.modules import PythonModuleVariable
from ..variables.new_objects import NewObjectVariable
from ..variables.sequences import NONE, ListVariable, TupleVariable
from ..variables.sets import FrozenSetVariable, SetVariable
from ..variables.user_objects import SLOT, UserObject
from .builtins import lacks, positional, rule
from .classes import ABSTRACT, allocate, makes_plain_objects, may_allocate

Copies = dict[
    int, tuple[VariableTracker, VariableTracker]
]  # id -> (the original, its copy): the id stays its own
ATOMS = (ConstantVariable, BuiltinVariable, FunctionVariable, EnumVariable)
DICTS = (DictVariable, OrderedDictVariable, DefaultDictVariable, InstanceDictVariable)
REDUCERS = ("__reduce_ex__", "__reduce__", "__getnewargs_ex__", "__getnewargs__")


class MemoVariable(DictVariable):
    """The memo that a `__deepcopy__` of the program is given, to hand it on."""

    __slots__ = ("copies",)

    def __init__(self, copies: Copies, guards: Provenance = NO_GUARDS) -> None:
        super().__init__({}, guards=guards)
        self.copies = copies


@rule(copy.copy)
@positional("copy.copy", 1, 1)
def _copy(tx: Tracing, value: VariableTracker) -> VariableTracker:
    """CPython: copy.copy."""
    if isinstance(value, (*ATOMS, FrozenSetVariable)) or type(value) is TupleVariable:
        return value
    if type(value) in (ListVariable, DequeVariable, SetVariable, *DICTS):
        return value.call_method(tx, "copy", [], {})
    made = by_hook(tx, value, "__copy__", type(value), ())
    return made or reconstructed(tx, value, None)


@rule(copy.deepcopy)
@positional("copy.deepcopy", 1, 2)
def _deepcopy(tx: Tracing, value: VariableTracker, memo: VariableTracker = NONE) -> VariableTracker:
    if isinstance(memo, MemoVariable):
        return deep(tx, value, memo.copies)
    if memo.python_type() is not type(None):
        tx.unsupported(UNSUPPORTED_CALL, name="copy.deepcopy with a memo of the program's")
    return deep(tx, value, {})


def deep(tx: Tracing, value: VariableTracker, copies: Copies) -> VariableTracker:
    """CPython: copy.deepcopy: one object in two places stays one; a tuple of atoms is itself."""
    value = value.realize(tx)
    known = copies.get(id(value))
    if known is not None:
        return known[1]
    if isinstance(value, ATOMS):
        return value
    tx.trace.step()
    if type(value) is TupleVariable:
        return deep_tuple(tx, value, copies)
    if type(value) in (ListVariable, DequeVariable):
        return deep_list(tx, value, copies)
    if type(value) in DICTS:
        return deep_dict(tx, value, copies)
    if isinstance(value, SetVariable):
        return deep_set(tx, value, copies)
    made = by_hook(tx, value, "__deepcopy__", type(value), (MemoVariable(copies),))
    if made is None:
        made = reconstructed(tx, value, copies)
    copies[id(value)] = value, made
    return made


def deep_tuple(tx: Tracing, value: TupleVariable, copies: Copies) -> VariableTracker:
    """CPython: copy._deepcopy_tuple. A tuple that contains itself was copied on the way down."""
    items = [item.realize(tx) for item in value.items]
    made = [deep(tx, item, copies) for item in items]
    if id(value) in copies:
        return copies[id(value)][1]
    same = all(a is b for a, b in zip(items, made))
    copies[id(value)] = value, value if same else TupleVariable(made, guards=value.guards)
    return copies[id(value)][1]


def deep_list(tx: Tracing, value: VariableTracker, copies: Copies) -> VariableTracker:
    """CPython: copy._deepcopy_list; deque.__reduce__."""
    made = value.call_method(tx, "copy", [], {})
    assert isinstance(made, ListVariable)
    copies[id(value)] = value, made
    tx.trace.holds(made)
    items = list(made.items)
    made.items.clear()
    for item in items:
        made.items.append(deep(tx, item, copies))
    return made


def deep_dict(tx: Tracing, value: VariableTracker, copies: Copies) -> VariableTracker:
    """CPython: copy._deepcopy_dict; `__reduce__` of OrderedDict and defaultdict."""
    assert isinstance(value, DictVariable)
    keys = value.all_keys(tx)
    made = value.like({}, value.guards)
    if isinstance(made, DefaultDictVariable):
        made.factory = deep(tx, made.factory, copies)
    copies[id(value)] = value, made
    tx.trace.holds(made)
    for key in keys:
        made.put(tx, Key(tx, deep(tx, key.tracker, copies)), deep(tx, value.items[key], copies))
    return made


def deep_set(tx: Tracing, value: SetVariable, copies: Copies) -> VariableTracker:
    """CPython: set_reduce; the elements are to be their own copies."""
    items = value.sequence_items(tx)
    if items is None or not all(item.realize(tx) is deep(tx, item, copies) for item in items):
        tx.unsupported(UNSUPPORTED_CALL, name="copy.deepcopy of a set of such elements")
    if isinstance(value, FrozenSetVariable):
        return value if not items else tx.call(BuiltinVariable(frozenset, None), [ListVariable(items)], {})
    copies[id(value)] = value, value.call_method(tx, "copy", [], {})
    return copies[id(value)][1]


# --- objects --------------------------------------------------------------------------------------------------------------


def by_hook(
    tx: Tracing, value: VariableTracker, name: str, kind: type, args: tuple[VariableTracker, ...]
) -> VariableTracker | None:
    """What the object's own method for copying gives; None when it has none."""
    if not isinstance(value, UserObject):
        if isinstance(value, PythonModuleVariable) or type_lookup(value.python_type(), name) is not None:
            refuse(tx, value)
        return None
    if lacks(tx, value, name):
        return None
    return tx.call(value.getattr(tx, name), list(args), {}).realize(tx)


def reconstructed(tx: Tracing, value: VariableTracker, copies: Copies | None) -> VariableTracker:
    """CPython: object.__reduce_ex__(4), copy._reconstruct. Without `copies` the parts are those of the original."""
    if not isinstance(value, UserObject) or not may_be_copied(value):
        refuse(tx, value)
    for name in REDUCERS:
        if not lacks(tx, value, name) and not is_own_of_object(value.getattr(tx, name), name):
            refuse(tx, value)
    cls = value.class_variable(tx).realize(tx)
    assert isinstance(cls, BuiltinVariable)
    refuse_registered(tx, cls)
    made = allocate(tx, cls)
    if copies is not None:
        copies[id(value)] = value, made
    getstate = None if lacks(tx, value, "__getstate__") else value.getattr(tx, "__getstate__")
    state: VariableTracker | None = None
    if getstate is not None and not is_own_of_object(getstate, "__getstate__"):
        state = tx.call(getstate, [], {}).realize(tx)
    slots = slots_of(tx, value) if state is None else []
    if state is None:
        state = members_of(tx, value)
    if copies is not None:
        state = deep(tx, state, copies)
    set_state(tx, made, state)
    for name, part in slots:
        made.setattr(tx, name, part if copies is None else deep(tx, part, copies))
    if isinstance(value, DictObject):
        copy_items(tx, value, made, copies)
    return made


def may_be_copied(value: UserObject) -> bool:
    """`copyreg.__newobj__` makes an instance whose state is its attributes (and its items, of a dict)."""
    if not isinstance(value, DictObject):
        return makes_plain_objects(value.cls) and may_allocate(value.cls)
    plain = type_lookup(value.cls, "__new__") is dict.__new__ and not value.cls.__flags__ & ABSTRACT
    return plain and type_lookup(value.cls, "__del__") is None


def copy_items(tx: Tracing, value: DictObject, made: NewObjectVariable, copies: Copies | None) -> None:
    """What `items` gives, stored by the class's own `__setitem__`."""
    if value.c_method(tx, "items") is None:
        refuse(tx, value)
    for key in value.contents.all_keys(tx):
        name, item = key.tracker, value.contents.items[key]
        if copies is not None:
            name, item = deep(tx, name, copies), deep(tx, item, copies)
        made.slot_setitem(tx, name, item)


def members_of(tx: Tracing, value: UserObject) -> VariableTracker:
    """`__dict__` of the object, or None for one that has none, or nothing in it."""
    members = NONE if lacks(tx, value, "__dict__") else value.getattr(tx, "__dict__").realize(tx)
    if members.python_type() is type(None):
        return members
    if not isinstance(members, InstanceDictVariable):
        refuse(tx, value)
    return members if members.slot_len(tx) else NONE


def slots_of(tx: Tracing, value: UserObject) -> list[tuple[str, VariableTracker]]:
    """The slots of the class that have a value. CPython: copyreg._slotnames."""
    found = []
    for base in type.__dict__["__mro__"].__get__(value.cls):
        for name, raw in type.__dict__["__dict__"].__get__(base).items():
            if isinstance(raw, SLOT):
                part = value.own_attribute(tx, name)
                found += [] if part is None else [(name, part)]
    return found


def set_state(tx: Tracing, made: NewObjectVariable, state: VariableTracker) -> None:
    """CPython: the part of copy._reconstruct that is about the state."""
    if state.python_type() is type(None):
        return
    if not lacks(tx, made, "__setstate__"):
        tx.call(made.getattr(tx, "__setstate__"), [state], {})
        return
    if not isinstance(state, DictVariable):
        refuse(tx, made)
    made.getattr(tx, "__dict__").realize(tx).call_method(tx, "update", [state], {})


def is_own_of_object(method: VariableTracker, name: str) -> bool:
    """Whether a method that was read from an instance is the one that `object` gives it."""
    fn = method.fn if isinstance(method, UserMethodVariable) else None
    return isinstance(fn, BuiltinVariable) and fn.fn is type_lookup(object, name)


def refuse_registered(tx: Tracing, cls: BuiltinVariable) -> None:
    """Nobody has told `copyreg` how to take apart instances of the class; guarded."""
    module = AttrSource(ItemSource(ModulesSource(), "copyreg"), "__dict__")
    table = tx.wrap(copyreg.dispatch_table, ItemSource(module, "dispatch_table")).realize(tx)
    if not isinstance(table, DictVariable) or table.look_up(tx, Key(tx, cls)) is not None:
        tx.unsupported(UNSUPPORTED_CALL, name=f"copying a {cls.name()}, which copyreg knows")


def refuse(tx: Tracing, value: VariableTracker) -> NoReturn:
    tx.unsupported(UNSUPPORTED_CALL, name=f"copying a {value.type_name()}")
