"""Rows become a flat program for the native machine. The instructions are those of `guard_ops.def`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minidynamo import exc
from minidynamo.guards.rows import GuardRow
from minidynamo.guards.text import text
from minidynamo.sources import (
    PLAIN_MEMBERS,
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
    Source,
    TypeSource,
    WeakRefSource,
)

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
    """code: the instructions; registers: how many the loads fill; checks: per row, the index of its check."""

    code: tuple[Instruction, ...]
    registers: int
    checks: tuple[int, ...]

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


class Unlowered(Exception):
    """A path or row has no instructions; its text is run by Python."""


# Source class -> (instruction, its operand). Roots first, then steps from a base.
_ROOTS: dict[type[Source], tuple[str, Callable[[Any, tuple[str, ...]], Any]]] = {
    LocalSource: ("LOAD_LOCAL", lambda s, names: names.index(s.local)),
    GlobalsSource: ("LOAD_GLOBALS", lambda s, names: None),
    GlobalSource: ("LOAD_GLOBAL", lambda s, names: s.global_name),
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
    "DICT_CONTAINS": "CHECK_KEY",
    "DICT_NOT_CONTAINS": "CHECK_NO_KEY",
    "DICT_KEYS": "CHECK_DICT_KEYS",
    "TENSOR_MATCH": "CHECK_TENSOR",
}


class _Lowerer:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.code: list[Instruction] = []
        self.registers: dict[Source, int] = {}

    def add(self, name: str, source: int = -1, operand: Any = None) -> None:
        self.code.append((OPS[name].opcode, source, operand))

    def load(self, source: Source) -> int:
        """The register of a path; a path is loaded once, at its first use."""
        if source in self.registers:
            return self.registers[source]
        parent = source.parent()
        kind = type(source)
        if parent is None and kind in _ROOTS:
            name, root_operand = _ROOTS[kind]
            self.add(name, operand=root_operand(source, self.names))
        elif parent is not None and kind in _STEPS:
            name, operand = _STEPS[kind]
            if isinstance(source, AttrSource) and source.member in PLAIN_MEMBERS:
                name = "LOAD_MEMBER"
            base = self.load(parent)
            self.add(name, base, operand(source))
        else:
            raise Unlowered(source)
        self.registers[source] = len(self.registers)
        return self.registers[source]

    def check(self, row: GuardRow) -> None:
        if row.kind not in _CHECKS:
            raise Unlowered(row.kind)
        name = _CHECKS[row.kind]
        source = self.load(row.path) if OPS[name].input == "REG" else -1
        if OPS[name].operand == "SPEC":
            self.add(name, source, row.literals)
        elif OPS[name].operand == "REGS":
            own, others = row.literals
            self.add(name, source, (len(own.items), *map(self.load, own.items + others.items)))
        elif OPS[name].operand == "REG":
            self.add(name, source, self.load(row.literals[0]))
        else:
            self.add(name, source, row.literals[0])


def lower(rows: Iterable[GuardRow], names: tuple[str, ...]) -> Program:
    """The program of `rows` in their order; `names` are the flat argument names of the check_fn."""
    lowerer = _Lowerer(names)
    checks = []
    for row in rows:
        mark, registers = len(lowerer.code), dict(lowerer.registers)
        try:
            lowerer.check(row)
        except Unlowered:
            del lowerer.code[mark:]
            lowerer.registers = registers
            lowerer.add("CHECK_PY", operand=text(row))
        checks.append(len(lowerer.code) - 1)
    return Program(tuple(lowerer.code), len(lowerer.registers), tuple(checks))
