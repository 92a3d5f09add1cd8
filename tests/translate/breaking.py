"""Graph breaks where the test wants them."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from minidynamo import compile_frame, convert_frame
from minidynamo.events import Where
from minidynamo.pycode.instruction import Instruction
from minidynamo.pycode.lift import lift
from minidynamo.pycode.resume import is_resume_code
from minidynamo.reasons import EXPLICIT_BREAK, why
from minidynamo.translate import root
from minidynamo.translate.plan import Decision

Chooser = Callable[[types.CodeType], dict[int, Decision]]


def decision(plain: bool = False) -> Decision:
    """A break without another cause than the test."""
    return Decision(why(EXPLICIT_BREAK), Where("<test>", 1, "test"), plain)


def worthwhile(tx: root.InstructionTranslator, plain: bool) -> bool:
    """Whatever makes progress: a resume function that ends where it begins would go on for ever."""
    return bool(tx.graph.ops) or not plain or not is_resume_code(tx.code)


@contextlib.contextmanager
def breaking(choose: Chooser) -> Iterator[list[types.CodeType]]:
    """Every frame is compiled, worthwhile or not, in each round of a loop; `choose` gives the breaks of a code object. The result lists the
    code objects that were translated."""
    translated: list[types.CodeType] = []

    def translate(values: Any, code: types.CodeType, **options: Any) -> Any:
        translated.append(code)
        return root.translate(values, code, choose(code), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_frame, "translate", translate)
        patch.setattr(root.InstructionTranslator, "worthwhile", worthwhile)
        patch.setattr(convert_frame, "changes_in_rounds", lambda about: None)
        yield translated


def at(name: str, index: int, plain: bool = False) -> Chooser:
    """One break, at instruction `index` of the function `name` itself (not of its resume functions)."""
    taken: list[types.CodeType] = []

    def choose(code: types.CodeType) -> dict[int, Decision]:
        if code.co_qualname != name or taken and taken[0] is not code:
            return {}
        taken[:] = [code]
        return {index: decision(plain)}

    return choose


def everywhere(opnames: frozenset[str]) -> Chooser:
    """A break at every instruction of these kinds, in every code object."""

    def choose(code: types.CodeType) -> dict[int, Decision]:
        return {inst.index: decision() for inst in instructions(code) if inst.opname in opnames}

    return choose


def instructions(code: types.CodeType) -> tuple[Instruction, ...]:
    """Those of the program: what comes before the jump of a resume function is none."""
    found = lift(code).instructions
    return found[next(i.index for i in found if i.opname == "JUMP") :] if is_resume_code(code) else found
