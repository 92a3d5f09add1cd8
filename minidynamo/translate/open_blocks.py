"""Generators behind `with` blocks that are open where a graph ends (`contextlib.contextmanager`, alone or in an ExitStack)."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterable, Iterator

from ..variables.base import VariableTracker
from ..variables.generators import GeneratorVariable
from ..variables.lazy import LazyVariable
from ..variables.new_objects import NewObjectVariable
from ..variables.sequences import SequenceVariable
from ..variables.user_objects import UserMethodVariable
from .trace import Trace

OF_A_GENERATOR = contextlib._GeneratorContextManager
ENDS_THEM: tuple[type, ...] = (OF_A_GENERATOR, contextlib.ExitStack)


def is_ended_by_a_block(
    generator: GeneratorVariable, values: Iterable[VariableTracker], trace: Trace
) -> bool:
    """Whether leaving a block runs the generator to its end, so that nobody sees when it dies. values: what the frame holds, the
    `__exit__` of its blocks among it."""
    ending = [owner for value in values if (owner := owner_of(real(value), trace)) is not None]
    found = (manager.attributes.get("gen") for manager in managers(ending))
    return any(gen is not None and real(gen) is generator for gen in found)


def owner_of(leave: VariableTracker, trace: Trace) -> VariableTracker | None:
    """What holds the managers that `leave` leaves, if that is the `__exit__` of one of ENDS_THEM. An ExitStack that was entered before
    this trace began is known by its callbacks."""
    if isinstance(leave, UserMethodVariable) and leave.name == "__exit__":
        owner = real(leave.owner)
        return owner if owner.python_type() in ENDS_THEM else None
    method = leave.value if isinstance(leave, LazyVariable) else None
    if type(method) is types.MethodType and method.__func__ is contextlib.ExitStack.__exit__:
        if type(method.__self__) is contextlib.ExitStack:
            return trace.tracker_of(vars(method.__self__).get("_exit_callbacks"))
    return None


def real(tracker: VariableTracker) -> VariableTracker:
    """What a lazy tracker has become."""
    while isinstance(tracker, LazyVariable) and tracker.real is not None:
        tracker = tracker.real
    return tracker


def managers(roots: Iterable[VariableTracker]) -> Iterator[NewObjectVariable]:
    """The managers of generators, made in the trace, that lie in `roots`."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        tracker = real(waiting.pop())
        if id(tracker) in seen:
            continue
        seen.add(id(tracker))
        waiting += tracker.items if isinstance(tracker, SequenceVariable) else tracker.children()
        if isinstance(tracker, NewObjectVariable) and tracker.python_type() is OF_A_GENERATOR:
            yield tracker
