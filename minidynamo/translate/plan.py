"""Restarts: decisions that a trace of a frame starts with, and what ends a trace early."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..events import Where
from ..reasons import SKIP_RESTARTS, Why, why


class RestartAnalysis(Exception):
    """The trace met something whose handling must be known from its start; `Plan` has the decision, trace again."""


class SkipFrame(Exception):
    """The frame is not to be compiled; it runs as plain Python. `mark` says whether that holds for later calls too."""

    def __init__(self, reason: Why, where: Where | None = None, mark: bool = True) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.where = where
        self.mark = mark


@dataclass(frozen=True, slots=True)
class Decision:
    """End the graph at an instruction of the root frame. `cause` is where the reason was met, deeper when inlined; `plain`: that
    instruction and all that follows is left to plain Python."""

    reason: Why
    cause: Where
    plain: bool = False


@dataclass(slots=True)
class Plan:
    """Decisions by instruction index of the root frame. A decision is never taken back; each restart adds one. `metadata_decides`: an
    operation failed, or was not captured, perhaps for the sizes or numbers that it was given."""

    limit: int
    breaks: dict[int, Decision] = field(default_factory=dict)
    metadata_decides: bool = False

    def decide(self, index: int, decision: Decision) -> None:
        """Add a decision and restart. Raises SkipFrame when there are too many, or when this one was taken before: then
        a replay diverged."""
        if len(self.breaks) >= self.limit or index in self.breaks:
            raise SkipFrame(why(SKIP_RESTARTS, limit=self.limit), decision.cause)
        self.breaks[index] = decision
        if decision.reason.may_pass():
            self.metadata_decides = True
        raise RestartAnalysis(str(decision.reason))
