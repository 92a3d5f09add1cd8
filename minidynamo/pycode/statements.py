"""Statement values -> instructions. Every statement begins and ends with nothing of its own on the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bytecode as bc
from bytecode.instr import InstrLocation

from ..exc import InternalError
from . import expr as x
from .canon import TERMINATORS
from .flatten import Flattener, Region, operands, spell
from .tables import Position
from .versions import CURRENT


def run(f: Flattener, body: x.Body) -> None:
    """Code that runs the statements. Raises InternalError for one that cannot be reached."""
    for statement in body:
        if not f.reachable:
            raise InternalError(f"unreachable statement: {x.source(statement)}")
        _STATEMENTS[type(statement)](f, statement)


def _assign(f: Flattener, s: x.Assign) -> None:
    f.value(s.value)
    f.emit("STORE_FAST", f.local(s.name))
    f.assigned.add(s.name)


def _do(f: Flattener, s: x.Do) -> None:
    f.value(s.value)
    f.emit("POP_TOP")


def _effect(f: Flattener, s: x.Effect) -> None:
    operands(f, s, 0)
    spell(f, s)
    if s.opname in TERMINATORS:
        f.reachable = False


def _apply(f: Flattener, s: x.Apply) -> None:
    operands(f, s, len(s.names))
    spell(f, s)
    for name in s.names:
        if name is None:
            f.emit("POP_TOP")
        else:
            f.emit("STORE_FAST", f.local(name))
            f.assigned.add(name)


def _delete(f: Flattener, s: x.Delete) -> None:
    f.emit("DELETE_FAST", f.local(s.name))
    f.assigned.discard(s.name)
    f.deleted.add(s.name)


def _return(f: Flattener, s: x.Return) -> None:
    f.value(s.value)
    with f.covered(None):
        for _ in range(f.depth // 2):  # what each Handling around keeps below: saved exception, exception
            f.emit("SWAP", 2)
            f.emit("POP_TOP")
            f.emit("SWAP", 2)
            f.emit("POP_EXCEPT")
        f.emit("RETURN_VALUE")
    f.reachable = False


def _branch(f: Flattener, s: x.Branch) -> None:
    if not s.opname.startswith("POP_JUMP_IF_") or len(s.operands) != 1:
        raise InternalError(f"{s.opname} with {len(s.operands)} operands is no branch")
    taken, behind = bc.Label(), bc.Label()
    f.values(s.operands)
    f.emit(s.opname, taken)

    def fallthrough() -> None:
        run(f, s.fallthrough)
        if f.reachable:
            f.emit("JUMP", behind)

    def jumped() -> None:
        f.label(taken)
        run(f, s.taken)

    f.join((fallthrough, jumped))
    f.label(behind)


def _iter_branch(f: Flattener, s: x.IterBranch) -> None:
    end, behind = bc.Label(), bc.Label()
    f.value(s.iterator)
    f.emit("COPY", 1)
    f.emit("STORE_FAST", f.local(s.iter_name))
    f.assigned.add(s.iter_name)
    f.emit("FOR_ITER", end)

    def more() -> None:
        f.emit("STORE_FAST", f.local(s.item_name))
        f.assigned.add(s.item_name)
        f.emit("POP_TOP")
        run(f, s.more)
        if f.reachable:
            f.emit("JUMP", behind)

    def done() -> None:
        f.label(end)
        for name in CURRENT.loop_end:
            f.raw(name)
        run(f, s.done)

    f.join((more, done))
    f.label(behind)


def _rescue(f: Flattener, s: x.Rescue) -> None:
    handler, other, behind = bc.Label(), bc.Label(), bc.Label()

    def body() -> None:
        with f.covered(Region(handler, f.depth, False)):
            run(f, s.body)
        if f.reachable:
            f.emit("JUMP", behind)

    def rescue() -> None:
        f.assigned -= f.deleted
        f.label(handler)
        f.emit("LOAD_CONST", Exception)
        f.emit("CHECK_EXC_MATCH")
        f.emit("POP_JUMP_IF_FALSE", other)
        f.emit("POP_TOP")
        _return(f, x.Return(s.value))
        f.label(other)
        f.emit("RERAISE", 0)

    f.join((body, rescue))
    f.label(behind)


def _catch(f: Flattener, s: x.Catch) -> None:
    handler, behind = bc.Label(), bc.Label()

    def body() -> None:
        with f.covered(Region(handler, f.depth, False)):
            run(f, s.body)
        if f.reachable:
            f.emit("JUMP", behind)

    def caught() -> None:
        f.assigned -= f.deleted
        f.label(handler)
        f.emit("STORE_FAST", f.local(s.name))
        f.assigned.add(s.name)
        run(f, s.handler)

    f.join((body, caught))
    f.label(behind)


def _handling(f: Flattener, s: x.Handling) -> None:
    cleanup, behind = bc.Label(), bc.Label()
    f.value(s.exception)
    f.emit("PUSH_EXC_INFO")
    f.depth += 2
    with f.covered(Region(cleanup, f.depth - 1, True)):
        run(f, s.body)
    f.depth -= 2
    if f.reachable:
        f.emit("POP_TOP")
        f.emit("POP_EXCEPT")
        f.emit("JUMP", behind)
    f.label(cleanup)
    f.emit("COPY", 3)
    f.emit("POP_EXCEPT")
    f.emit("RERAISE", 1)
    f.label(behind)


def _at(f: Flattener, s: x.At) -> None:
    position = Position(s.position) if isinstance(s.position, int) else s.position
    if position.col is None or position.end_col is None or position.end_line is None:
        position = Position(position.line)
    f.location = InstrLocation(position.line, position.end_line, position.col, position.end_col)


_STATEMENTS: dict[type, Callable[[Flattener, Any], None]] = {
    x.Assign: _assign,
    x.Do: _do,
    x.Effect: _effect,
    x.Apply: _apply,
    x.Delete: _delete,
    x.Return: _return,
    x.Branch: _branch,
    x.IterBranch: _iter_branch,
    x.Rescue: _rescue,
    x.Catch: _catch,
    x.Handling: _handling,
    x.At: _at,
}
