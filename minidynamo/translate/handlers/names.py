"""Locals, globals, cells, attributes."""

from __future__ import annotations

from typing import Any

from ...guards.builder import GuardBuilder
from ...pycode.instruction import Instruction
from ...reasons import OPERATOR_FAILS, STORE
from ...variables import protocol, wrapper_for
from ...variables.base import VariableTracker
from ...variables.functions import Cell, CellVariable
from ...variables.lazy import LazyVariable
from ...variables.opaque import NULL, NullVariable, OpaqueVariable
from ..cells import OutsideCell
from .table import handles


@handles("LOAD_FAST")
def load_fast(tx: Any, inst: Instruction) -> None:
    known = tx.symbolic_locals
    if inst.arg not in known:
        tx.unsupported(OPERATOR_FAILS, name=f"variable {inst.arg!r}", error="UnboundLocalError")
    tx.stack.append(known[inst.arg])


@handles("STORE_FAST")
def store_fast(tx: Any, inst: Instruction) -> None:
    value = tx.stack.pop()
    if not isinstance(value, (NullVariable, CellVariable)):
        tx.symbolic_locals[inst.arg] = value
    elif isinstance(
        value, CellVariable
    ):  # CPython: a comprehension restores a variable, here one that was captured,
        tx.cells[inst.arg] = value.cell
    else:  # or one that was unbound
        tx.symbolic_locals.pop(inst.arg, None)


@handles("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(tx: Any, inst: Instruction) -> None:
    """CPython 3.12: a comprehension that is no function of its own puts a variable of the frame aside, a cell if it lies in one."""
    cell = tx.cells.pop(inst.arg, None)
    tx.push(tx.symbolic_locals.pop(inst.arg, NULL) if cell is None else CellVariable(cell))


@handles("DELETE_FAST")
def delete_fast(tx: Any, inst: Instruction) -> None:
    old = tx.symbolic_locals.get(inst.arg)
    if old is None:
        tx.unsupported(OPERATOR_FAILS, name=f"variable {inst.arg!r}", error="UnboundLocalError")
    if not inst.arg.startswith("___") and is_unknown(
        tx, old
    ):  # (a resume function moves its own to the stack)
        tx.unsupported(
            STORE, operation=f"del {inst.arg}", what=f"a {old.type_name()}, which may act when it dies"
        )
    del tx.symbolic_locals[inst.arg]


def is_unknown(tx: Any, value: VariableTracker) -> bool:
    """Whether nothing follows values of its type, so that nobody knows what its death does. Guarded."""
    if isinstance(value, LazyVariable):
        if value.real is None:
            value.make_guards(tx, GuardBuilder.TYPE_MATCH)
            bound_in_c = type.__dict__["__module__"].__get__(type(type(value.value))) == "pybind11_builtins"
            return wrapper_for(value.value) is None or bound_in_c
        value = value.real
    return type(value) is OpaqueVariable


@handles("LOAD_GLOBAL")
def load_global(tx: Any, inst: Instruction) -> None:
    tx.stack.append(tx.scope.load(tx, inst.arg))


@handles("STORE_GLOBAL")
def store_global(tx: Any, inst: Instruction) -> None:
    tx.scope.store(tx, inst.arg, tx.pop())


@handles("DELETE_GLOBAL")
def delete_global(tx: Any, inst: Instruction) -> None:
    tx.scope.delete(tx, inst.arg)


@handles("STORE_ATTR")
def store_attr(tx: Any, inst: Instruction) -> None:
    value, owner = tx.popn(2)
    owner.realize(tx).setattr(tx, inst.arg, value)


@handles("DELETE_ATTR")
def delete_attr(tx: Any, inst: Instruction) -> None:
    tx.pop().realize(tx).delattr(tx, inst.arg)


@handles("LOAD_ATTR")
def load_attr(tx: Any, inst: Instruction) -> None:
    stack = tx.stack
    stack[-1] = protocol.getattr_(tx, stack[-1], inst.arg)


@handles("LOAD_SUPER_ATTR")
def load_super_attr(tx: Any, inst: Instruction) -> None:
    """CPython: LOAD_SUPER_ATTR, for `super()` too: the class and the first argument are on the stack."""
    fn, cls, self = tx.popn(3)
    tx.push(protocol.getattr_(tx, tx.call(fn, [cls, self], {}), inst.arg))


@handles("MAKE_CELL")
def make_cell(tx: Any, inst: Instruction) -> None:
    """CPython: the variable moves from its slot into a fresh cell."""
    cell = tx.cells[inst.arg] = Cell(inst.arg, tx.symbolic_locals.pop(inst.arg, None))
    tx.trace.holds(cell)


@handles("COPY_FREE_VARS")
def copy_free_vars(tx: Any, inst: Instruction) -> None:
    tx.copy_free_vars()


@handles("LOAD_CLOSURE")
def load_closure(tx: Any, inst: Instruction) -> None:
    cell = tx.cells.get(inst.arg)
    if (
        cell is None
    ):  # CPython 3.13: put aside by a comprehension whose own variable of that name is not captured
        load_fast(tx, inst)
    else:
        tx.push(CellVariable(cell))


@handles("LOAD_DEREF")
def load_deref(tx: Any, inst: Instruction) -> None:
    tx.push(tx.read_cell(tx.cells[inst.arg]))


@handles("STORE_DEREF")
def store_deref(tx: Any, inst: Instruction) -> None:
    cell = tx.cells[inst.arg]
    if isinstance(cell, OutsideCell):
        cell.write(tx, tx.stack[-1])
        tx.pop()
    else:
        cell.content = tx.pop()


@handles("DELETE_DEREF")
def delete_deref(tx: Any, inst: Instruction) -> None:
    """A cell of the trace is emptied; one from outside is left to plain Python."""
    cell = tx.cells[inst.arg]
    if isinstance(cell, OutsideCell):
        tx.unsupported(STORE, operation="del", what=f"the outer variable {inst.arg!r}")
    if cell.content is None:
        tx.unsupported(OPERATOR_FAILS, name=f"del of variable {inst.arg!r}", error="NameError")
    cell.content = None
