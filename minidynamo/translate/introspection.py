"""Functions that look at the frame that calls them. They must be called by the user's own bytecode, in a frame that has all locals."""

from __future__ import annotations

import inspect
import pdb
import sys
import types
from collections.abc import Iterable

from ..variables.base import VariableTracker
from ..variables.functions import BuiltinVariable

FUNCTIONS = (
    *(locals, vars, dir, eval, exec, breakpoint),
    *(sys._getframe, inspect.currentframe, inspect.stack, pdb.set_trace),
)
NAMES = frozenset(fn.__name__ for fn in FUNCTIONS)


def may_look(code: types.CodeType) -> bool:
    """Whether `code` names one of them: then no local may be missing after a graph break."""
    return not NAMES.isdisjoint(code.co_names)


def among(values: Iterable[VariableTracker]) -> bool:
    """Whether one of them, under whatever name, is about to be called."""
    return any(isinstance(v, BuiltinVariable) and any(v.fn is fn for fn in FUNCTIONS) for v in values)
