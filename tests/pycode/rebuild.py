"""Canonical instructions back into expression and statement values, for straight-line code."""

from __future__ import annotations

from types import CodeType
from typing import Any

from minidynamo.pycode import expr as x
from minidynamo.pycode.canon import CANON
from minidynamo.pycode.instruction import Instruction
from minidynamo.pycode.lift import lift
from minidynamo.pycode.versions import CURRENT


class NotStraight(Exception):
    """The code has jumps, or uses the stack as no tree of values does."""


# Canonical instruction -> the value or statement that means it; all others become an Op or an Effect.
LEAVES: dict[str, Any] = {
    "LOAD_CONST": x.Const,
    "LOAD_FAST": x.Local,
    "LOAD_GLOBAL": x.Global,
    "LOAD_DEREF": x.Deref,
    "LOAD_CLOSURE": x.Cell,
}
STATEMENTS: dict[str, Any] = {
    "POP_TOP": lambda i, values: x.Do(*values),
    "STORE_FAST": lambda i, values: x.Assign(i.arg, *values),
    "DELETE_FAST": lambda i, values: x.Delete(i.arg),
    "RETURN_VALUE": lambda i, values: x.Return(*values),
}
# Instructions that leave no value.
EFFECTS = frozenset(
    """STORE_ATTR DELETE_ATTR STORE_SUBSCR DELETE_SUBSCR STORE_GLOBAL DELETE_GLOBAL STORE_DEREF
    DELETE_DEREF""".split()
)
# Instructions of one result that become an Op, although no emitter has their name.
SPELLED_OTHERWISE = frozenset({"BUILD_CONST_KEY_MAP", "SET_FUNCTION_ATTRIBUTE"})
NO_TREE = frozenset({"COPY", "SWAP", "IMPORT_FROM", "GET_LEN", "RAISE_VARARGS"})
VALUES = frozenset(CURRENT.emit) | SPELLED_OTHERWISE


def body_of(code: CodeType) -> x.Body:
    """Statements that do what straight-line code does. Raises NotStraight."""
    ir = lift(code)
    if ir.regions:
        raise NotStraight("exception regions")
    stack: list[x.Expr] = []
    body: list[x.Stmt] = []
    for instruction in ir.instructions:
        body.append(x.At(ir.line_of(instruction.index) or code.co_firstlineno))
        statement = _step(instruction, stack)
        if statement is not None:
            if stack:
                raise NotStraight("a statement within an expression")
            body.append(statement)
        if instruction.opname == "RETURN_VALUE":
            return tuple(body)
    raise NotStraight("no return")


def _step(i: Instruction, stack: list[x.Expr]) -> x.Stmt | None:
    """Apply one instruction to the stack of values; what it does beyond that, if it does."""
    name = i.opname
    if name in ("MAKE_CELL", "COPY_FREE_VARS"):
        return None
    if name in LEAVES:
        stack.append(LEAVES[name](i.arg))
        return None
    if name == "PUSH_NULL":
        stack.append(x.Null())
        return None
    if name == "SWAP" and i.arg == 2 and x.Null() in stack[-2:]:
        stack[-2:] = stack[:-3:-1]
        return None
    if name in STATEMENTS:
        values = [stack.pop()] if CANON[name].effect(i.arg) else []
        statement: x.Stmt = STATEMENTS[name](i, values)
        return statement
    if name not in VALUES or name in NO_TREE or CANON[name].jump_effect is not None:
        raise NotStraight(name)
    results = 0 if name in EFFECTS else 1
    split = len(stack) - (results - CANON[name].effect(i.arg))
    operands = tuple(stack[split:])
    del stack[split:]
    if not results:
        return x.Effect(name, i.arg, operands)
    stack.append(x.Op(name, i.arg, operands))
    return None
