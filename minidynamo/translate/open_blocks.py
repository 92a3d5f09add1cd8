"""Generators behind `with` blocks that are open where a graph ends (`contextlib.contextmanager`, alone or in an ExitStack)."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterable, Iterator

from ..variables.base import VariableTracker
from ..variables.generators import GeneratorVariable
from ..variables.lazy import LazyVariable
from ..variables.methods import UserMethodVariable
from ..variables.new_objects import NewObjectVariable
from ..variables.sequences import SequenceVariable
from .capture import Break, BrokenOp, Return
from .trace import Trace

OF_A_GENERATOR = contextlib._GeneratorContextManager
ENDS_THEM: tuple[type, ...] = (OF_A_GENERATOR, contextlib.ExitStack)


def is_ended_by_a_block(generator: GeneratorVariable, end: Return | Break, trace: Trace) -> bool:
    """Whether leaving a block runs the generator to its end, so that nobody sees when it dies: a block that is open where the graph
    ends, or is entered there."""
    if isinstance(end, Return):
        return False
    entered = [real(operand) for op in end.ops if enters(op) for operand in op.operands]
    ending = [value for value in entered if value.python_type() is OF_A_GENERATOR]
    held = [*(v for way in end.ways() for v in way.stack), *(v for op in end.ops for v in op.operands)]
    ending += [owner for value in held if (owner := owner_of(real(value), trace)) is not None]
    found = (manager.attributes.get("gen") for manager in managers(ending))
    return any(gen is not None and real(gen) is generator for gen in found)


def enters(op: BrokenOp) -> bool:
    """Is it the beginning of a block, or a call of `enter_context`?"""
    methods = (v for v in map(real, op.operands) if isinstance(v, UserMethodVariable))
    return op.opname == "BEFORE_WITH" or any(
        m.name == "enter_context" and real(m.owner).python_type() is contextlib.ExitStack for m in methods
    )


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
