"""Calls that read objects from outside and do nothing else: what the first gave, the next one of the same function with the same
arguments gives too, as long as the trace has changed nothing that it read.

The first call is watched. Each of its instructions has to be one that reads, of operands that lie on the stack; so whatever the call
looks at passes over a stack, and is noted there. From objects that exist outside of the trace and that the trace has not changed one
comes to such objects only. The guards of what was read are installed by then, and they would be the same ones again.

`dataclasses.fields` of an instance that the trace has made is known for its class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..pycode.instruction import Instruction
from ..variables.base import VariableTracker
from ..variables.classes import ClassVariable
from ..variables.constant import ConstantVariable
from ..variables.dict_objects import DictObjectVariable, NewDictObjectVariable
from ..variables.dicts import DictVariable
from ..variables.functions import BoundMethodVariable, BuiltinVariable, UserFunctionVariable
from ..variables.instance_dict import InstanceDictVariable
from ..variables.lazy import LazyVariable
from ..variables.methods import UserMethodVariable
from ..variables.modules import PythonModuleVariable
from ..variables.new_objects import NewObjectVariable
from ..variables.nn_module import NNModuleVariable
from ..variables.opaque import NullVariable
from ..variables.own_access import OwnAccessVariable
from ..variables.read_numbers import ReadNumber
from ..variables.sequences import TupleVariable
from ..variables.super import SuperVariable
from ..variables.user_objects import UserObjectVariable

#: Objects with attributes of their own. What the trace stores into them is among `Trace.changed`.
OBJECTS = frozenset({UserObjectVariable, OwnAccessVariable, DictObjectVariable, NNModuleVariable})
#: What lies outside of the trace when it has a source, and may be looked at.
OUTSIDE = OBJECTS | {BuiltinVariable, ClassVariable, DictVariable, PythonModuleVariable, UserFunctionVariable}
CONSTANTS = frozenset({ConstantVariable, NullVariable, ReadNumber})
#: Instructions that read what they take from the stack, the locals or the globals, and no more.
READING = frozenset(
    """COPY COPY_FREE_VARS IS_OP JUMP LOAD_ATTR LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_GLOBAL POP_JUMP_IF_FALSE
    POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE POP_TOP PUSH_NULL RETURN_VALUE STORE_FAST SWAP UNARY_NOT""".split()
)
#: Builtins that look at their arguments only.
LOOKING = frozenset({super, object.__getattribute__})
SIMPLE = frozenset({str, int, bool, type(None)})
MOST = 4  # arguments of a call that is kept

Key = tuple[Any, ...]


class KnownCall:
    """One call: what it gave, the ids of the trackers that it looked at, which of its arguments it realised; `held` keeps the ids."""

    __slots__ = ("checked", "held", "looked", "read", "result")

    def __init__(
        self,
        result: VariableTracker,
        read: frozenset[int],
        looked: tuple[int, ...],
        held: list[VariableTracker],
    ) -> None:
        self.result, self.read, self.looked, self.held = result, read, looked, held
        self.checked = -1  # so many changed objects are known not to be among those read


class KnownCalls:
    """Those of one trace. `log` is what has lain on the stacks of watched calls; None while none is watched."""

    def __init__(self) -> None:
        self.calls: dict[Key, KnownCall | None] = {}  # None: watched in vain
        self.log: list[VariableTracker] | None = None
        self.open = True

    def close(self) -> None:
        """Something changes that calls may read without its lying on a stack: none is known from now on."""
        self.open = False
        self.calls.clear()
        self.log = None

    def key(self, fn: Any, args: Sequence[VariableTracker]) -> Key | None:
        """What tells equal calls; None for a call that is not watched."""
        if not self.open or type(fn) is not UserFunctionVariable or len(args) > MOST:
            return None
        parts: list[Any] = [fn.source]
        for arg in args:
            if type(arg) is LazyVariable:
                if arg.real is None:
                    parts.append(arg.source)
                    continue
                arg = arg.real
            if type(arg) in OBJECTS:
                parts.append(arg.source)
            elif type(arg) is ConstantVariable and type(arg.value) in SIMPLE:
                parts.append((type(arg.value), arg.value))
            elif fn.fn is dataclasses.fields and has_fields_of_its_class(arg):
                parts.append(arg.cls)  # type: ignore[attr-defined]
            else:
                return None
        return tuple(parts)

    def find(self, tx: Any, key: Key, args: Sequence[VariableTracker]) -> VariableTracker | None:
        """What a call gives that is known."""
        call = self.calls.get(key)
        if call is None:
            return None
        changed = tx.trace.changed
        if call.checked != len(changed):
            of_fields = type(call.result) is TupleVariable
            if not call.read.isdisjoint(changed) or of_fields and any(map(is_field, changed.values())):
                self.calls[key] = None
                return None
            call.checked = len(changed)
        if self.log is not None:
            self.log.extend(call.held)
        for index in call.looked:
            args[index].realize(tx)
        result = call.result
        if type(result) is LazyVariable and result.real is None:
            return tx.lazily(result.value, result.source)
        return (
            TupleVariable(result.items.copy(), None, result.guards)
            if type(result) is TupleVariable
            else result
        )

    def watch(self, inner: Any, key: Key | None, args: Sequence[VariableTracker]) -> VariableTracker:
        """Executes the call that `inner` stands before, and keeps it if it only reads. `key` None: part of one that is watched."""
        if key is not None and isinstance(key[-1], type):
            self.fail(self.log, None)
            result = inner.run_on()
            self.keep_fields(key, result)
            return result
        outermost = self.log is None
        if self.log is None:
            self.log = []
        log, begin, effects = self.log, len(self.log), len(inner.trace.effects)
        log.extend(args)
        unseen = [i for i, arg in enumerate(args) if type(arg) is LazyVariable and arg.real is None]
        stack, instructions = inner.stack, inner.instructions
        try:
            while inner.result is None and self.log is log:
                inst = instructions[inner.index]
                if inst.opname not in READING and not reads(inner, inst, stack):
                    break
                inner.step()
                if stack and type(stack[-1]) is not ConstantVariable:
                    log.append(stack[-1])
            else:
                if key is not None and self.log is log and len(inner.trace.effects) == effects:
                    looked = tuple(i for i in unseen if args[i].real is not None)  # type: ignore[attr-defined]
                    held = list({id(value): value for value in log[begin:]}.values())
                    self.keep(inner, key, held, looked)
                if outermost and self.log is log:
                    self.log = None
                if inner.result is not None:
                    return inner.result
            self.fail(log, key)
            while inner.result is None:
                inner.step()
        except BaseException:
            self.fail(log, key)
            raise
        return inner.result

    def fail(self, log: list[VariableTracker] | None, key: Key | None) -> None:
        """No call that is watched now only reads."""
        if self.log is log:
            self.log = None
        if key is not None and self.open:
            self.calls[key] = None

    def keep(self, inner: Any, key: Key, held: list[VariableTracker], looked: tuple[int, ...]) -> None:
        self.calls[key] = None
        read: set[int] = set()
        result = inner.result
        real = result.real if type(result) is LazyVariable and result.real is not None else result
        fresh = (
            type(real) is not LazyVariable
            and type(real) not in CONSTANTS
            and not (type(real) in OUTSIDE and real.source is not None)
        )
        if fresh or not look_outside(held, read):
            return
        if read.isdisjoint(inner.trace.changed):
            self.calls[key] = KnownCall(real, frozenset(read), looked, held)

    def keep_fields(self, key: Key, result: VariableTracker) -> None:
        if type(result) is TupleVariable and self.open:
            items = [item.real if type(item) is LazyVariable else item for item in result.items]
            outside = all(type(item) is UserObjectVariable and item.source is not None for item in items)
            read = frozenset(map(id, items))
            self.calls[key] = KnownCall(result, read, (), result.items.copy()) if outside else None


def has_fields_of_its_class(value: VariableTracker) -> bool:
    """Whether an instance made in the trace has those fields only that every instance of its class has."""
    made = type(value) is NewObjectVariable or type(value) is NewDictObjectVariable
    return made and FIELDS not in value.attributes  # type: ignore[attr-defined]


FIELDS = "__dataclass_fields__"


def is_field(value: VariableTracker) -> bool:
    return isinstance(value, UserObjectVariable) and value.cls is dataclasses.Field


def look_outside(values: list[VariableTracker], read: set[int]) -> bool:
    """Whether values from the stacks are constants, or lead to objects from outside only; the ids of these are added to `read`."""
    left: list[Any] = values.copy()
    while left:
        value = left.pop()
        kind = type(value)
        if kind is LazyVariable:
            if value.real is None:
                continue  # nobody has looked
            value = value.real
            kind = type(value)
        if kind in OUTSIDE:
            if value.source is None and kind is not BuiltinVariable:
                return False
            read.add(id(value))
        elif kind in PARTS:
            left += PARTS[kind](value)
        elif kind not in CONSTANTS:
            return False
    return True


#: Views of objects that are made where they are used -> what they are views of.
PARTS: dict[type, Any] = {
    UserMethodVariable: lambda value: (value.fn, value.owner, value.looked_up_on),
    BoundMethodVariable: lambda value: (value.owner,),
    SuperVariable: lambda value: (value.cls, value.owner),
    InstanceDictVariable: lambda value: (value.owner,),
}


def reads(tx: Any, inst: Instruction, stack: list[VariableTracker]) -> bool:
    """Whether the instruction, none of READING, looks at its operands only, as far as can be told before it is executed."""
    opname = inst.opname
    if opname == "CALL":
        first, second = stack[-inst.arg - 2], stack[-inst.arg - 1]
        return looks(tx, (second if type(first) is NullVariable else first).realize(tx), stack[-1])
    if opname in ("CONTAINS_OP", "BINARY_SUBSCR"):
        table, key = stack[-2:] if opname == "BINARY_SUBSCR" else stack[-1:-3:-1]
        return is_simple(key) and is_table(table)
    if opname == "COMPARE_OP":
        return is_simple(stack[-1]) and is_simple(stack[-2])
    return opname == "LOAD_SUPER_ATTR" and getattr(stack[-3].realize(tx), "fn", None) is super


def looks(tx: Any, fn: VariableTracker, last: VariableTracker) -> bool:
    """Whether a call of `fn` looks at its arguments, of which `last` is the last one, or is one whose instructions are watched."""
    kind = type(fn)
    if kind is UserMethodVariable:
        fn = fn.fn.realize(tx)  # type: ignore[attr-defined]
        kind = type(fn)
    if kind is BoundMethodVariable:
        return fn.name == "get" and is_simple(last) and is_table(fn.owner)  # type: ignore[attr-defined]
    return kind is UserFunctionVariable or isinstance(fn, BuiltinVariable) and fn.fn in LOOKING


def is_simple(value: VariableTracker) -> bool:
    if type(value) is LazyVariable:
        if value.real is None:
            return type(value.value) in SIMPLE
        value = value.real
    return type(value) is ConstantVariable and type(value.value) in SIMPLE


def is_table(value: VariableTracker) -> bool:
    """A dict, or an object whose own methods are asked."""
    if type(value) is LazyVariable:
        if value.real is None:
            return type(value.value) is dict
        value = value.real
    return type(value) in OBJECTS or type(value) in (DictVariable, InstanceDictVariable)
