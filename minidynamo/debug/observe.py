"""Watching compilations from inside: `with observe() as found:` keeps every stage's value of each one that
happens.

While nobody watches nothing is different: the functions that are watched are wrapped on entry and put back on
exit. For one thread; what is kept holds the frame's real values.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import compile_frame, convert_frame, events
from ..compile_frame import FrameInput, GuardedCode
from ..exc import Unsupported
from ..translate.capture import Capture
from ..translate.emit import Output
from ..translate.translator import InstructionTranslatorBase
from .listing import canonical_text
from .show import stack_text


@dataclass(slots=True)
class Step:
    """One instruction executed symbolically. `before` and `after` are the stack as text, bottom first;
    `depth` counts inlined calls; `stopped` says why the instruction was not finished."""

    depth: int
    line: int | None
    instruction: str
    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    stopped: str = ""


@dataclass(slots=True)
class Attempt:
    """One trace of the frame from its start. All but the last one ended with a new decision."""

    trace: Any
    steps: list[Step] = field(default_factory=list)

    @property
    def stopped(self) -> str:
        """Why the attempt ended, "" when it went through."""
        return next((step.stopped for step in self.steps if step.stopped), "")


@dataclass(slots=True)
class Compilation:
    """One compilation, stage by stage; a stage that was not reached left None. `skipped` is why there is no
    result."""

    frame: FrameInput
    compile_id: str
    attempts: list[Attempt] = field(default_factory=list)
    capture: Capture | None = None
    output: Output | None = None
    made: GuardedCode | None = None
    skipped: str = ""


@dataclass(slots=True)
class Observed:
    """What happened: compilations in the order in which they began, and frames that were not compiled."""

    compilations: list[Compilation] = field(default_factory=list)
    skipped: list[events.Skipped] = field(default_factory=list)

    def of(self, code: types.CodeType) -> Compilation | None:
        """The first compilation of `code`."""
        return next((c for c in self.compilations if c.frame.code is code), None)


@contextlib.contextmanager
def observe() -> Iterator[Observed]:
    """Keep what is compiled inside of the `with` block."""
    seen = Observed()

    def note(event: events.Event) -> None:
        if isinstance(event, events.Skipped):
            seen.skipped.append(event)

    with contextlib.ExitStack() as stack:
        stack.enter_context(events.listen(note))
        for owner, name, wrap in (
            (convert_frame, "compile_frame", _whole),
            (compile_frame, "translate", _part("capture")),
            (compile_frame, "emit", _part("output")),
            (InstructionTranslatorBase, "step", _step),
            (InstructionTranslatorBase, "run_on", _run_on),
        ):
            stack.enter_context(_replaced(owner, name, wrap(getattr(owner, name), seen)))
        yield seen


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    plain = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, plain)


def _whole(plain: Callable[..., GuardedCode], seen: Observed) -> Callable[..., GuardedCode]:
    def compile_frame(frame: FrameInput, options: Any) -> GuardedCode:
        about = Compilation(frame, options.compile_id)
        seen.compilations.append(about)
        try:
            about.made = plain(frame, dataclasses.replace(options, earlier=()))  # a trace is to be seen
        except Exception as error:
            about.skipped = str(error)
            raise
        return about.made

    return compile_frame


def _part(name: str) -> Callable[[Callable[..., Any], Observed], Callable[..., Any]]:
    def wrap(plain: Callable[..., Any], seen: Observed) -> Callable[..., Any]:
        def stage(*args: Any, **options: Any) -> Any:
            value = plain(*args, **options)
            setattr(seen.compilations[-1], name, value)
            return value

        return stage

    return wrap


def _run_on(plain: Callable[[Any], Any], seen: Observed) -> Callable[[Any], Any]:
    def run_on(tx: InstructionTranslatorBase) -> Any:
        while tx.result is None:
            tx.step()
        return tx.result

    return run_on


def _step(plain: Callable[[Any], None], seen: Observed) -> Callable[[Any], None]:
    def step(tx: InstructionTranslatorBase) -> None:
        attempts = seen.compilations[-1].attempts
        if not attempts or attempts[-1].trace is not tx.trace:
            attempts.append(Attempt(tx.trace))
        index = tx.index
        about = Step(
            tx.level, tx.ir.line_of(index), canonical_text(tx.ir.instructions[index]), stack_text(tx.stack)
        )
        attempts[-1].steps.append(about)
        try:
            plain(tx)
        except Unsupported as stop:
            about.stopped = str(stop.reason)
            raise
        finally:
            about.after = stack_text(tx.stack)

    return step
