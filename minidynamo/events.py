"""One frozen event per stage, handed to whoever listens. Reports and logs are made from events alone.

An event holds text and numbers, never a user's object. With nobody listening an event costs one test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the user's program: file, line (1-based), function name."""

    filename: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


@dataclass(frozen=True, slots=True)
class StageDone:
    """One stage of one compilation ended. `seconds` is wall time; `facts` are counts such as instructions or guards."""

    compile_id: str
    stage: str
    where: Where
    seconds: float
    facts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A frame was compiled to one cache entry. `graph`, `guards` and `output` (the new code, as Python-like statements) are
    text; `graph` is empty when nothing was captured."""

    compile_id: str
    where: Where
    resume: bool
    ops: int
    guards: tuple[str, ...]
    graph: str
    output: str
    exit: str
    seconds: float
    backend: str


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """A graph ended before the function did. `count` graphs were captured before in this frame (0 or 1)."""

    compile_id: str
    where: Where
    code: str
    text: str
    hint: str
    opname: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A frame is not compiled and runs as plain Python."""

    where: Where
    code: str
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class Recompile:
    """All entries of a frame failed. One line per entry: the first failing guard, expected and actual."""

    compile_id: str
    where: Where
    failures: tuple[tuple[str, str, str, str], ...]  # (entry, guard text, expected, actual)


@dataclass(frozen=True, slots=True)
class LimitHit:
    """The cache limit of a frame was reached. `values` are what the failing guard expected and met, oldest first."""

    where: Where
    limit: int
    guard: str
    values: tuple[str, ...]


Event = StageDone | Compiled | GraphBreak | Skipped | Recompile | LimitHit
Listener = Callable[[Event], None]
_listeners: list[Listener] = []


def emit(event: Event) -> None:
    """Hand `event` to every listener, in the order in which they came."""
    for listener in tuple(_listeners):
        listener(event)


def listening() -> bool:
    """True when an event would reach somebody; text that only an event needs is made only then."""
    return bool(_listeners)


def subscribe(listener: Listener) -> Callable[[], None]:
    """Add a listener; the result removes it again."""
    _listeners.append(listener)

    def remove() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return remove


@contextlib.contextmanager
def listen(listener: Listener) -> Iterator[Listener]:
    """`subscribe` for a `with` block."""
    remove = subscribe(listener)
    try:
        yield listener
    finally:
        remove()
