"""Rows become a flat program for the native machine. The instructions are those of `guard_ops.def`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from minidynamo import exc
from minidynamo.guards.rows import GuardRow
from minidynamo.guards.text import text
from minidynamo.literals import Ref
from minidynamo.sources import (
    AttrSource,
    BuiltinSource,
    CellSource,
    ClosureSource,
    CodeSource,
    DefaultSource,
    DictItemSource,
    DictKeySource,
    GlobalSource,
    GlobalsSource,
    ItemSource,
    KwDefaultSource,
    LocalSource,
    ModulesSource,
    Source,
    TypeSource,
    WeakRefSource,
)
from minidynamo.static_access import is_one_of

OPS_FILE = Path(__file__).with_name("guard_ops.def")
_ROW = re.compile(r'^GUARD_OP\((\w+), (\w+), (\w+), "([^"]*)"\)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Op:
    """One row of guard_ops.def; `opcode` is its position."""

    opcode: int
    name: str
    input: str
    operand: str
    doc: str


def read_ops(definition: str) -> dict[str, Op]:
    """The table of a .def file. Raises InternalError when a row is written in a way that would be skipped."""
    found = _ROW.findall(definition)
    if len(found) != len(re.findall(r"^\s*GUARD_OP\(", definition, re.MULTILINE)):
        raise exc.InternalError("guard_ops.def has a row that cannot be read")
    return {row[0]: Op(number, *row) for number, row in enumerate(found)}


OPS = read_ops(OPS_FILE.read_text(encoding="utf-8"))

Instruction = tuple[int, int, Any]  # opcode, input register or -1, operand or None


@dataclass(frozen=True, slots=True)
class Program:
    """code: the instructions; registers: how many the loads fill; checks: per row, the index of its check; inputs: the
    registers of what the graph takes, None where it is loaded by other means."""

    code: tuple[Instruction, ...]
    registers: int
    checks: tuple[int, ...]
    inputs: tuple[int, ...] | None = None

    def in_python(self) -> int:
        """How many rows are left to Python text."""
        return [opcode for opcode, _, _ in self.code].count(_CHECK_PY)

    def listing(self) -> str:
        """One instruction a line, for people."""
        names = {op.opcode: op.name for op in OPS.values()}
        lines, register = [], 0
        for opcode, source, operand in self.code:
            name = names[opcode]
            line = f"{name} " + ", ".join(
                [f"r{source}"] * (source >= 0) + [repr(operand)] * (operand is not None)
            )
            if name.startswith("LOAD_"):
                line, register = f"r{register} = {line}", register + 1
            lines.append(line.rstrip())
        return "\n".join(lines)


def row_of(checks: tuple[int, ...], instruction: int) -> int:
    """The row that an instruction was made for, `checks` being those of its program: a load belongs to the first check after it."""
    after = [(check, row) for row, check in enumerate(checks) if check >= instruction]
    return min(after)[1] if after else len(checks) - 1


class Unlowered(Exception):
    """A path or row has no instructions; its text is run by Python."""


# Source class -> (instruction, its operand). Roots first, then steps from a base.
_ROOTS: dict[type[Source], tuple[str, Callable[[Any, tuple[str, ...]], Any]]] = {
    LocalSource: ("LOAD_LOCAL", lambda s, names: names.index(s.local)),
    GlobalsSource: ("LOAD_GLOBALS", lambda s, names: None),
    GlobalSource: ("LOAD_GLOBAL", lambda s, names: s.global_name),
    ModulesSource: ("LOAD_MODULES", lambda s, names: None),
    BuiltinSource: ("LOAD_BUILTIN", lambda s, names: s.builtin_name),
    ClosureSource: ("LOAD_CLOSURE", lambda s, names: s.index),
}
_STEPS: dict[type[Source], tuple[str, Callable[[Any], Any]]] = {
    AttrSource: ("LOAD_ATTR", lambda s: s.member),
    ItemSource: ("LOAD_ITEM", lambda s: s.key),
    DictItemSource: ("LOAD_DICT_ITEM", lambda s: s.key),
    DictKeySource: ("LOAD_DICT_KEY", lambda s: s.index),
    TypeSource: ("LOAD_TYPE", lambda s: None),
    WeakRefSource: ("LOAD_WEAKREF", lambda s: None),
    CodeSource: ("LOAD_CODE", lambda s: None),
    DefaultSource: ("LOAD_DEFAULT", lambda s: s.index),
    KwDefaultSource: ("LOAD_KWDEFAULT", lambda s: s.parameter),
    CellSource: ("LOAD_CELL", lambda s: s.index),
}
# Row kind -> instruction. A kind that is not here becomes CHECK_PY.
_CHECKS = {
    "TYPE_MATCH": "CHECK_TYPE_ID",
    "ID_MATCH": "CHECK_OBJ_ID",
    "FUNCTION_MATCH": "CHECK_CODE_ID",
    "CONSTANT_MATCH": "CHECK_IS_CONST",
    "DUPLICATE_INPUT": "CHECK_IS",
    "NO_ALIAS": "CHECK_IS_NOT",
    "DISTINCT": "CHECK_DISTINCT",
    "EQUALS_MATCH": "CHECK_EQUAL",
    "SAME_MATCH": "CHECK_SAME",
    "LENGTH": "CHECK_LENGTH",
    "GLOBAL_STATE": "CHECK_STATE",
    "GLOBAL_ABSENT": "CHECK_NO_GLOBAL",
    "HASATTR": "CHECK_ATTR",
    "NOT_HASATTR": "CHECK_NO_ATTR",
    "PRESENT": "CHECK_PRESENT",
    "OWN_ATTR": "CHECK_OWN",
    "NOT_OWN_ATTR": "CHECK_NO_OWN",
    "LACKS_MEMBERS": "CHECK_LACKS",
    "EMPTY_MEMBERS": "CHECK_EMPTY",
    "DICT_CONTAINS": "CHECK_KEY",
    "DICT_NOT_CONTAINS": "CHECK_NO_KEY",
    "DICT_HAS": "CHECK_KEY",
    "DICT_LACKS": "CHECK_NO_KEY",
    "DICT_KEYS": "CHECK_DICT_KEYS",
    "SET_HAS": "CHECK_SET_HAS",
    "SET_LACKS": "CHECK_SET_LACKS",
    "SET_ITEMS": "CHECK_SET_ITEMS",
    "SET_ORDER": "CHECK_SET_ORDER",
    "NAME_MATCH": "CHECK_SAME",
    "WEAKREF_ALIVE": "CHECK_WEAKREF",
    "ITERATOR_LENGTH": "CHECK_ITERATOR",
    "TENSOR_MATCH": "CHECK_TENSOR",
}
# Instructions that need torch's part of the native code.
TORCH_OPS = frozenset({"CHECK_TENSOR", "CHECK_STATE"})
# Instructions that compare with their constants; the others look them up.
_COMPARING = frozenset({"CHECK_SAME", "CHECK_DICT_KEYS", "CHECK_SET_ITEMS", "CHECK_SET_ORDER"})
_LARGEST_SET = 64  # elements that are compared each with each


# Row kind -> (instruction, whether it reads a register, what its operand is); source class -> (instruction, its operand, whether
# that is a constant). Looked at for every guard of every compilation.
_ROW_OPS = {kind: (OPS[name], OPS[name].input == "REG", OPS[name].operand) for kind, name in _CHECKS.items()}
_STEP_OPS = {
    cls: (OPS[name].opcode, operand, OPS[name].operand == "CONST") for cls, (name, operand) in _STEPS.items()
}
_ROOT_OPS = {cls: (OPS[name].opcode, operand) for cls, (name, operand) in _ROOTS.items()}
_LOAD_MEMBER, _CHECK_PY = OPS["LOAD_MEMBER"].opcode, OPS["CHECK_PY"].opcode


def loadable(names: tuple[str, ...]) -> Callable[[Source], bool]:
    """Whether a program for these flat argument names can load the value of a source. One question knows of those before."""
    lowerer = _Lowerer(names, torch=False)

    def is_loadable(source: Source) -> bool:
        try:
            lowerer.load(source)
        except Unlowered:
            return False
        return True

    return is_loadable


class _Lowerer:
    def __init__(self, names: tuple[str, ...], torch: bool) -> None:
        self.names = names
        self.torch = torch
        self.code: list[Instruction] = []
        self.registers: dict[Source, int] = {}

    def load(self, source: Source) -> int:
        """The register of a path; a path is loaded once, at its first use."""
        registers = self.registers
        if source in registers:
            return registers[source]
        parent = source.parent()
        if parent is not None:
            step = _STEP_OPS.get(type(source))
            if step is None:
                raise Unlowered(source)
            opcode, operand_of, constant = step
            if isinstance(source, AttrSource) and source.plain_base() is not None:
                opcode = _LOAD_MEMBER
            operand = operand_of(source)
            if constant and type(operand) is not str:
                _check_constant(operand, compared=False)
            base = registers[parent] if parent in registers else self.load(parent)
            self.code.append((opcode, base, operand))
        else:
            root = _ROOT_OPS.get(type(source))
            if root is None:
                raise Unlowered(source)
            self.code.append((root[0], -1, root[1](source, self.names)))
        registers[source] = number = len(registers)
        return number

    def inputs(self, sources: Iterable[Source] | None) -> tuple[int, ...] | None:
        """The registers of `sources`; None when one of them has no instructions. (Loads of others may stay behind.)"""
        if sources is None:
            return None
        try:
            return tuple(map(self.load, sources))
        except Unlowered:
            return None

    def check(self, row: GuardRow) -> None:
        found = _ROW_OPS.get(row.kind)
        if found is None or not self.torch and found[0].name in TORCH_OPS:
            raise Unlowered(row.kind)
        op, reads, kind = found
        operand: Any = None
        if kind == "PTR":
            (operand,) = row.literals
        elif kind == "CONST":
            (operand,) = row.literals
            if type(operand) not in _SIMPLE:
                _check_constant(operand, op.name in _COMPARING)
        elif kind == "SPEC":
            operand = row.literals
        elif kind != "NONE":
            operand = self.operand(op, row)
        register = -1
        if reads:
            path = AttrSource(row.path, "__name__") if row.kind == "NAME_MATCH" else row.path
            register = self.registers[path] if path in self.registers else self.load(path)
        self.code.append((op.opcode, register, operand))

    def operand(self, op: Op, row: GuardRow) -> Any:
        match op.operand:
            case "REG":
                return self.load(row.literals[0])
            case "REGS":
                own, others = row.literals
                return (len(own.items), *map(self.load, own.items + others.items))
            case "CONSTS":
                if op.name.startswith("CHECK_SET") and len(row.literals[0]) > _LARGEST_SET:
                    raise Unlowered(row.kind)
                for constant in row.literals[0]:
                    _check_constant(constant, op.name in _COMPARING)
        return row.literals[0]


_SIMPLE = frozenset(
    {str, int, bool, float, type(None)}
)  # compared as their literals are, with nothing inside


def _check_constant(value: object, compared: bool) -> None:
    """Raises Unlowered for a constant that needs Python: one with Refs inside, or whose comparison as a literal is not
    that of its type."""
    if type(value) is Ref:
        return
    if (
        _has_refs(value)
        or compared
        and not is_one_of(type(value), _EQUAL_AS_LITERALS)
        and not _is_bitwise(value)
    ):
        raise Unlowered(value)


def _has_refs(value: object) -> bool:
    return isinstance(value, tuple) and any(type(item) is Ref or _has_refs(item) for item in value)


# Types whose == between two of them is that of their literals.
_EQUAL_AS_LITERALS = (torch.device,)
_BITWISE: tuple[type, ...] = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(Ellipsis),
    type(NotImplemented),
)
_BITWISE += (torch.dtype, torch.layout, torch.memory_format)


def _is_bitwise(value: object) -> bool:
    """Equal literals of such a type have equal bits, part by part."""
    if is_one_of(type(value), (tuple, torch.Size)):
        return all(map(_is_bitwise, value))  # type: ignore[call-overload]
    return is_one_of(type(value), _BITWISE)


def lower(
    rows: Iterable[GuardRow],
    names: tuple[str, ...],
    *,
    inputs: Iterable[Source] | None = None,
    torch: bool = True,
) -> Program:
    """The program of `rows`: their order, then the rows that are left to Python, which runs last.

    names: the flat argument names of the check_fn
    inputs: the sources that the graph takes; the program has none if one of them cannot be loaded
    torch: whether there are native instructions for tensors and torch's state
    """
    lowerer = _Lowerer(names, torch)
    checks: list[int] = []
    left: list[tuple[int, GuardRow]] = []
    code, registers = lowerer.code, lowerer.registers
    size = 0
    for number, row in enumerate(rows):
        mark = size
        try:
            lowerer.check(row)
        except Unlowered:
            for _ in code[mark:]:  # loads, each of one register
                registers.popitem()
            del code[mark:]
            left.append((number, row))
        size = len(code)
        checks.append(size - 1)
    registers_of_inputs = lowerer.inputs(inputs)
    for number, row in left:
        code.append((_CHECK_PY, -1, text(row)))
        checks[number] = len(code) - 1
    return Program(tuple(code), len(registers), tuple(checks), registers_of_inputs)
