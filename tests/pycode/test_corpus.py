"""The corpus is large and has every instruction that a function of Python 3.11 syntax can have."""

from __future__ import annotations

import dis
import opcode
import types

from tests.pycode.corpus import CASES

# What no function of the corpus can have, and why.
ELSEWHERE = {
    "CACHE": "room behind other instructions",
    "IMPORT_STAR": "module level only",
    "PRINT_EXPR": "the interactive prompt",
    "INTERPRETER_EXIT": "made by the interpreter",
    "ENTER_EXECUTOR": "made by the interpreter",
    "EXIT_INIT_CHECK": "made by the interpreter",
    "RESERVED": "no instruction",
    "LOAD_FROM_DICT_OR_GLOBALS": "type parameters, syntax of 3.12",
    "BUILD_TEMPLATE": "template strings, syntax of 3.14",
    "BUILD_INTERPOLATION": "template strings, syntax of 3.14",
}


def names_in(code: types.CodeType) -> set[str]:
    found = {instruction.opname for instruction in dis.get_instructions(code)}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
    return found


def test_size():
    assert len(CASES) >= 300


def test_every_opcode():
    found = set().union(*(names_in(function.__code__) for function, _ in CASES))
    real = {n for n, number in opcode.opmap.items() if number < 256 and not n.startswith("INSTRUMENTED_")}
    assert real - found <= ELSEWHERE.keys()
