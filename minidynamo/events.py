"""One frozen event per stage, handed to whoever listens. Reports and logs are made from events alone.

An event holds text and numbers, never a user's object. (`Compiled.made` lends the code objects and the graph for the time of the
call.) With nobody listening an event costs one test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


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
class Made:
    """What a compilation was made from and gave; a listener takes text from it and lets go.

    before, after: the code objects; graph: the FX graph module or None; inputs: a line of metadata per graph input;
    counter: has `hits`, counted in C, and outlives the entry
    """

    before: Any
    after: Any
    graph: Any
    inputs: tuple[
        tuple[str, str, str], ...
    ]  # (name, where it comes from, Python text that makes one like it)
    counter: Any


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
    meanings: tuple[str, ...] = ()  # per guard, in the user's words
    made: Made | None = None


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
class GuardFailure:
    """One guard that does not hold, as text.

    kind: the guard's kind (a row of `KINDS`; "VALID": an object died; "OPTIONS": other backend or options)
    part: the guard's text; path: the text of the guarded place; name: as the program spells it
    root: argument, global, closure, default, state or other; root_name: its name; member: (attr|item|name, which)
    expected, actual: short, metadata only for tensors; type, actual_type: of constants, "" where not known
    user: the line that made the guard necessary; owner: "module" when the place belongs to an nn.Module
    """

    kind: str
    part: str
    path: str
    name: str
    root: str
    root_name: str
    member: tuple[str, str]
    expected: str
    actual: str
    type: str = ""
    actual_type: str = ""
    user: Where | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Recompile:
    """All entries of a frame failed. One line per entry: the first failing guard, expected and actual. With somebody listening
    also every failure against the closest entry; `parameters` are the frame's (`positional` of them by position; those of `forward` for
    the call of a module), for finding what the caller passed."""

    compile_id: str
    where: Where
    failures: tuple[tuple[str, str, str, str], ...]  # (entry, guard text, expected, actual)
    closest: str = ""
    causes: tuple[GuardFailure, ...] = ()
    parameters: tuple[str, ...] = ()
    positional: int = 0
    resume: bool = False
    module_call: bool = False
    begins: int = 0  # the line at which a resume function goes on


@dataclass(frozen=True, slots=True)
class LimitHit:
    """The cache limit of a frame was reached: that of `option`. `values` are what the failing guard expected and met, oldest first."""

    where: Where
    limit: int
    guard: str
    values: tuple[str, ...]
    causes: tuple[GuardFailure, ...] = ()
    option: str = "cache_size_limit"


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
