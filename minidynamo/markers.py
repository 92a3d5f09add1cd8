"""Functions that a program calls inside captured code. Outside of capture they are harmless."""

from __future__ import annotations

import types
import weakref


def graph_break() -> None:
    """End the graph here. Does nothing in plain Python."""


def is_compiling() -> bool:
    """True inside captured code (the trace sees a constant), False in plain Python."""
    return False


# Code of functions that `disable(fn, recursive=False)` marked, by id (equal code objects are not one function).
_left_out: dict[int, weakref.ref[types.CodeType]] = {}


def leave_out(code: types.CodeType) -> None:
    """A function with this code is neither captured nor traced as part of a caller."""
    key = id(code)
    _left_out[key] = weakref.ref(code, lambda _: _left_out.pop(key, None))


def is_left_out(code: types.CodeType) -> bool:
    return id(code) in _left_out
