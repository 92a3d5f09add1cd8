"""Calling a function and describing what came of it, so that two ways of running it can be compared."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """A result (with its types) or an exception (with its chain), the arguments afterwards, and the lines of
    the traceback.

    `lines` are (function name, line) of the frames of the program, without those of the test's own machinery.
    """

    result: Any
    args: Any
    lines: tuple[tuple[str, int | None], ...] = ()
    error: BaseException | None = field(default=None, compare=False)


def plain(value: Any) -> Any:
    """A value with the types written out, so that 1, 1.0 and True differ."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    if isinstance(value, dict):
        return type(value).__name__, [(plain(k), plain(v)) for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if hasattr(value, "__dict__") and not callable(value):
        return type(value).__name__, plain(vars(value))
    return type(value).__name__, value


def chain(error: BaseException | None, depth: int = 4) -> Any:
    """An exception's type, text and chain."""
    if error is None or not depth:
        return None
    group = [chain(e) for e in error.exceptions] if isinstance(error, BaseExceptionGroup) else []
    return (
        type(error).__name__,
        str(error),
        error.__suppress_context__,
        chain(error.__cause__, depth - 1),
        chain(error.__context__, depth - 1),
        group,
    )


def outcome(run: Callable[..., Any], args: Any, hidden: frozenset[str] = frozenset()) -> Outcome:
    """Call `run(*args)`. Frames of files in `hidden` do not count."""
    try:
        result = run(*args)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = tuple(
            (f.name, f.lineno) for f in frames if f.filename not in hidden and f.filename != __file__
        )
        return Outcome(chain(error), plain(args), lines, error)
    return Outcome(plain(result), plain(args))


def fresh(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments for one call."""
    return copy.deepcopy(args)
