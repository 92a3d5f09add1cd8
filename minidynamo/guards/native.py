"""The program of a check_fn as an object of the native machine (`native/guard_vm.c`)."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from minidynamo.cache import GuardProgram, Validity
from minidynamo.guards.lower import OPS, Program
from minidynamo.literals import Ref, is_immutable

# How a constant is compared: MdConstKind of native/guard_vm.h.
LITERAL, EQUAL, OBJECT, WEAK = range(4)
_BY_EQUALITY = ("device",)  # torch's types whose == is that of their literals


def encode(value: object) -> tuple[int, Any]:
    """A constant as the native machine takes it. Objects of Refs are held weakly unless they are immutable."""
    if type(value) is str:
        return LITERAL, value
    if type(value) is Ref:
        target = value.resolve()
        return (OBJECT, target) if is_immutable(target) else (WEAK, weakref.ref(target))
    return (EQUAL if type(value).__name__ in _BY_EQUALITY else LITERAL), value


_ENCODE: dict[str, Callable[[Any], Any]] = {
    "CONST": encode,
    "CONSTS": lambda values: tuple(map(encode, values)),
}
_OPERANDS = [op.operand for op in sorted(OPS.values(), key=lambda op: op.opcode)]


def native_program(
    program: Program,
    arguments: int,
    compile_text: Callable[[str], Callable[..., Any]],
    *,
    builtins: dict[str, Any] | None = None,
    validity: Validity | None = None,
    witness: Callable[..., None] | None = None,
) -> GuardProgram:
    """`program` for flat `arguments`; `compile_text` makes a function of the text of a CHECK_PY.

    Raises ValueError where torch's part cannot state a tensor's metadata.
    """
    code = [
        (opcode, register, _ENCODE[kind](operand))
        if (kind := _OPERANDS[opcode]) in _ENCODE
        else (opcode, register, compile_text(operand) if kind == "TEXT" else operand)
        for opcode, register, operand in program.code
    ]
    return GuardProgram(tuple(code), arguments, builtins, validity, witness, program.inputs or ())
