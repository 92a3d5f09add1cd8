"""InstructionTranslator: executes one frame's canonical instructions over trackers.

A handler takes (tx, instruction) and does to the symbolic stack what CPython does to the real one. The translator itself
knows no instruction; `handlers` is the table.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any, NoReturn

import torch

from ..events import Where
from ..exc import Unsupported
from ..graph.output_graph import OutputGraph, Position
from ..guards.builder import GuardBuilder
from ..guards.guard import Guard, make_guard
from ..pycode.instruction import Instruction
from ..pycode.lift import CodeIR, Region
from ..reasons import MISSING_OPCODE, OPERATOR_FAILS, TENSOR_STATE, Reason, Why, why
from ..rules import dispatch, new_tensors, tensor_ops, torch_functions, trace_rules
from ..sources import AttrSource, Source
from ..static_access import has_static_attr
from ..variables.base import VariableTracker
from ..variables.constant import CONSTANT_TYPES, ConstantVariable
from ..variables.exceptions import ExceptionVariable, ObservedException, follows
from ..variables.functions import BuiltinVariable, Cell, UserFunctionVariable
from ..variables.lazy import LazyVariable
from ..variables.methods import UserMethodVariable
from ..variables.read_numbers import ReadNumber
from ..variables.tensor import TensorVariable
from .capture import Effect
from .cells import OutsideCell
from .handlers import HANDLERS, NOT_CAPTURED
from .scope import Scope
from .trace import Trace


def unimplemented(reason: Why, where: Where) -> NoReturn:
    """Raise `Unsupported` with its row and the user's line. (No local holds the error: it would be a reference cycle through the
    traceback, which keeps the user's values alive.)"""
    raise Unsupported(f"{where}: {reason}", reason, where)


