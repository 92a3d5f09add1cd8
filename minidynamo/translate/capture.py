"""What `translate` hands on: frozen, and complete enough for every later stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..events import Where
from ..graph.output_graph import CapturedGraph
from ..guards.guard import Guard
from ..pycode.resume import ResumePoint
from ..reasons import Why
from ..sources import Source
from ..variables.base import VariableTracker
from ..variables.functions import CellVariable
from .plan import Decision


@dataclass(frozen=True, slots=True)
class Return:
    """The frame was captured to its end."""

    value: VariableTracker
    line: int


@dataclass(frozen=True, slots=True)
class BrokenOp:
    """An instruction that plain Python runs at a break: its operands, and the locals that take its results, top of the
    stack first."""

    opname: str
    arg: object
    operands: tuple[VariableTracker, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of something outside of the trace, replayed after the graph has run: a canonical instruction without result,
    or (`opname` None) a call of the builtin `arg`."""

    opname: str | None
    arg: Any
    operands: tuple[VariableTracker, ...]


@dataclass(frozen=True, slots=True)
class Successor:
    """Where the frame goes on: the resume point, the values of its locals and stack (NULLs left out), and the exception that is
    being handled there."""

    at: ResumePoint
    locals: dict[str, VariableTracker]
    stack: tuple[VariableTracker, ...]
    handled: VariableTracker | None

    def values(self) -> tuple[VariableTracker, ...]:
        """Everything that is handed over."""
        return (*self.locals.values(), *self.stack, *(() if self.handled is None else (self.handled,)))


@dataclass(frozen=True, slots=True)
class Break:
    """The graph ends here. `ops` run in plain Python, while `handled` is the exception that is being handled; a `branch` on
    `condition` chooses the successor (taken first); an exception of either goes to `caught`, the frame's own handler (None: it
    leaves the frame). `plain` successors are not compiled: they begin with what could not be captured."""

    reason: Why
    where: Where
    cause: Where
    ops: tuple[BrokenOp, ...]
    branch: str | None
    condition: VariableTracker | None
    successors: tuple[Successor, ...]
    caught: Successor | None
    handled: VariableTracker | None
    plain: bool
    opname: str

    def ways(self) -> tuple[Successor, ...]:
        """All places where the frame may go on."""
        return self.successors if self.caught is None else (*self.successors, self.caught)


@dataclass(frozen=True, slots=True)
class Capture:
    """One trace of one frame. `cells` are the frame's own; `uses` counts by id how often a tracker is needed; `unguarded` are places
    that the program read and no guard reads: the emitted code does, for the case that they are gone."""

    graph: CapturedGraph | None
    guards: tuple[Guard, ...]
    effects: tuple[Effect, ...]
    exit: Return | Break
    cells: tuple[CellVariable, ...]
    uses: dict[int, int]
    first_line: int
    steps: int
    unguarded: tuple[Source, ...]
    comparable: bool
    mode_outside: bool  # the grad mode when the blocks around the last operator have been left
    covered: bool  # operators in try or with blocks: that the graph raises is part of the program
    release: Callable[
        [], None
    ]  # to be called when the capture is not needed any more: trackers may form cycles
    undoes: bool = False  # what the graph changes is put back when it raises: the frame is run again
    decisions: tuple[tuple[int, Decision], ...] = ()  # of the plan that it was made by
    opened: tuple[VariableTracker, ...] = ()  # managers that are to be entered again, in this order


@dataclass(frozen=True, slots=True)
class Facts:
    """What later stages and reports know of a capture besides its graph. `break_`: reason, where it lies, and instruction, if the graph
    ends with one. `decisions`: what the trace began with. `comparable`: a second run of the frame shows nothing and changes nothing but
    what the graph does."""

    break_: tuple[Why, Where, str] | None
    decisions: tuple[tuple[int, Decision], ...]
    comparable: bool
    covered: bool
    undoes: bool
    mode_outside: bool

    @classmethod
    def of(cls, capture: Capture) -> Facts:
        end = capture.exit
        made = cls(
            (end.reason, end.cause, end.opname) if isinstance(end, Break) else None,
            capture.decisions,
            capture.comparable,
            capture.covered,
            capture.undoes,
            capture.mode_outside,
        )
        return made if made.decisions else _plain.setdefault(made, made)


_plain: dict[Facts, Facts] = {}  # those of traces without decisions: a few, which all entries share
