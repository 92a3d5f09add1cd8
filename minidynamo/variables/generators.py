"""Generators made in the trace by calling a generator function of the user's."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from ..exc import Unsupported
from ..pycode import expr as E
from ..reasons import EXCEPTION, UNSUPPORTED_CALL
from ..static_access import is_subtype
from .base import Emitting, Tracing, VariableTracker
from .constant import ConstantVariable
from .exceptions import (
    ExceptionVariable,
    TracebackVariable,
    follows,
    make_exception,
    raised_again,
    set_cause,
)
from .functions import BuiltinVariable
from .iterators import IteratorVariable
from .raising import ObservedException
from .sequences import NONE

PASSING = (
    "PUSH_EXC_INFO LOAD_GLOBAL LOAD_FAST LOAD_CONST BUILD_TUPLE CHECK_EXC_MATCH POP_JUMP_IF_FALSE NOP RERAISE COPY POP_EXCEPT"
).split()  # what an exception passes in handlers that are not for it


class GeneratorVariable(IteratorVariable):
    """A suspended inlined frame. It cannot be rebuilt: where one is still needed at the end of a graph, the graph ends at its
    making instead (decision 11), at instruction `birth` of the root frame.

    tp: the type that the program sees (an iterator of a library is one written in Python here)"""

    __slots__ = ("frame", "birth", "tp", "running")

    def __init__(self, frame: Any, birth: int, tp: type = types.GeneratorType) -> None:
        super().__init__()
        self.frame = frame
        self.birth = birth
        self.tp = tp
        self.running = False

    def python_type(self) -> type:
        return self.tp

    # --- running -------------------------------------------------------------------------------------------------------
    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: gen_iternext."""
        return self.advance(tx, NONE)[0]

    def advance(self, tx: Tracing, value: VariableTracker) -> tuple[VariableTracker | None, VariableTracker]:
        """CPython: gen_send_ex2: (what it yields next, None), or (None, what it returns)."""
        frame = self.entered(tx)
        if frame.result is not None:
            return None, NONE
        if frame.started():
            frame.stack[-1] = value
        elif value.python_type() is not type(None):
            message = "can't send non-None value to a just-started generator"
            tx.raises("generator.send", TypeError, ConstantVariable(message))
        return self.go_on(tx)

    def throw(
        self, tx: Tracing, exception: ExceptionVariable
    ) -> tuple[VariableTracker | None, VariableTracker]:
        """CPython: _gen_throw: the exception is raised where the generator stands, in the innermost one that it delegates to."""
        frame = self.entered(tx)
        inner = frame.delegate if frame.result is None else None
        if inner is not None and (outcome := self.throw_below(tx, inner, exception)) is not None:
            return outcome
        if frame.result is not None or not frame.started():
            frame.result = frame.result or NONE
            raise exception.raised(tx, frame.handled_exception())
        return self.raise_here(tx, exception.raised(tx, frame.handled_exception()))

    def throw_below(
        self, tx: Tracing, inner: VariableTracker, exception: ExceptionVariable
    ) -> tuple[VariableTracker | None, VariableTracker] | None:
        """Throw into what `yield from` stands at. None: the exception is to be raised in this frame."""
        frame = self.frame
        if not isinstance(inner, GeneratorVariable):
            if inner.source is not None or not isinstance(
                inner, IteratorVariable
            ):  # may have methods of its own
                tx.unsupported(UNSUPPORTED_CALL, name=f"throw into a {inner.type_name()}")
            return None
        self.running = True
        try:
            if is_subtype(exception.cls, GeneratorExit):
                inner.close(tx)
                frame.delegate = None
                return None
            item, result = inner.throw(tx, exception)
        except ObservedException as stop:
            frame.delegate = None
            failed = stop.exception
            if not is_subtype(failed.python_type(), StopIteration):
                self.running = False
                return self.raise_here(tx, raised_again(tx, failed))
            item, result = None, value_of(tx, failed)
        finally:
            self.running = False
        if item is not None:
            return item, NONE
        frame.delegate = None
        if frame.finish_delegation(result):
            return self.go_on(tx)
        # from 3.12 on a handler of the frame takes the result from the exception
        nothing = result.realize(tx).python_type() is type(None)
        ended = ExceptionVariable(StopIteration, [] if nothing else [result])
        return self.raise_here(tx, ended.raised(tx, frame.handled_exception()))

    def raise_here(
        self, tx: Tracing, stop: ObservedException
    ) -> tuple[VariableTracker | None, VariableTracker]:
        """The frame goes on at its handler of the instruction at which it stands."""
        frame = self.frame
        if not frame.unwind(frame.current, stop.exception):
            raise self.leaving(tx, stop)
        return self.go_on(tx)

    def go_on(self, tx: Tracing) -> tuple[VariableTracker | None, VariableTracker]:
        """Run the frame to its next yield, or to its end."""
        frame = self.frame
        self.running = True
        try:
            while frame.result is None:
                frame.step()
                if frame.yielded is not None:
                    item, frame.yielded = frame.yielded, None
                    return item, NONE
        except ObservedException as stop:
            raise self.leaving(tx, stop) from None
        finally:
            self.running = False
        return None, frame.result

    def leaving(self, tx: Tracing, stop: ObservedException) -> ObservedException:
        """PEP 479: StopIteration does not leave a generator."""
        if not is_subtype(stop.exception.python_type(), StopIteration):
            return stop
        failed = ExceptionVariable(RuntimeError, [ConstantVariable("generator raised StopIteration")])
        set_cause(failed, tx, stop.exception)
        return failed.raised(tx, stop.exception)

    def entered(self, tx: Tracing) -> Any:
        if self.running:
            tx.unsupported(UNSUPPORTED_CALL, name="a generator that is running already")
        self.frame.called_by(tx)
        return self.frame

    def close(self, tx: Tracing) -> VariableTracker:
        """CPython: gen_close."""
        frame = self.entered(tx)
        if frame.result is not None or not frame.started():
            frame.result = frame.result or NONE
            return NONE
        try:
            item, result = self.throw(tx, ExceptionVariable(GeneratorExit, []))
        except ObservedException as stop:
            if is_subtype(stop.exception.python_type(), GeneratorExit):
                return NONE
            raise
        if item is not None:
            tx.raises("generator.close", RuntimeError, ConstantVariable("generator ignored GeneratorExit"))
        if result.realize(tx).python_type() is not type(None):  # newer Pythons return it
            tx.unsupported(UNSUPPORTED_CALL, name="close of a generator that returns a value then")
        return NONE

    # --- methods -------------------------------------------------------------------------------------------------------
    def call_method(
        self, tx: Tracing, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        method = METHODS.get(name) if self.tp is types.GeneratorType else None
        if method is None or kwargs:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{self.type_name()}.{name}")
        return method(self, tx, [a.realize(tx) for a in args])

    # --- its end -------------------------------------------------------------------------------------------------------
    def unwinds(self, tx: Tracing) -> bool:
        """Whether dropping it now would run code that can be seen: it stands in a try or with block, whose handlers do more than to
        find that GeneratorExit is not theirs. Those are run here; it is over then."""
        frame = self.frame
        if frame.result is not None or not frame.started() or frame.ir.handler_at(frame.index) is None:
            return False
        if frame.delegate is not None or self.running:
            return True
        if frame.trace.globals_written:  # what the handlers name may have been another when it died
            return True
        frame.called_by(tx)
        try:
            frame.unwind(frame.current, ExceptionVariable(GeneratorExit, []).raised(tx, None).exception)
            while frame.ir.instructions[frame.index].opname in PASSING:
                frame.step()
        except ObservedException as stop:
            return not is_subtype(stop.exception.python_type(), GeneratorExit)
        except Unsupported:
            return True
        return True

    def has_blocks(self) -> bool:
        """Whether its code has try or with blocks: when it dies then shows."""
        return bool(self.frame.ir.regions)

    def forget(self) -> None:
        self.frame = None

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.impossible("a suspended generator")


def value_of(tx: Tracing, stop: VariableTracker) -> VariableTracker:
    """CPython: _PyGen_FetchStopIterationValue."""
    if not isinstance(stop, ExceptionVariable) or stop.cls is not StopIteration:
        tx.unsupported(EXCEPTION)
    return stop.args[0] if stop.args else NONE


def result_of(
    tx: Tracing, name: str, outcome: tuple[VariableTracker | None, VariableTracker]
) -> VariableTracker:
    """What `send` and `throw` give: the item; StopIteration at the end."""
    item, result = outcome
    if item is None:
        nothing = result.realize(tx).python_type() is type(None)
        tx.raises(name, StopIteration, *([] if nothing else [result]))
    return item


def _send(self: GeneratorVariable, tx: Tracing, args: list[VariableTracker]) -> VariableTracker:
    if len(args) != 1:
        tx.unsupported(UNSUPPORTED_CALL, name="generator.send with these arguments")
    return result_of(tx, "generator.send", self.advance(tx, args[0]))


def _throw(self: GeneratorVariable, tx: Tracing, args: list[VariableTracker]) -> VariableTracker:
    """CPython: gen_throw, with an exception, with a class, or with class, exception and traceback."""
    exception = (
        args[1] if len(args) > 1 and isinstance(args[1], ExceptionVariable) else args[0] if args else NONE
    )
    if isinstance(exception, BuiltinVariable) and follows(exception.fn) and len(args) == 1:
        exception = make_exception(tx, exception, [], {})
    if not isinstance(exception, ExceptionVariable) or len(args) > 3:
        tx.unsupported(UNSUPPORTED_CALL, name="generator.throw with these arguments")
    if (
        len(args) == 3
        and not isinstance(args[2], TracebackVariable)
        and args[2].python_type() is not type(None)
    ):
        tx.unsupported(UNSUPPORTED_CALL, name="generator.throw with these arguments")
    return result_of(tx, "generator.throw", self.throw(tx, exception))


def _close(self: GeneratorVariable, tx: Tracing, args: list[VariableTracker]) -> VariableTracker:
    if args:
        tx.unsupported(UNSUPPORTED_CALL, name="generator.close with these arguments")
    return self.close(tx)


def _next(self: GeneratorVariable, tx: Tracing, args: list[VariableTracker]) -> VariableTracker:
    return _send(self, tx, [*args, NONE])


METHODS: dict[str, Callable[[GeneratorVariable, Tracing, list[VariableTracker]], VariableTracker]] = {
    "send": _send,
    "throw": _throw,
    "close": _close,
    "__next__": _next,
}
