"""Which trackers rebuilding the frame's end needs, how often each is used, and what they need in turn."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ..reasons import SKIP_CYCLIC, why
from ..variables.base import VariableTracker
from ..variables.lazy import LazyVariable
from .plan import SkipFrame


class Reached:
    """Walks from the roots over `children`. `order` has every tracker once, `uses` counts references by id."""

    def __init__(self) -> None:
        self.order: list[VariableTracker] = []
        self.uses: dict[int, int] = {}

    def add(self, roots: Iterable[VariableTracker]) -> None:
        waiting = list(roots)
        while waiting:
            self._visit(waiting.pop(0), (), waiting)

    def _visit(
        self, tracker: VariableTracker, above: tuple[int, ...], waiting: list[VariableTracker]
    ) -> None:
        while isinstance(tracker, LazyVariable) and tracker.real is not None:
            tracker = tracker.real
        key = id(tracker)
        if key in above:
            tracker.forget()
            raise SkipFrame(why(SKIP_CYCLIC, type=tracker.type_name()))
        self.uses[key] = self.uses.get(key, 0) + 1
        if self.uses[key] > 1:
            return
        if tracker.filled_later:  # filled after it is made, so it may lead back to what holds it
            waiting.extend(tracker.children())
        else:
            for child in tracker.children():
                self._visit(child, (*above, key), waiting)
        self.order.append(tracker)

    def nodes(self) -> list[torch.fx.Node]:
        """Graph nodes whose real values are needed, in the order of first use."""
        return [t.as_proxy().node for t in self.order if t.is_output()]
