"""Functions that look at the frame that calls them. They must be called by the user's own bytecode, in a frame that has all locals."""

from __future__ import annotations

import inspect
import pdb  # noqa: T100
import sys
import types
from collections.abc import Iterable

from ..variables.base import Tracing, VariableTracker
from ..variables.lazy import LazyVariable

FUNCTIONS = (
    *(locals, vars, dir, eval, exec, breakpoint),
    *(sys._getframe, inspect.currentframe, inspect.stack, pdb.set_trace),
)
NAMES = frozenset(fn.__name__ for fn in FUNCTIONS)


def may_look(code: types.CodeType) -> bool:
    """Whether `code` names one of them: then no local may be missing after a graph break."""
    return not NAMES.isdisjoint(code.co_names)


def among(tx: Tracing, values: Iterable[VariableTracker]) -> bool:
    """Whether one of `values`, which a call takes from the stack, is one of them under whatever name. That it is, is guarded."""
    for tracker in values:
        fn = tracker.value if isinstance(tracker, LazyVariable) else getattr(tracker, "fn", None)
        if any(fn is known for known in FUNCTIONS):
            tracker.realize(tx)
            return True
    return False