class InstructionTranslatorBase:
    """One frame: stack, locals, cells, position. Implements `variables.base.Tracing` for the trackers."""

    level = 0  # how many calls are inlined around it

    def __init__(self, trace: Trace, code: types.CodeType, ir: CodeIR, scope: Scope) -> None:
        self.trace = trace
        self.code = code
        self.ir = ir
        self.instructions = ir.instructions
        self.scope = scope
        self.stack: list[VariableTracker] = []
        self.symbolic_locals: dict[str, VariableTracker] = {}
        self.cells: dict[str, Cell] = {}
        self.index = 0
        self.passed: set[int] = set()
        self.current: Instruction = ir.instructions[0]
        self.result: VariableTracker | None = None
        self.handled: list[VariableTracker] = []
        self.yielded: VariableTracker | None = None
        self.delegate: VariableTracker | None = None  # what `yield from` stands at
        self.delegation_ends: Instruction | None = None  # where it goes on with the result

    # --- the loop ----------------------------------------------------------------------------------------------------
    def step(self) -> None:
        """Execute one instruction. Raises Unsupported, with the symbolic state as the handler left it."""
        inst = self.current = self.instructions[self.index]
        trace = self.trace
        trace.steps += 1
        if trace.steps > trace.step_limit:
            trace.too_long()
        handler = HANDLERS.get(inst.opname)
        if handler is None:
            self.unsupported(NOT_CAPTURED.get(inst.opname, MISSING_OPCODE), opname=inst.opname)
        self.index += 1
        try:
            handler(self, inst)
        except ObservedException as stop:
            if not self.unwind(
                inst, stop.exception
            ):  # raised here: a frame that holds the error would be a reference cycle
                raise

    def run_on(self) -> VariableTracker:
        """Execute instructions until the frame has a result: `step` again and again."""
        trace, instructions, handlers = self.trace, self.instructions, HANDLERS
        limit = trace.step_limit
        while self.result is None:
            inst = self.current = instructions[self.index]
            handler = handlers.get(inst.opname)
            if handler is None or trace.steps >= limit:
                self.step()
                continue
            trace.steps += 1
            self.index += 1
            try:
                handler(self, inst)
            except ObservedException as stop:
                if not self.unwind(inst, stop.exception):  # raised here, as in `step`
                    raise
        return self.result

    def unwind(self, inst: Instruction, exception: VariableTracker) -> bool:
        """CPython: exception_unwind. Go on at this frame's handler of the instruction; without one (False) the exception goes to the
        caller."""
        region = self.ir.handler_at(inst.index) if self.ir.regions else None
        if region is None:
            self.result = self.result or ConstantVariable(None)  # the frame is over
            return False
        del self.stack[region.depth :]
        if region.lasti:
            self.push(ConstantVariable(inst.offset // 2))
        self.push(exception)
        self.index = region.target
        return True

    # --- what handlers use -------------------------------------------------------------------------------------------
    def push(self, value: VariableTracker) -> None:
        self.stack.append(value)

    def pop(self) -> VariableTracker:
        return self.stack.pop()

    def popn(self, count: int) -> list[VariableTracker]:
        """The topmost `count` values, deepest first."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def jump(self, target: Instruction | None) -> None:
        assert target is not None
        self.index = target.index

    # --- Tracing -----------------------------------------------------------------------------------------------------
    @property
    def graph(self) -> OutputGraph:
        return self.trace.graph

    @property
    def grad_mode(self) -> bool:
        return torch.is_grad_enabled()

    def call_state(self, fn: Any, args: tuple[Any, ...], *keys: Any) -> Any:
        return self.trace.call_state(self, fn, args, *keys)

    def covered(self) -> bool:
        """Would an exception of the current instruction go to a handler of this frame, or of one that it is inlined in?"""
        if self.trace.probing:
            return True
        region = self.ir.handler_at(self.current.index) if self.ir.regions else None
        while region is not None and region.target in self.passed:
            region = self.next_block(region)
        return region is not None

    def next_block(self, region: Region) -> Region | None:
        """The block around a with block."""
        cleanup = self.ir.handler_at(region.target)
        return None if cleanup is None else self.ir.handler_at(cleanup.target)

    def leaves_alone(self, index: int) -> None:
        """The `with` block that begins at `index` does nothing with an exception but restore the grad mode, which the graph does
        too: its operators count as if there were no block."""
        region = self.ir.handler_at(index)
        if region is not None:
            self.passed.add(region.target)

    def wrap(self, value: Any, source: Source) -> VariableTracker:
        made = self.trace.wrap(self, value, source)
        if type(made) is ReadNumber:  # who wraps a value at once has looked at it
            made.look()
        return made

    def lazily(self, value: Any, source: Source) -> VariableTracker:
        made = LazyVariable(value, source)
        self.trace.lazy.append(made)
        return made

    def install(self, guard: Guard) -> None:
        guards = self.trace.guards
        if guard not in guards:
            if guard.user is None:
                guard.user = self.user_place()
            guards[guard] = None

    def user_place(self) -> tuple[str, int]:
        """The user's (filename, line) at hand."""
        return self.code.co_filename, self.ir.line_of(self.current.index) or self.code.co_firstlineno

    def guard_global_state(self) -> None:
        self.trace.guard_global_state()

    def guard_class(self, cls: type, source: Source) -> None:
        if cls not in self.trace.classes:
            self.trace.classes.add(cls)
            self.install(make_guard(AttrSource(source, "__getattribute__"), GuardBuilder.ID_MATCH))

    def effect(self, opname: str, arg: Any, *operands: VariableTracker) -> None:
        owner = {"STORE_ATTR": 1, "STORE_SUBSCR": 1, "DELETE_ATTR": 0, "DELETE_SUBSCR": 0}.get(opname)
        self.trace.effect(Effect(opname, arg, operands), None if owner is None else operands[owner])

    def effect_call(self, fn: Any, *operands: VariableTracker) -> None:
        self.trace.effect(Effect(None, fn, operands), operands[0])

    def written_global(self, names: dict[str, Any], name: str) -> VariableTracker | None:
        return self.trace.globals_written.get((id(names), name))

    def guard_distinct(self, left: Source, right: Source) -> None:
        self.trace.guard_distinct(left, right)

    def call(
        self, fn: VariableTracker, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        fn = fn.realize(self)
        while type(fn) is UserMethodVariable:
            args = [fn.owner, *args]
            fn = fn.fn.realize(self)
        if type(fn) is UserFunctionVariable:
            return self.trace.inline(self, fn, args, kwargs)
        if isinstance(fn, BuiltinVariable):
            return dispatch.call(self, fn, args, kwargs)
        return fn.call_function(self, args, kwargs)

    def inline(
        self, fn: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.trace.inline(self, fn, args, kwargs)

    def tensor_op(
        self, target: Any, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        try:
            return tensor_ops.tensor_op(self, target, args, kwargs)
        except (Unsupported, ObservedException):
            self.trace.plan.metadata_decides = True  # with other sizes it might not fail
            raise

    def note_operator(self) -> None:
        """An operator was added to the graph by the current instruction."""
        if self.trace.first_covered is None and self.covered():
            self.trace.first_covered = self.trace.root_index
        if not self.in_block():
            self.trace.mode_outside = self.grad_mode

    def in_block(self) -> bool:
        """Does the current instruction lie in a try or with block, of this frame or of one that it is inlined in?"""
        return bool(self.ir.regions) and self.ir.handler_at(self.current.index) is not None

    def mutates(self, tensor: Source) -> None:
        """The graph changes an input in place."""
        self.trace.mutated[tensor] = None

    def tensor_attribute(self, name: str) -> str | None:
        kind = torch_functions.tensor_attribute(name)
        return "method" if kind is None and torch_functions.tensor_method(name) is not None else kind

    def tensor_has(self, tensor: TensorVariable, name: str) -> bool:
        inputs = [node for node in new_tensors.may_be(tensor.as_proxy().node) if node in self.graph.inputs]
        known = [self.graph.inputs[node] for node in inputs]
        for one in known:
            self.install(make_guard(one.source, GuardBuilder.HASATTR, name))
        found = [has_static_attr(one.example, name) for one in known]
        if any(found) and tensor.source is None:
            self.unsupported(TENSOR_STATE, name=f"attribute {name} of a tensor")
        return any(found)

    def are_different(self, left: Any, right: Any) -> bool:
        return new_tensors.are_different(left, right)

    def torch_kind(self, fn: Any) -> Any:
        return torch_functions.classify(fn)

    def may_inline(self, fn: Any) -> bool:
        return trace_rules.inline_policy(fn)

    def read_cell(self, cell: Cell) -> VariableTracker:
        """The content of a cell of this frame. Breaks the graph when it is unbound: plain Python raises the NameError."""
        value = cell.read(self) if isinstance(cell, OutsideCell) else cell.content
        if value is None:
            self.unsupported(OPERATOR_FAILS, name=f"variable {cell.name!r}", error="NameError")
        return value

    def where(self) -> Where:
        line = self.ir.line_of(self.current.index) or self.code.co_firstlineno
        return Where(self.code.co_filename, line, self.code.co_qualname)

    def position(self) -> Position:
        """Where the current instruction is, cheap to keep per graph node: the line is worked out when somebody asks."""
        return Position(self.code, self.current.index)

    def unsupported(self, reason: Reason, **facts: Any) -> NoReturn:
        escapes = reason is OPERATOR_FAILS and not self.covered()
        unimplemented(dataclasses.replace(why(reason, **facts), escapes=escapes), self.where())

    def raises(self, name: str, cls: type[Exception], *args: VariableTracker) -> NoReturn:
        """The program's own error is `cls(*args)`: it goes to a handler in the trace, else plain Python raises it."""
        if not self.covered():
            self.unsupported(OPERATOR_FAILS, name=name, error=cls.__name__)
        raise ExceptionVariable(cls, list(args)).raised(self, self.handled_exception())

    def fails(self, name: str, error: BaseException) -> NoReturn:
        """The program's own error was met while folding or working out metadata."""
        args = error.args
        if isinstance(error, Exception) and type(error).__module__ == "builtins":
            if follows(type(error)) and all(type(a) in CONSTANT_TYPES for a in args):
                self.raises(name, type(error), *map(ConstantVariable, args))
        self.unsupported(OPERATOR_FAILS, name=name, error=type(error).__name__)

    def handled_exception(self) -> VariableTracker | None:
        """CPython: _PyErr_GetTopmostException, as far as the trace knows."""
        return self.handled[-1] if self.handled else None

    def finish_delegation(self, result: VariableTracker) -> bool:
        """`yield from` ends with this result while the frame stands at its yield. False where a handler of the frame sees to that."""
        region = self.ir.handler_at(self.current.index) if self.ir.regions else None
        if region is not None and self.ir.instructions[region.target].opname == "CLEANUP_THROW":
            return False
        assert self.delegation_ends is not None
        self.stack[-1] = result
        self.jump(self.delegation_ends)
        return True
