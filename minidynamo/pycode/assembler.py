"""Instructions -> a code object: arguments to numbers, jumps to distances, and the three tables.

An item is (opname, argument, region, position), in the spelling of the running CPython; the item of a label has
no opname and the label for its argument. Jumps go forwards only.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from ..exc import InternalError
from .tables import UNIT, ExceptionEntry, Position, build_exception_table, build_line_table
from .verify import ENDS, HAS_ARGUMENT, JUMPS, STRIDES
from .versions import CURRENT


class Label:
    """A place between instructions."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class Region:
    """A stretch whose exceptions go to `handler` with `depth` values left below."""

    handler: Label
    depth: int
    lasti: bool


Item = tuple[str, Any, Region | None, Position]
LABEL = ""

_OPERATORS = {symbol: number for number, (_, symbol) in enumerate(opcode._nb_ops)}  # type: ignore[attr-defined]
_COMPARISONS = {symbol: CURRENT.compare_arg(number) for number, symbol in enumerate(opcode.cmp_op)}
_INTRINSICS = [
    {name: number for number, name in enumerate(getattr(opcode, table, ()))}
    for table in ("_intrinsic_1_descs", "_intrinsic_2_descs")
]
# Opname -> the number of its argument, where that is no plain number, name or constant.
_SYMBOLS: dict[str, dict[Any, int]] = {
    "BINARY_OP": _OPERATORS,
    "COMPARE_OP": _COMPARISONS,
    "CALL_INTRINSIC_1": _INTRINSICS[0],
    "CALL_INTRINSIC_2": _INTRINSICS[1],
}
_PLAIN, _CONST, _NAME, _SLOT, _JUMP, _SYMBOL = range(6)  # what an argument is
_BY_VALUE = (str, int, bool, type(None))  # constants that are one when they are equal and of one type
_BYTES = [bytes([number]) for number in range(256)]
_EXTENDED = _BYTES[opcode.EXTENDED_ARG]


def _kind(name: str, number: int) -> int:
    rows: list[tuple[int, Iterable[int]]] = [
        (_CONST, opcode.hasconst),
        (_NAME, opcode.hasname),
        (_SLOT, (*opcode.haslocal, *opcode.hasfree)),
        (_JUMP, JUMPS),
    ]
    return (
        _SYMBOL if name in _SYMBOLS else next((kind for kind, numbers in rows if number in numbers), _PLAIN)
    )


# Opname -> (number, kind of the argument, first byte, caches behind it)
_SHAPES: dict[str, tuple[int, int, bytes, bytes]] = {
    name: (number, _kind(name, number), _BYTES[number], bytes(STRIDES[number] - UNIT))
    for name, number in opcode.opmap.items()
    if number < 256
}
_fall: dict[tuple[int, int], int] = {}  # (number, argument) -> change of the depth


def _fall_effect(name: str, number: int, arg: int) -> int:
    effect = CURRENT.fall_effects.get(name)
    if effect is None:
        effect = dis.stack_effect(number, arg if HAS_ARGUMENT[number] else None, jump=False)
    _fall[number, arg] = effect
    return effect


def _jump_effect(name: str, number: int) -> int:
    effect = CURRENT.jump_effects.get(name)
    return (
        dis.stack_effect(number, 0 if HAS_ARGUMENT[number] else None, jump=True) if effect is None else effect
    )


