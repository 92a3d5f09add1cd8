"""Log topics: events as lines of the loggers `minidynamo.<topic>`. `MINIDYNAMO_LOG=recompiles,breaks` prints to stderr; so do the
names that torch has for the same things, in TORCH_LOGS or `torch._logging.set_logs` (OF_TORCH), as long as they are on there.

What is told again and again (the same guards of a function failing, the same break) is told once; then its count, when that has doubled.
"""

from __future__ import annotations

import difflib
import logging
import os
import sys
from collections.abc import Callable

from . import events

TOPICS = ("guards", "graph", "bytecode", "breaks", "recompiles", "timing")
OF_TORCH = {
    **dict.fromkeys(("recompiles", "recompiles_verbose"), "recompiles"),
    "graph_breaks": "breaks",
    **dict.fromkeys(("guards", "verbose_guards"), "guards"),
    **dict.fromkeys(("graph", "graph_code", "graph_code_verbose"), "graph"),
    "bytecode": "bytecode",
}
_active: dict[str, Callable[[], None]] = {}
_own: tuple[str, ...] = ()
_theirs: frozenset[str] = frozenset()  # names of torch's that were on when it was last asked


def _lines(topic: str, event: events.Event) -> list[str]:
    """The lines of an event under a topic."""
    if isinstance(event, events.Compiled):
        head = f"{event.compile_id} {event.where.function} ({event.where})"
        if topic == "guards":
            return [f"{head}: {len(event.guards)} guards", *(f"  {g}" for g in event.guards)]
        if topic == "graph":
            return [
                f"{head}: {event.ops} operators, {event.exit}",
                *(f"  {g}" for g in event.graph.splitlines()),
            ]
        if topic == "bytecode":
            return [head, *(f"  {line}" for line in event.output.splitlines())]
        if topic == "timing":
            return [f"{head}: {event.seconds * 1e3:.2f} ms"]
    if topic == "timing" and isinstance(event, events.StageDone):
        facts = " ".join(f"{k}={v}" for k, v in event.facts.items())
        return [f"{event.compile_id} {event.stage}: {event.seconds * 1e3:.3f} ms {facts}".rstrip()]
    if topic == "breaks" and isinstance(event, events.GraphBreak):
        return [f"{event.where} {event.where.function}: {event.text} [{event.code}]; {event.hint}"]
    if topic == "breaks" and isinstance(event, events.Skipped):
        return [
            f"{event.where} {event.where.function} not compiled: {event.text} [{event.code}]; {event.hint}"
        ]
    if topic == "recompiles" and isinstance(event, events.Recompile):
        rows = [f"  {name}: {part}: expected {want}, found {got}" for name, part, want, got in event.failures]
        return [f"{event.compile_id} {event.where.function} ({event.where}) compiles again", *rows]
    if topic == "recompiles" and isinstance(event, events.LimitHit):
        return [f"{event.where} {event.where.function}: limit {event.limit} reached; {event.guard}"]
    return []


def _told(event: events.Event) -> object:
    """What makes two events the same thing told again; None: each is told."""
    if isinstance(event, events.Recompile):
        return event.where, tuple((cause.kind, cause.name) for cause in event.causes)
    if isinstance(event, (events.GraphBreak, events.Skipped)):
        return event.where, event.code
    return None


def set_logs(*topics: str) -> None:
    """Switch the named topics on and all others off. Raises ValueError with the nearest name for an unknown one.

    Topics that torch's own log settings ask for stay on.
    """
    global _own
    for topic in topics:
        if topic not in TOPICS:
            near = difflib.get_close_matches(topic, TOPICS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"topics are {', '.join(TOPICS)}"
            raise ValueError(f"no log topic {topic!r}; {hint}")
    _own = topics
    for remove in _active.values():
        remove()
    _active.clear()
    _switch()


def follow_torch() -> None:
    """Switch on and off what torch's log settings ask for just now."""
    global _theirs
    settings = getattr(sys.modules.get("torch._logging._internal"), "log_state", None)
    names = getattr(settings, "artifact_names", None)
    if isinstance(names, (set, frozenset)) and names != _theirs:
        _theirs = frozenset(names)
        _switch()


def _switch() -> None:
    """Make the topics that are wanted the active ones; one that is active goes on counting."""
    wanted = {*_own, *(OF_TORCH[name] for name in _theirs if name in OF_TORCH)}
    for topic in [name for name in _active if name not in wanted]:
        _active.pop(topic)()
    for topic in TOPICS:
        if topic in wanted and topic not in _active:
            _active[topic] = events.subscribe(_listener(topic))


def _listener(topic: str) -> events.Listener:
    logger = logging.getLogger(f"minidynamo.{topic}")
    logger.setLevel(logging.INFO)
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False

    counts: dict[object, int] = {}

    def listen(event: events.Event) -> None:
        lines = _lines(topic, event)
        told = _told(event) if lines else None
        if told is not None:
            counts[told] = count = counts.get(told, 0) + 1
            if count > 1:
                lines = [f"{lines[0]} ({count} times)"] if count & (count - 1) == 0 else []
        for line in lines:
            logger.info("%s", line)

    return listen


def from_environment() -> None:
    """Apply MINIDYNAMO_LOG; an unknown topic is told in one line and left out."""
    wanted = [t.strip() for t in os.environ.get("MINIDYNAMO_LOG", "").split(",") if t.strip()]
    known = [t for t in wanted if t in TOPICS]
    for topic in wanted:
        if topic not in TOPICS:
            near = difflib.get_close_matches(topic, TOPICS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"topics are {', '.join(TOPICS)}"
            print(f"minidynamo: MINIDYNAMO_LOG has no topic {topic!r}; {hint}", file=sys.stderr)
    if known:
        set_logs(*known)
