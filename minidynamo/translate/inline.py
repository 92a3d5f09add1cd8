"""Inlined calls: a user function executed symbolically in its caller's trace."""

from __future__ import annotations

import builtins

from .. import config
from ..graph.output_graph import Module, Position
from ..guards.builder import GuardBuilder
from ..guards.guard import make_guard
from ..pycode.lift import lift, lift_generator
from ..reasons import GENERATOR_CALL, INLINE_DEPTH
from ..rules.trace_rules import GENERATOR, GENERATOR_LIKE, library_of
from ..sources import AttrSource, CellSource, GlobalsSource, ItemSource, Source
from ..variables.base import VariableTracker
from ..variables.functions import Cell, FunctionVariable, InnerFunctionVariable, UserFunctionVariable
from ..variables.generators import GeneratorVariable
from ..variables.nn_module import NNModuleVariable
from ..variables.polyfills import PolyfillVariable
from .scope import FunctionScope, PolyfillScope, Scope
from .translator import InstructionTranslatorBase


class InliningInstructionTranslator(InstructionTranslatorBase):
    """The frame of an inlined call. It never breaks by itself: what it cannot do breaks the root frame at the call."""

    def __init__(self, caller: InstructionTranslatorBase, entered: Entered) -> None:
        super().__init__(caller.trace, entered.code, entered.ir, entered.scope)
        self.called_by(caller)
        self.module: Module | None = None
        self.in_library = entered.in_library

    def called_by(self, caller: InstructionTranslatorBase) -> None:
        """The frame is entered from where `caller` is. That stands still until it is left: what is asked of it is asked once."""
        self.caller = caller
        self.level = caller.level + 1
        self.called_at: Position | None = None
        self.called_from: tuple[str, int] | None = None  # the user's line of the call, for code of a library
        self.caller_covers: bool | None = None
        self.caller_in_block: bool | None = None

    def position(self) -> Position:
        if self.called_at is None:
            self.called_at = self.caller.position()
        return Position(self.code, self.current.index, self.called_at, self.module)

    def covered(self) -> bool:
        if super().covered():
            return True
        if self.caller_covers is None:
            self.caller_covers = self.caller.covered()
        return self.caller_covers

    def in_block(self) -> bool:
        if super().in_block():
            return True
        if self.caller_in_block is None:
            self.caller_in_block = self.caller.in_block()
        return self.caller_in_block

    def user_place(self) -> tuple[str, int]:
        """Inside of a library the user's line is the one that called it."""
        if not self.in_library:
            return super().user_place()
        if self.called_from is None:
            self.called_from = self.caller.user_place()
        return self.called_from

    def handled_exception(self) -> VariableTracker | None:
        return super().handled_exception() or self.caller.handled_exception()

    def started(self) -> bool:
        return self.index > 0

    def copy_free_vars(self) -> None:
        """The free variables were bound when the call was made."""


def inline_call(
    tx: InstructionTranslatorBase,
    fn: FunctionVariable,
    args: list[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> VariableTracker:
    """Execute a call of `fn` and give its result. Raises Unsupported when anything inside cannot be captured."""
    trace = tx.trace
    known = trace.known_calls
    key = None if kwargs else known.key(fn, args)
    if key is not None:
        found = known.find(tx, key, args)
        if found is not None:
            return found
    outside = type(fn) is UserFunctionVariable
    entered = fn.entered if outside else None  # type: ignore[attr-defined]
    if entered is None:
        entered = Entered(tx, fn)
        if outside:
            fn.entered = entered  # type: ignore[attr-defined]
    if tx.level >= config.max_inline_depth:
        tx.unsupported(INLINE_DEPTH, limit=config.max_inline_depth)
    inner = InliningInstructionTranslator(tx, entered)
    inner.symbolic_locals = fn.bind(tx, args, kwargs)
    if entered.cells:
        inner.cells = entered.cells.copy()
    if entered.is_forward and args and isinstance(args[0], NNModuleVariable):
        inner.module = Module(args[0].source, args[0].cls)
    if entered.is_generator:
        made = GeneratorVariable(inner, trace.root_index)
        trace.generators.append(made)
        trace.holds(made)
        return made
    if known.log is not None or key is not None and key not in known.calls:
        return known.watch(inner, key, args)
    return inner.run_on()


class Entered:
    """What every call of one function has in common: its code, where its globals are and which cells it is closed over."""

    __slots__ = ("cells", "code", "in_library", "ir", "is_forward", "is_generator", "scope")

    def __init__(self, tx: InstructionTranslatorBase, fn: FunctionVariable) -> None:
        """Raises Unsupported for a function of a kind whose calls are not captured."""
        self.code = code = fn.code()
        if code.co_flags & GENERATOR_LIKE & ~GENERATOR:
            tx.unsupported(GENERATOR_CALL, name=fn.name())
        self.is_generator = bool(code.co_flags & GENERATOR)
        self.ir = lift_generator(code) if self.is_generator else lift(code)
        self.in_library = library_of(code) is not None
        self.is_forward = code.co_name == "forward"
        self.scope = _scope(tx, fn)
        self.cells = _closure(tx, fn)


def _scope(tx: InstructionTranslatorBase, fn: FunctionVariable) -> Scope:
    if isinstance(fn, InnerFunctionVariable):
        return fn.globals_of
    if isinstance(fn, PolyfillVariable):
        return PolyfillScope(fn.fn.__globals__, vars(builtins))
    assert isinstance(fn, UserFunctionVariable)
    frame = tx.trace.frame
    if fn.fn.__globals__ is frame.globals:
        tx.install(
            make_guard(AttrSource(fn.source, "__globals__"), GuardBuilder.DUPLICATE_INPUT, GlobalsSource())
        )
        return tx.trace.scope
    names = fn.fn.__globals__
    whole: Source = AttrSource(fn.source, "__globals__")
    known = tx.trace.namespaces.setdefault(id(names), whole)
    if known != whole:
        tx.install(make_guard(whole, GuardBuilder.DUPLICATE_INPUT, known))
    scope: Scope | None = tx.trace.scopes.get(id(names))
    if scope is None:
        scope = FunctionScope(known, names, fn.fn.__builtins__)  # type: ignore[attr-defined]
        tx.trace.scopes[id(names)] = scope
    return scope


def _closure(tx: InstructionTranslatorBase, fn: FunctionVariable) -> dict[str, Cell]:
    """The free variables of a function. An outside cell is looked at when it is read (guarded then)."""
    if isinstance(fn, InnerFunctionVariable):
        return dict(zip(fn.code().co_freevars, (variable.cell for variable in fn.cells)))
    if isinstance(fn, PolyfillVariable):
        return {}
    assert isinstance(fn, UserFunctionVariable)
    return {
        name: tx.trace.outside_cell(
            tx,
            name,
            cell,
            CellSource(fn.source, index),
            ItemSource(AttrSource(fn.source, "__closure__"), index),
        )
        for index, (name, cell) in enumerate(zip(fn.fn.__code__.co_freevars, fn.fn.__closure__ or ()))
    }