class _Assembly:
    """The parts of one code object."""

    def __init__(self, code: CodeType, items: list[Item], first_const: object) -> None:
        self.code = code
        self.items = items
        self.consts = [first_const]
        self.numbers: dict[Any, int] = {}
        self.names: dict[str, int] = {}
        self.varnames, self.slots = self._variables()
        self.widths: dict[int, int] = {}  # item -> how many prefixes its distance needs
        self.raw = bytearray()
        self.depth = 0
        self.entries: list[ExceptionEntry] = []
        self.runs: list[tuple[Position, int]] = []

    def _variables(self) -> tuple[tuple[str, ...], dict[str, int]]:
        """The locals with those that the items add, and every variable's slot: cells that are arguments share theirs."""
        code = self.code
        known = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        used = {arg for name, arg, _, _ in self.items if name and _SHAPES[name][1] == _SLOT}
        new = (
            [arg for name, arg, _, _ in self.items if arg.__class__ is str and arg in used]
            if used - known
            else []
        )
        varnames = (*code.co_varnames, *(name for name in dict.fromkeys(new) if name not in known))
        slots = {name: slot for slot, name in enumerate(varnames)}
        cells = [name for name in code.co_cellvars if name not in slots]
        for name in (*cells, *code.co_freevars):
            slots[name] = len(slots)
        return varnames, slots

    def number(self, value: Any) -> int:
        """The number of a constant."""
        key = (type(value), value) if type(value) in _BY_VALUE else id(value)
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.consts)
            self.consts.append(value)
        return found

    def run(self) -> bool:
        """One pass. False when a jump goes further than was expected: then once more."""
        slots, names, widths = self.slots, self.names, self.widths
        begins: dict[Label, int] = {}
        depths: dict[Label, int] = {}
        jumps: list[tuple[int, int, int, Label]] = []
        stretches: list[tuple[Region, int, int]] = []
        runs: list[tuple[Position, int]] = []
        raw = bytearray()
        at = depth = deepest = start = line_start = 0
        current: Region | None = None
        place: Position | None = None
        reachable = True
        for index, (name, arg, region, position) in enumerate(self.items):
            if name == LABEL:
                begins[arg] = at
                known = depths.get(arg)
                if known is not None:
                    if reachable and known != depth:
                        raise InternalError(f"the stack is {known} and {depth} deep at a label")
                    depth, reachable = known, True
                continue
            if region is not current:
                if current is not None:
                    stretches.append((current, start, at))
                current, start = region, at
                if region is not None:
                    below = depths[region.handler] = region.depth + region.lasti + 1
                    deepest = below if below > deepest else deepest
            if position is not place:
                if place is not None:
                    runs.append((place, (at - line_start) // UNIT))
                place, line_start = position, at
            number, kind, head, caches = _SHAPES[name]
            prefixes = 0
            if kind == _PLAIN:
                value = arg or 0
            elif kind == _SLOT:
                value = slots[arg]
            elif kind == _CONST:
                value = self.number(arg)
            elif kind == _NAME:
                flag = 0
                if arg.__class__ is tuple:
                    flag, arg = arg
                value = names.get(arg, -1)
                if value < 0:
                    value = names[arg] = len(names)
                if name in FLAGGED:
                    value = value << 1 | flag
            elif kind == _SYMBOL:
                value = _SYMBOLS[name][arg]
            else:
                value, prefixes = 0, widths.get(index, 0)
            if value > 255:
                prefixes = (value.bit_length() - 1) // 8
            for more in range(prefixes, 0, -1):
                raw += _EXTENDED + _BYTES[value >> 8 * more & 255]
            raw += head + _BYTES[value & 255] + caches
            at += UNIT * (prefixes + 1)
            if kind == _JUMP:
                after = depth + _jump_effect(name, number)
                if depths.setdefault(arg, after) != after:
                    raise InternalError(f"the stack is {depths[arg]} and {after} deep at a label")
                deepest = after if after > deepest else deepest
                jumps.append((index, at - UNIT, at + len(caches), arg))
            at += len(caches) if caches else 0
            effect = _fall.get((number, value))
            depth += _fall_effect(name, number, value) if effect is None else effect
            if depth > deepest:
                deepest = depth
            if number in ENDS:
                reachable = False
        if current is not None:
            stretches.append((current, start, at))
        if place is not None:
            runs.append((place, (at - line_start) // UNIT))
        settled = True
        for index, where, end, label in jumps:
            distance = (begins[label] - end) // UNIT
            prefixes = (distance.bit_length() - 1) // 8 if distance > 255 else 0
            if prefixes > widths.get(index, 0):
                widths[index], settled = prefixes, False
            for more in range(widths.get(index, 0) + 1):
                raw[where + 1 - UNIT * more] = distance >> 8 * more & 255
        self.raw, self.depth, self.runs = raw, deepest, runs
        self.entries = [
            ExceptionEntry(first, end, begins[region.handler], region.depth, region.lasti)
            for region, first, end in stretches
        ]
        return settled


FLAGGED = frozenset({"LOAD_GLOBAL", *(("LOAD_ATTR",) if CURRENT.flagged_attributes else ())})


def build(
    code: CodeType,
    items: list[Item],
    *,
    name: str,
    flags: int,
    first_const: object,
    check: Callable[[CodeType], int] | None,
) -> CodeType:
    """A code object of `items` with the signature, the variables and the place in the source of `code`. A local that `code` has
    not becomes a further one. check: verifies the result and gives the depth of its stack. Raises InternalError."""
    made = _Assembly(code, items, first_const)
    while not made.run():
        pass
    built = code.replace(
        co_code=bytes(made.raw),
        co_name=name,
        co_flags=flags,
        co_consts=tuple(made.consts),
        co_names=tuple(made.names),
        co_varnames=made.varnames,
        co_nlocals=len(made.varnames),
        co_stacksize=made.depth,
        co_exceptiontable=build_exception_table(made.entries),
        co_linetable=build_line_table(made.runs, code.co_firstlineno),
    )
    if check is not None and check(built) != made.depth:
        raise InternalError(f"the stack of the code for {code.co_qualname} is not {made.depth} deep")
    return built
