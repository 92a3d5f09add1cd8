"""Stage 4: a capture to statements of output code.

Order (decision 16): load every source that is still needed, call the graph, rebuild values, run what the graph could not
hold, hand over to resume functions or return.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from ..cache import RERUN, EntryHandle, ResumeFunction
from ..graph.output_graph import GraphInput
from ..guards.check_fn import flat_names
from ..pycode import expr as E
from ..pycode.resume import HANDLED_PARAM, UNBOUND, handler_at_entry, resume_code
from ..reasons import SKIP_FOREIGN_FUNCTION, SKIP_REBUILD, why
from ..sources import ChainedSource, Source
from ..variables.base import VariableTracker
from ..variables.functions import Cell
from ..variables.lazy import LazyVariable
from ..variables.opaque import NullVariable
from .capture import Break, BrokenOp, Capture, Return, Successor
from .cells import OutsideCell
from .direct import Recipe, direct_plan, loaded_inputs
from .moves import move
from .plan import SkipFrame
from .reloads import FailedLoad
from .root import ERROR
from .scope import FunctionScope


@dataclass(frozen=True, slots=True)
class Output:
    """Statements of the new code, the handles that stand in it as constants, and the resume codes among them."""

    body: tuple[E.Stmt, ...]
    handles: tuple[EntryHandle, ...]
    owned: tuple[Any, ...]
    resumes: tuple[types.CodeType, ...]
    rerunnable: bool
    direct: (
        tuple[EntryHandle, tuple[int, ...] | tuple[Source, ...], Recipe] | None
    )  # what C needs to run the frame without this body
    loaded: tuple[Source, ...] = ()  # what the guards are to load for the graph


TAKEN = "___taken"  # the local of emitted code that says which way a break's branch goes
ATOMIC = (E.Local, E.Const, E.Null)
MOST_UNPACKED = 8  # so many outputs of a graph are taken out of its result at once where the graph breaks


class Emitter:
    """Writes the code of one capture. Implements `variables.base.Emitting`."""

    def __init__(self, capture: Capture, code: types.CodeType, compiled: Callable[..., Any] | None) -> None:
        self.capture = capture
        self.code = code
        self.compiled = compiled
        self.loads: list[E.Stmt] = []
        self.body: list[E.Stmt] = []
        self.filled: list[tuple[Cell, E.Local | None]] = []
        self.handles: list[EntryHandle] = []
        self.owned: list[Any] = []
        self.resumes: list[types.CodeType] = []
        self._values: dict[int, E.Expr] = {}
        self._loaded: dict[Source, E.Expr] = {}
        self._forks: set[Source] = set()  # where the ways to several inputs of the graph part
        self._ways: dict[Source, E.Local] = {}  # those that are loaded, for the loads alone
        self._outputs: dict[int, E.Expr] = {}
        self._cells: dict[int, E.Expr] = {}
        self._names = 0
        self.loaded_inputs: tuple[Source, ...] = ()
        self._graph: E.Local | None = None
        self._unpacked: tuple[str, ...] = ()  # the locals of a graph's outputs, where each has one

    # --- Emitting ------------------------------------------------------------------------------------------------------
    def value(self, tracker: VariableTracker) -> E.Expr:
        while isinstance(tracker, LazyVariable) and tracker.real is not None:
            tracker = tracker.real
        known = self._values.get(id(tracker))
        if known is not None:
            return known
        made = tracker.reconstruct(self)
        if not isinstance(made, ATOMIC) and (tracker.mutable or self.capture.uses.get(id(tracker), 2) > 1):
            made = self.temporary(made)
        self._values[id(tracker)] = made
        return made

    def fixed(self, tracker: VariableTracker) -> E.Expr:
        """The value, evaluated now: nothing that runs later changes it."""
        while isinstance(tracker, LazyVariable) and tracker.real is not None:
            tracker = tracker.real
        made = self.value(tracker)
        if not isinstance(made, ATOMIC):
            made = self._values[id(tracker)] = self.temporary(made)
        return made

    def load(self, source: Source) -> E.Expr:
        known = self._loaded.get(source)
        if known is None:
            known = self._ways.pop(source, None) or self.way(source)
            if not isinstance(known, ATOMIC):
                known = self.loaded(known)
            self._loaded[source] = known
        return known

    def loaded(self, value: E.Expr) -> E.Local:
        local = E.Local(self.name())
        self.loads.append(E.Assign(local.name, value))
        return local

    def way(self, source: Source) -> E.Expr:
        """The expression of a source, what is loaded already not loaded again."""
        if not isinstance(source, ChainedSource):
            return source.expr(self.code)
        base = source.base
        known = self._loaded.get(base) or self._ways.get(base)
        if known is None:
            known = self.way(base)
            if base in self._forks and not isinstance(known, ATOMIC):
                known = self._ways[base] = self.loaded(known)
        made: E.Expr = source.expr_on(known, self.code)
        return made

    def find_forks(self, sources: Iterable[Source]) -> None:
        seen: set[Source] = set()
        for source in sources:
            while source not in seen:
                seen.add(source)
                if not isinstance(source, ChainedSource):
                    break
                source = source.base
            else:
                self._forks.add(source)

    def graph_output(self, node: torch.fx.Node) -> E.Expr:
        assert self.capture.graph is not None and self._graph is not None
        index = self.capture.graph.outputs[node]
        known = self._outputs.get(index)
        if known is None:
            if self._unpacked:
                known = E.Local(self._unpacked[index])
            else:
                known = E.Item(self._graph, E.Const(index))
            self._outputs[index] = known
        return known

    def cell(self, cell: Cell) -> E.Expr:
        known = self._cells.get(id(cell))
        if known is None:
            known = self._cells[id(cell)] = self._cell(cell)
        return known

    def _cell(self, cell: Cell) -> E.Expr:
        if isinstance(cell, OutsideCell):
            return self.load(cell.holder) if cell.holder is not None else E.Cell(cell.name)
        if any(own.cell is cell for own in self.capture.cells):
            self.filled.append((cell, None))
            return E.Cell(cell.name)
        made = self.temporary(E.Call(E.Const(types.CellType)))
        self.filled.append((cell, made))
        return made

    def require_own_globals(self, scope: Any, name: str) -> None:
        if isinstance(scope, FunctionScope):
            raise SkipFrame(why(SKIP_FOREIGN_FUNCTION, name=name))

    def remember(self, tracker: VariableTracker, value: E.Expr) -> None:
        self._values[id(tracker)] = value

    def impossible(self, what: str) -> NoReturn:
        raise SkipFrame(why(SKIP_REBUILD, what=what))

    def temporary(self, value: E.Expr) -> E.Local:
        local = E.Local(self.name())
        self.body.append(E.Assign(local.name, value))
        return local

    def do(self, statement: E.Stmt) -> None:
        self.body.append(statement)

    def name(self) -> str:
        self._names += 1
        return f"___v{self._names - 1}"

    # --- the parts, in order -----------------------------------------------------------------------------------------
    def emit(self) -> Output:
        """The whole body. Raises SkipFrame when something cannot be rebuilt."""
        call = self.graph_call()
        end = self.capture.exit
        if isinstance(end, Return):
            result = self.fixed(end.value) if self.capture.effects else self.value(end.value)
            self.replay()
            self.fill_cells()
            self.body += [E.At(end.line), E.Return(result)]
        else:
            self.break_(end)
        for source in self.capture.unguarded:
            self.load(source)
        start = self.start(call)
        rerunnable = any(isinstance(statement, E.Rescue | E.Catch) for statement in start)
        plan = None
        if rerunnable and not any(isinstance(statement, E.Catch) for statement in start):
            plan = direct_plan(self.capture, self.code)
        return Output(
            move((*start, *self.body)),
            tuple(self.handles),
            tuple(self.owned),
            tuple(self.resumes),
            rerunnable,
            None if plan is None else (self.handles[0], *plan),
            self.loaded_inputs,
        )

    def start(self, call: tuple[E.Stmt, ...]) -> list[E.Stmt]:
        """Loads and the graph call. Nothing has happened when a load fails (a global is gone, a cell is empty), nor when a graph
        fails that writes nothing and draws no random numbers: then plain Python runs the frame from its beginning (decision 17)."""
        graph = self.capture.graph
        harmless = graph is None or self.capture.undoes or not (graph.mutates or graph.draws_random)
        start: list[E.Stmt] = [E.At(self.capture.first_line)]
        if self.loads:
            start.append(E.Rescue(tuple(self.loads), E.Call(E.Const(FailedLoad()))))
            start += [E.Delete(local.name) for local in self._ways.values()]
        if call:
            start += self.interruptible((E.Rescue(call, E.Const(RERUN)),)) if harmless else call
        return start

    def interruptible(self, call: E.Body) -> E.Body:
        """A KeyboardInterrupt while the graph runs is one that came when the resume function began: the block that it begins in, whose
        manager was entered for real, sees it."""
        entry = handler_at_entry(self.code)
        if entry is None:
            return call
        made = resume_code(self.code, entry.state)
        self.resumes.append(made.code)
        top: list[E.Expr] = [] if entry.number is None else [E.Const(entry.number)]
        top.append(E.Local(ERROR))
        first = len(entry.state.stack) - len(top)
        given: dict[str, E.Expr] = {f"___stack{first + place}": value for place, value in enumerate(top)}
        for place in entry.lasti:
            name = f"___stack{place}"
            given[name] = E.Op("BINARY_OP", "+", (E.Local(name), E.Const(entry.moved)))
        bound = entry.state.bound
        for name in self.code.co_varnames:
            if bound is not None and name in made.params and name not in bound and not name.startswith("___"):
                given.setdefault(name, E.Const(UNBOUND))
        given |= {name: E.Cell(name) for name in self.code.co_cellvars}
        args = tuple(given.get(name) or E.Local(name) for name in made.params)
        resume = E.Call(self.handle(ResumeFunction(made.code, self.code.co_name)), args)
        return (E.Catch(call, ERROR, (E.Return(resume),)),)

    def graph_call(self) -> tuple[E.Stmt, ...]:
        graph = self.capture.graph
        if graph is None or self.compiled is None:
            return ()
        self._graph = E.Local("___graph")
        loaded = loaded_inputs(self.capture, self.code)
        self.loaded_inputs = tuple(graph.inputs[number].source for number in loaded)
        taken = set(loaded)
        passed = [given for number, given in enumerate(graph.inputs) if number not in taken]
        self.find_forks(given.source for given in passed)
        inputs = tuple(map(self.graph_input, passed))
        handle = self.handle(self.compiled, len(graph.outputs), loaded)
        call = E.Call(handle, inputs)
        count = len(graph.outputs)
        if isinstance(self.capture.exit, Break) and 0 < count <= MOST_UNPACKED:
            name = self._graph.name
            self._unpacked = (name,) if count == 1 else tuple(f"{name}{number}" for number in range(count))
            return (E.Apply(self._unpacked, "UNPACK_SEQUENCE", count, (call,)),)
        return (E.Assign(self._graph.name, call),)

    def graph_input(self, given: GraphInput) -> E.Expr:
        value = self.load(given.source)
        if not given.convert:
            return value
        convert, *others = map(E.Const, given.convert)
        return E.Call(convert, (value, *others))

    def handle(self, target: Any, outputs: int = -1, loaded: tuple[int, ...] = ()) -> E.Const:
        made = EntryHandle(target, outputs, loaded)
        self.handles.append(made)
        self.owned.append(target)
        return E.Const(made)

    def fill_cells(self) -> None:
        """Cells that are still needed take what the trace left in them: those that were made anew, and the frame's own. A content
        may need further cells."""
        while self.filled:
            cell, made = self.filled.pop(0)
            if cell.content is not None:
                value = self.value(cell.content)
                if made is not None:
                    self.body.append(E.Effect("STORE_ATTR", "cell_contents", (value, made)))
                else:
                    self.body.append(E.Effect("STORE_DEREF", cell.name, (value,)))
            elif made is None and cell.name in flat_names(self.code):  # an argument that was deleted
                self.body.append(E.Effect("DELETE_DEREF", cell.name, ()))

    def replay(self) -> None:
        """The changes of things outside, in the program's order. What they need is rebuilt before the first of them."""
        for effect in self.capture.effects:
            for operand in effect.operands:
                self.fixed(operand)
        for effect in self.capture.effects:
            operands = tuple(self.value(operand) for operand in effect.operands)
            if effect.opname is None:
                self.body.append(E.Do(E.Call(E.Const(effect.arg), operands)))
            else:
                self.body.append(E.Effect(effect.opname, effect.arg, operands))

    def break_(self, end: Break) -> None:
        for manager in self.capture.opened:
            self.fixed(manager)
        for successor in end.ways():
            for value in successor.values():
                self.fixed(value)
        for op in end.ops:
            names = op.opname == "CALL_KW"  # the last operand, which is part of the code
            for operand in op.operands[: len(op.operands) - names]:
                self.fixed(operand)
        for single in (end.condition, end.handled):
            if single is not None:
                self.fixed(single)
        for own in self.capture.cells:
            self.cell(own.cell)
        self.replay()
        self.fill_cells()
        self.body.append(E.At(end.where.line))
        ways: list[E.Body] = [(self.resume(successor),) for successor in end.successors]
        if end.caught is None and end.handled is None:
            self.body += self.steps(end, *ways)
        else:
            self.body += self.guarded(end, ways)

    def guarded(self, end: Break, ways: list[E.Body]) -> E.Body:
        """What plain Python runs, and only that, in the frame's try blocks: the resume functions have their own."""
        flag = E.Local(TAKEN)
        sides: list[E.Body] = [(E.Assign(TAKEN, E.Const(True)),), (E.Assign(TAKEN, E.Const(False)),)]
        choosing = len(ways) == 2
        steps = self.steps(end, *(sides if choosing else ()))
        if end.handled is not None:
            steps = (E.Handling(self.value(end.handled), steps),)
        if end.caught is not None:
            steps = (E.Catch(steps, ERROR, (self.resume(end.caught),)),)
        if choosing:
            return (*steps, E.Branch("POP_JUMP_IF_TRUE", (flag,), *ways))
        return (*steps, *(statement for way in ways for statement in way))

    def steps(self, end: Break, *ways: E.Body) -> E.Body:
        """What plain Python runs, and then one of the ways, if there are any."""
        if end.branch == "FOR_ITER":
            (step,), (more, done) = end.ops, ways
            return (E.IterBranch(self.value(step.operands[0]), more, done, *step.results),)
        ops = tuple(self.plain(op) for op in end.ops)
        if end.condition is not None:
            assert end.branch is not None
            return (*ops, E.Branch(end.branch, (self.value(end.condition),), *ways))
        return (*ops, *(statement for way in ways for statement in way))

    def plain(self, op: BrokenOp) -> E.Stmt:
        operands = tuple(E.Null() if isinstance(v, NullVariable) else self.value(v) for v in op.operands)
        if op.opname == "CALL_KW":
            operands = (*operands[:-1], E.Const(op.operands[-1].as_python_constant()))
        if op.opname == "WITH_EXCEPT_START":
            return E.Apply((*op.results, *(None for _ in operands)), op.opname, op.arg, operands)
        if len(op.results) > 1:
            return E.Apply(op.results, op.opname, op.arg, operands)
        if op.results:
            return E.Assign(op.results[0], E.Op(op.opname, op.arg, operands))
        return E.Effect(op.opname, op.arg, operands)

    def resume(self, successor: Successor) -> E.Return:
        """Hand the frame over to its resume function."""
        (state,) = successor.at.frames
        made = resume_code(self.code, state)
        self.resumes.append(made.code)
        stack = dict(zip((p for p in made.params if p.startswith("___stack")), successor.stack))
        args = tuple(self.resume_argument(name, successor, stack) for name in made.params)
        return E.Return(E.Call(self.handle(ResumeFunction(made.code, self.code.co_name)), args))

    def resume_argument(self, name: str, successor: Successor, stack: dict[str, VariableTracker]) -> E.Expr:
        value = stack.get(name) or successor.locals.get(name)
        if name == HANDLED_PARAM:
            value = successor.handled
            if value is None:
                self.impossible("an exception that is being handled")
        if value is not None:
            return self.value(value)
        if name in self.code.co_cellvars:
            return E.Cell(name)
        return E.Const(UNBOUND)


def emit(capture: Capture, code: types.CodeType, compiled: Callable[..., Any] | None) -> Output:
    """Stage 4. `compiled` is what the backend made of the graph, None when nothing was captured."""
    return Emitter(capture, code, compiled).emit()
