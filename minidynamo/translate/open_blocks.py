"""Generators behind `with` blocks that are open where a graph ends (`contextlib.contextmanager`, alone or in an ExitStack)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from ..variables.base import VariableTracker
from ..variables.generators import GeneratorVariable
from ..variables.lazy import LazyVariable
from ..variables.new_objects import NewObjectVariable
from ..variables.user_objects import UserMethodVariable

OF_A_GENERATOR = contextlib._GeneratorContextManager
ENDS_THEM: tuple[type, ...] = (OF_A_GENERATOR, contextlib.ExitStack)


def is_ended_by_a_block(generator: GeneratorVariable, values: Iterable[VariableTracker]) -> bool:
    """Whether leaving a block runs the generator to its end, so that nobody sees when it dies. values: what the frame holds, the
    `__exit__` of its blocks among it."""
    leaves = (v for v in map(real, values) if isinstance(v, UserMethodVariable) and v.name == "__exit__")
    owners = (real(leave.owner) for leave in leaves)
    ending = [owner for owner in owners if owner.python_type() in ENDS_THEM]
    found = (manager.attributes.get("gen") for manager in managers(ending))
    return any(gen is not None and real(gen) is generator for gen in found)


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
        waiting += tracker.children()
        if isinstance(tracker, NewObjectVariable) and tracker.python_type() is OF_A_GENERATOR:
            yield tracker
