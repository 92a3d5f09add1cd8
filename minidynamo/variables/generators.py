"""Generators made in the trace by calling a generator function of the user's."""

from __future__ import annotations

import types
from typing import Any

from ..pycode import expr as E
from .base import Emitting, Tracing, VariableTracker
from .iterators import IteratorVariable


class GeneratorVariable(IteratorVariable):
    """A suspended inlined frame. It cannot be rebuilt: where one is still needed at the end of a graph, the graph ends at its
    making instead (decision 11), at instruction `birth` of the root frame."""

    __slots__ = ("frame", "birth")

    def __init__(self, frame: Any, birth: int) -> None:
        super().__init__()
        self.frame = frame
        self.birth = birth

    def python_type(self) -> type:
        return types.GeneratorType

    def slot_next(self, tx: Tracing) -> VariableTracker | None:
        """CPython: gen_iternext. Runs the frame to its next yield, or to its end."""
        frame = self.frame
        frame.caller = tx
        while frame.result is None:
            frame.step()
            if frame.yielded is not None:
                item, frame.yielded = frame.yielded, None
                return item
        return None

    def unwinds(self) -> bool:
        """Whether dropping it now would run code: it stands in a try or with block."""
        frame = self.frame
        return frame.result is None and frame.started() and frame.ir.handler_at(frame.index) is not None

    def has_blocks(self) -> bool:
        """Whether its code has try or with blocks: when it dies then shows."""
        return bool(self.frame.ir.regions)

    def forget(self) -> None:
        self.frame = None

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def reconstruct(self, emit: Emitting) -> E.Expr:
        emit.impossible("a suspended generator")
