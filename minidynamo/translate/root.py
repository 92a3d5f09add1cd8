"""The translator of the root frame: it alone can end a graph, and it says where the frame goes on."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any

from .. import config
from ..events import Where
from ..exc import Unsupported
from ..graph.undo import can_undo
from ..guards.check_fn import flat_names
from ..pycode.canon import CANON, TERMINATORS
from ..pycode.instruction import Instruction
from ..pycode.lift import lift, slot_names
from ..pycode.liveness import live_locals
from ..pycode.module_call import is_module_call
from ..pycode.resume import FrameState, ResumePoint, is_resume_code, origin_offset, resumable
from ..reasons import (
    CONTEXT_STATE,
    EXCEPTION,
    GENERATOR_LIVE,
    GLOBAL_STATE_CALL,
    INLINE_BREAK,
    OPERATOR_FAILS,
    SKIP_FIRST,
    SKIP_MODULE_CALL,
    SKIP_NO_TENSORS,
    SKIP_RESERVED,
    SKIP_RESUME,
    SKIP_STATE,
    TRY_REGION,
    why,
)
from ..rules.devices import know_accelerator
from ..sources import AttrSource, ClosureSource, FrameValues, LocalSource
from ..variables.base import VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.contexts import can_be_entered_again
from ..variables.exceptions import ExceptionVariable, ObservedException
from ..variables.functions import CellVariable
from ..variables.grad_mode import GradModeVariable, is_grad_method
from ..variables.lazy import LazyVariable
from ..variables.opaque import NullVariable, TemporaryVariable
from . import introspection, state
from .capture import Break, BrokenOp, Capture, Return, Successor
from .cells import OutsideCell
from .handlers.control import CONDITIONAL
from .handlers.stack import SHUFFLES, constant_operand
from .handlers.table import HANDLERS
from .inline import inline_call
from .loops import resumed_at
from .open_blocks import is_ended_by_a_block
from .plan import Decision, Plan, RestartAnalysis, SkipFrame
from .reach import Reached
from .trace import Trace
from .translator import InstructionTranslatorBase

# Instructions that plain Python runs at a break: (operands, results). Any other one is left to a resume function that is
# not compiled. What reads or writes the frame's own slots is not here: the emitted code has other slots.
Count = Any
PLAIN_OPS: dict[str, tuple[Count, Count]] = {
    **dict.fromkeys(("BINARY_OP", "COMPARE_OP", "CONTAINS_OP", "IS_OP", "BINARY_SUBSCR"), (2, 1)),
    **dict.fromkeys(
        ("UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE", "UNARY_NOT", "GET_ITER", "LOAD_ATTR"), (1, 1)
    ),
    **dict.fromkeys(("CONVERT_VALUE", "FORMAT_SIMPLE"), (1, 1)),
    "FORMAT_WITH_SPEC": (2, 1),
    "BUILD_STRING": (lambda arg: arg, 1),
    "BUILD_SET": (lambda arg: arg, 1),
    "BUILD_MAP": (lambda arg: 2 * arg, 1),
    "CALL": (lambda arg: arg + 2, 1),
    "CALL_KW": (lambda arg: arg + 3, 1),
    "CALL_FUNCTION_EX": (lambda arg: 4 if arg else 3, 1),
    "LOAD_GLOBAL": (0, 1),
    "LOAD_DEREF": (0, 1),
    "IMPORT_NAME": (2, 1),
    "IMPORT_FROM": (1, 1),
    "STORE_SUBSCR": (3, 0),
    "STORE_ATTR": (2, 0),
    "DELETE_ATTR": (1, 0),
    "DELETE_SUBSCR": (2, 0),
    "STORE_GLOBAL": (1, 0),
    "DELETE_GLOBAL": (0, 0),
    "STORE_DEREF": (1, 0),
    "DELETE_DEREF": (0, 0),
    "UNPACK_SEQUENCE": (1, lambda count: count),
    "UNPACK_EX": (1, lambda counts: (counts & 255) + 1 + (counts >> 8)),
    "BEFORE_WITH": (1, 2),
    "WITH_EXCEPT_START": (lambda depth: depth, 1),
    "CHECK_EXC_MATCH": (2, 1),
    "RAISE_VARARGS": (lambda arg: arg, 0),
}
KEPT = {
    "IMPORT_FROM": 1,
    "CHECK_EXC_MATCH": 1,
    "WITH_EXCEPT_START": 5,
}  # operands that stay, the deepest ones
ERROR = "___error"  # the local of emitted code with what the instruction at the break raised


class InstructionTranslator(InstructionTranslatorBase):
    """Executes the root frame symbolically until it returns or the plan says that the graph ends."""

    def __init__(self, trace: Trace) -> None:
        code = trace.code
        super().__init__(trace, code, trace.ir, trace.scope)
        self.symbolic_locals.update(trace.arguments())
        if is_resume_code(code):
            self.take_cells()
        self.temporaries = 0
        self.is_looked_at = introspection.may_look(code)

    def where_of(self, index: int) -> Where:
        line = self.ir.line_of(index) or self.code.co_firstlineno
        return Where(self.code.co_filename, line, self.code.co_qualname)

    def take_cells(self) -> None:
        """A resume function gets the frame's cells as arguments."""
        for name in self.code.co_cellvars:
            del self.symbolic_locals[name]
            cell = self.trace.frame.locals[name]
            self.cells[name] = self.trace.outside_cell(
                self, name, cell, AttrSource(LocalSource(name), "cell_contents")
            )

    def copy_free_vars(self) -> None:
        for index, name in enumerate(self.code.co_freevars):
            cell = (self.trace.frame.closure or ())[index]
            self.cells[name] = self.trace.outside_cell(self, name, cell, ClosureSource(name, index))

    def run(self) -> Return | Break:
        """Raises RestartAnalysis for a new decision, SkipFrame when the frame is not to be compiled."""
        entry = resumed_at(self.ir) if is_resume_code(self.code) else -1
        breaks = self.trace.plan.breaks
        while self.result is None:
            if self.index == entry:
                self.begins_in_blocks(entry)
                entry = -1
            if breaks and self.index in breaks:
                return self.break_here(breaks[self.index])
            at = self.trace.root_index = self.index
            try:
                self.step()
            except Unsupported as stop:
                self.decide(at, stop)
            except ObservedException as escaped:
                reason = why(OPERATOR_FAILS, name="the program", error=escaped.exception.type_name())
                reason = dataclasses.replace(reason, escapes=True)
                first = getattr(escaped.exception, "raised_at", None)
                at = at if first is None else first
                caught = self.ir.handler_at(at) is not None  # by a handler that does not stop it
                self.trace.plan.decide(at, Decision(reason, self.where(), plain=caught))
        return Return(self.result, self.where().line)

    def begins_in_blocks(self, index: int) -> None:
        """A resume function goes on at `index`: are the blocks around it those of managers of the grad mode?"""
        region = self.ir.handler_at(index)
        while region is not None:
            start = self.ir.instructions[region.target + 1]
            leave = self.stack[region.depth + 3 - start.arg] if start.opname == "WITH_EXCEPT_START" else None
            if not isinstance(leave, LazyVariable) or not is_grad_method(leave.value):
                return
            owner = leave.realize(self).getattr(self, "__self__").realize(self)
            assert isinstance(owner, GradModeVariable)
            self.trace.mode_outside = owner.restores(self)
            self.passed.add(region.target)
            region = self.next_block(region)

    def decide(self, at: int, stop: Any) -> None:
        here, reason = self.where(), stop.reason
        if stop.where != here and stop.where.function != here.function:
            text = why(INLINE_BREAK, name=stop.where.function, inner=str(stop.reason))
            reason = dataclasses.replace(text, inner=stop.reason)
        self.trace.plan.decide(at, Decision(reason, stop.where))

    # --- the end of a graph -------------------------------------------------------------------------------------------
    def break_here(self, decision: Decision) -> Break:
        """The instruction at hand is where the graph ends. The symbolic state is as it was before it."""
        inst = self.current = self.ir.instructions[self.index]
        where = self.where()
        if not decision.plain:
            caught = self.caught(inst)
            if inst.opname in CONDITIONAL:
                return self.branch(decision, where, inst, caught)
            if inst.opname == "FOR_ITER":
                return self.loop(decision, where, inst, caught)
            if inst.opname in PLAIN_OPS and not self.looks_at_frame(inst):
                ops = self.run_plain()
                onward = () if inst.opname in TERMINATORS else (self.successor(),)
                return self.end(decision, where, inst, ops, None, None, onward, caught, False)
        self.rewind(decision)
        return self.end(decision, where, inst, (), None, None, (self.successor(),), None, True)

    def caught(self, inst: Instruction) -> Successor | None:
        """Where the frame goes on when the instruction at hand raises: at its handler, if it has one in this frame."""
        region = self.ir.handler_at(self.index)
        if region is None:
            return None
        stack, index = self.stack, self.index
        number = [ConstantVariable(inst.offset // 2)] if region.lasti else []
        handler = self.settle(region.target, [*stack[: region.depth], *number, TemporaryVariable(ERROR)])
        self.stack, self.index = stack, index
        return handler

    def looks_at_frame(self, inst: Instruction) -> bool:
        """Is it a call, perhaps of something that looks at this frame?"""
        if not inst.opname.startswith("CALL"):
            return False
        operands = PLAIN_OPS[inst.opname][0]
        self.is_looked_at |= introspection.among(self, self.stack[-operands(inst.arg) :])
        return self.is_looked_at

    def rewind(self, decision: Decision) -> None:
        """The rest of the frame, from the instruction at hand on, is left to a resume function. That begins at an original
        instruction: when the one at hand is a later part of one, the graph ends at the first part instead."""
        offset = self.current.offset
        if not resumable(self.code, origin_offset(self.code, offset)):
            raise SkipFrame(why(SKIP_RESUME, opname=self.current.opname), self.where())
        first = self.ir.by_offset[offset]
        if first != self.index:
            self.trace.plan.decide(first, dataclasses.replace(decision, plain=True))

    def run_plain(self) -> tuple[BrokenOp, ...]:
        """The instruction at hand, and those that belong to the same original instruction, run by plain Python."""
        ops = []
        while True:
            inst = self.ir.instructions[self.index]
            if inst.opname in SHUFFLES:
                HANDLERS[inst.opname](self, inst)
            else:
                ops.append(self.plain_op(inst))
            self.index += 1
            if inst.opname in TERMINATORS or self.ir.is_boundary(self.index):
                return tuple(ops)

    def plain_op(self, inst: Instruction) -> BrokenOp:
        if inst.opname not in PLAIN_OPS:
            raise SkipFrame(why(SKIP_RESUME, opname=inst.opname), self.where())
        operands, results = (n(inst.arg) if callable(n) else n for n in PLAIN_OPS[inst.opname])
        values = tuple(self.popn(operands))
        if inst.opname == "CALL_KW":  # the names must be a constant of the emitted code
            constant_operand(self, values[-1])
        self.stack += values[: KEPT.get(inst.opname, 0)]
        names = tuple(self.temporary() for _ in range(results))
        for name in reversed(names):
            self.push(TemporaryVariable(name))
        return BrokenOp(inst.opname, inst.arg, values, names)

    def temporary(self) -> str:
        self.temporaries += 1
        return f"___result{self.temporaries - 1}"

    def branch(self, decision: Decision, where: Where, inst: Instruction, caught: Successor | None) -> Break:
        """Both sides of a conditional jump go on in a resume function of their own."""
        condition, following = self.pop(), self.index + 1
        stack = list(self.stack)
        assert inst.target is not None
        taken = self.settle(inst.target.index, list(stack))
        fallthrough = self.settle(following, list(stack))
        return self.end(
            decision, where, inst, (), inst.opname, condition, (taken, fallthrough), caught, False
        )

    def loop(self, decision: Decision, where: Where, inst: Instruction, caught: Successor | None) -> Break:
        """One step of a real iterator: the loop's body with the item on the stack, or what comes after the loop."""
        iterator, following = self.pop(), self.index + 1
        held, item = self.temporary(), self.temporary()
        assert inst.target is not None
        below = [*self.stack, TemporaryVariable(held)]
        more = self.settle(following, [*below, TemporaryVariable(item)])
        done = self.settle(inst.target.index, list(below))
        ops = (BrokenOp("FOR_ITER", None, (iterator,), (held, item)),)
        return self.end(decision, where, inst, ops, "FOR_ITER", None, (more, done), caught, False)

    def settle(self, index: int, stack: list[VariableTracker]) -> Successor:
        """Do what lies between here and the next place where a frame can go on: shuffles and jumps only. (The end of a loop pops the
        iterator, and is no such place in CPython 3.12.)"""
        self.stack, self.index = stack, index
        while not self.is_entrance():
            inst = self.ir.instructions[self.index]
            self.index += 1
            if inst.opname not in (*SHUFFLES, "JUMP"):
                raise SkipFrame(why(SKIP_RESUME, opname=inst.opname), self.where())
            HANDLERS[inst.opname](self, inst)
        return self.successor()

    def is_entrance(self) -> bool:
        offset = self.ir.instructions[self.index].offset
        return self.ir.is_boundary(self.index) and resumable(self.code, origin_offset(self.code, offset))

    def successor(self) -> Successor:
        """The frame as it is now, without the locals that nobody can read any more. Values from outside stay: plain Python would
        keep them alive until the function returns."""
        offset = origin_offset(self.code, self.ir.instructions[self.index].offset)
        live = live_locals(self.ir)[self.index]
        kept = {
            name: value
            for name, value in self.symbolic_locals.items()
            if self.is_looked_at or name in live or value.source is not None
        }
        if any(
            isinstance(value, CellVariable) for value in self.stack
        ):  # put aside, another one is in its place
            raise SkipFrame(
                why(SKIP_RESUME, opname="a comprehension whose variable is captured"), self.where()
            )
        shape = tuple(not isinstance(value, NullVariable) for value in self.stack)
        values = tuple(value for value in self.stack if not isinstance(value, NullVariable))
        bound = frozenset(kept)
        handled = self.handled[-1] if self.handled else None
        return Successor(ResumePoint((FrameState(offset, shape, bound),)), kept, values, handled)

    def end(
        self,
        decision: Decision,
        where: Where,
        inst: Instruction,
        ops: tuple[BrokenOp, ...],
        branch: str | None,
        condition: VariableTracker | None,
        successors: tuple[Successor, ...],
        caught: Successor | None,
        plain: bool,
    ) -> Break:
        if is_module_call(self.code):
            reason = why(SKIP_MODULE_CALL, inner=str(decision.reason))
            inner = decision.reason.inner or decision.reason
            raise SkipFrame(dataclasses.replace(reason, inner=inner), decision.cause, mark=False)
        if not self.worthwhile(plain or not successors and caught is None):
            reason = why(SKIP_FIRST, inner=str(decision.reason))
            if decision.reason.is_own_error():
                reason = dataclasses.replace(reason, inner=decision.reason)
            raise SkipFrame(reason, decision.cause, self.trace.always())
        return Break(
            decision.reason,
            where,
            decision.cause,
            ops,
            branch,
            condition,
            successors,
            caught,
            self.handled[-1] if self.handled and not plain else None,
            plain,
            inst.opname,
        )

    def worthwhile(self, plain: bool) -> bool:
        """Is it worth compiling what was met, or going on in a resume function (not if all that follows is `plain`)?"""
        if self.graph.ops:
            return True
        frame = self.trace.frame
        outside = (*frame.locals.values(), *map(state.content, frame.closure or ()))
        tensors = self.graph.inputs or any(map(state.holds_tensor, outside))
        return bool(tensors) and not plain


def roots(end: Return | Break, cells: tuple[CellVariable, ...]) -> list[VariableTracker]:
    """Every tracker that the emitted code rebuilds, in the order in which it does."""
    if isinstance(end, Return):
        return [end.value]
    values: list[VariableTracker] = [v for op in end.ops for v in op.operands]
    if end.condition is not None:
        values.append(end.condition)
    for successor in end.ways():
        values += successor.values()
    if end.handled is not None:
        values.append(end.handled)
    return values + list(cells)


NOTHING: Mapping[int, Decision] = types.MappingProxyType({})


def refuse(code: types.CodeType) -> None:
    """Raises SkipFrame for code that is never compiled, whatever its values."""
    if not is_resume_code(code):
        reserved = [name for name in slot_names(code) if name.startswith("___")]
        if reserved:
            raise SkipFrame(why(SKIP_RESERVED, name=reserved[0]))


def translate(
    frame: FrameValues,
    code: types.CodeType,
    breaks: Mapping[int, Decision] = NOTHING,
    for_compiler: bool = True,
) -> Capture:
    """Stage 2: frame values and code to a capture. Raises SkipFrame when the frame is not to be compiled.

    breaks: decisions to begin with, by instruction index
    for_compiler: the graph is for torch's compilers, which refuse some operators that run as they are

    Deterministic: a graph break adds a decision to the plan and the frame is traced again from its start.
    """
    active = state.refuses()
    if active is not None:
        raise SkipFrame(why(SKIP_STATE, what=active), mark=False)
    know_accelerator()
    plan = Plan(config.max_restarts, dict(breaks))
    ir = lift(code)
    refuse(code)
    while True:
        trace = Trace(frame, code, ir, plan, inline_call, for_compiler)
        try:
            return attempt(trace)
        except RestartAnalysis:
            trace.release()
        except BaseException:
            trace.release()
            raise
        finally:
            trace.restore_states()


def end_sooner(
    tx: InstructionTranslator, trace: Trace, end: Return | Break, reached: Reached
) -> tuple[int, Decision] | None:
    """Decision 11: something that is needed after the graph cannot be rebuilt. Then the graph ends where it was made."""
    live = next((g for g in trace.generators if id(g) in reached.uses or g.unwinds(tx)), None)
    if live is not None:
        # Plain Python makes it; where it dies may show, so that the rest of the frame is plain too, unless it ends before that.
        plain = live.has_blocks() and not is_ended_by_a_block(live, end, trace)
        return live.birth, Decision(why(GENERATOR_LIVE), tx.where_of(live.birth), plain)
    opened = trace.opened
    if opened and not (
        isinstance(end, Break)
        and all(id(manager) in reached.uses for manager in opened)
        and can_be_entered_again(opened)
    ):
        reason = why(CONTEXT_STATE, name=opened[0].type_name(), what="is still open where the graph ends")
        return opened[0].birth, Decision(reason, tx.where_of(opened[0].birth))
    for tracker in reached.order:
        if isinstance(tracker, ExceptionVariable) and tracker.raised_at is not None:
            return tracker.raised_at, Decision(why(EXCEPTION), tx.where_of(tracker.raised_at))
    return None


def attempt(trace: Trace) -> Capture:
    """Execute the frame once. Raises RestartAnalysis when that led to one more decision."""
    plan = trace.plan
    tx = InstructionTranslator(trace)
    end = tx.run()
    if isinstance(end, Return) and not tx.worthwhile(plain=True):
        raise SkipFrame(why(SKIP_NO_TENSORS), mark=trace.always())
    undoes = trace.first_covered is not None and (trace.graph.mutates or trace.graph.draws_random)
    if trace.first_covered is not None and undoes and not can_undo(trace.graph):
        where = tx.where_of(trace.first_covered)
        plan.decide(trace.first_covered, Decision(why(TRY_REGION), where, plain=True))
    if trace.sets_device is not None and (trace.graph.mutates or trace.graph.draws_random):
        # A frame that cannot be run again would not know where an exception found the device.
        reason = why(GLOBAL_STATE_CALL, name="setting the current device")
        plan.decide(trace.sets_device, Decision(reason, tx.where_of(trace.sets_device)))
    own = tuple(CellVariable(cell) for cell in tx.cells.values() if not isinstance(cell, OutsideCell))
    reached = Reached()
    reached.add(v for effect in trace.effects for v in effect.operands)
    reached.add(roots(end, own if isinstance(end, Break) else ()))
    sooner = end_sooner(tx, trace, end, reached)
    if sooner is not None:
        at, decision = sooner
        if isinstance(end, Break) and end.reason.is_own_error():
            decision = dataclasses.replace(decision, reason=end.reason)
        plan.decide(at, decision)
    for manager in reversed(trace.opened):
        manager.leave_graph(trace.graph, tx.position())
        manager.release()
    trace.guard_lacking()
    trace.guard_mutated()
    trace.guard_changed()
    trace.guard_identities()
    unguarded = trace.guard_read(flat_names(tx.code))
    for kind, index in trace.devices_left():
        trace.graph.begin_on(kind, index)
    trace.graph.tape.lost |= plan.metadata_decides
    graph = trace.graph.finish(reached.nodes(), trace.final_states()) if trace.graph.ops else None
    return Capture(
        graph,
        tuple(trace.guards),
        tuple(trace.effects),
        end,
        own,
        reached.uses,
        trace.first_line(),
        trace.steps,
        unguarded,
        trace.comparable and not trace.effects and trace.first_covered is None,
        trace.mode_outside,
        trace.first_covered is not None,
        trace.release,
        undoes,
        tuple(plan.breaks.items()),
        tuple(trace.opened),
    )


assert set(PLAIN_OPS) <= set(CANON), sorted(set(PLAIN_OPS) - set(CANON))
