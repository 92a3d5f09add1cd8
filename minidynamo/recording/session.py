"""Recording inside a program: `record`, `expect`, `no_recompiles`, and what MINIDYNAMO_TRACE starts."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator

from ..exc import MinidynamoError
from .formats import as_json, html, rich
from .model import Break, Cause, Run, build
from .recorder import Recorder
from .schema import Record
from .summary import short_name
from .why import break_page, page
from .words import Style, count, place_text

_process: list[Recorder] = []  # the recorder of the process, when there is one


class Recording:
    """What `record()` gives: rows of what was compiled inside of the block, so far or until its end."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._done: Run | None = None

    @property
    def run(self) -> Run:
        """All rows."""
        if self._done is not None:
            return self._done
        return build([[*self._recorder.records, self._recorder.summary()]])

    @property
    def records(self) -> list[Record]:
        """The records, as they would stand in a file."""
        return list(self._recorder.records)

    @property
    def recompiles(self) -> list[Cause]:
        """One row per cause: code, name, old, new, site, used, fix, compiles, seconds, ends."""
        return self.run.causes

    @property
    def graph_breaks(self) -> list[Break]:
        """One row per place where graphs end."""
        return self.run.breaks

    @property
    def compiles(self) -> int:
        """Compilations, recompilations included."""
        return len(self.run.compiles)

    @property
    def recompile_count(self) -> int:
        """Recompilations."""
        return len(self.run.avoidable)

    def to_json(self) -> dict[str, object]:
        """The rows as plain data."""
        return as_json(self.run)

    def to_html(self) -> str:
        """The report for browsers, one file."""
        return html(self.run)

    def _repr_html_(self) -> str:
        """Notebooks show the summary."""
        from .html import fragment

        return fragment(self.run)

    def __str__(self) -> str:
        return rich(self.run, Style(120, True, False))

    def why(self, number: int = 1) -> str:
        """The page of one cause."""
        run = self.run
        return "\n".join(page(run, run.causes[number - 1], Style(120, True, False)))

    def finish(self) -> None:
        """Keep the rows as they are."""
        self._recorder.stop()
        self._done = build([self._recorder.records])


@contextlib.contextmanager
def record(path: str | None = None, *, only: tuple[str, ...] = ()) -> Iterator[Recording]:
    """Record what is compiled inside of the block. `path`: also written there; `only`: globs of functions or files.

    Nothing is done on a hit; caches stay as they are.
    """
    made = Recording(Recorder(path, only=only).start())
    try:
        yield made
    finally:
        made.finish()


class UnexpectedCompilation(AssertionError, MinidynamoError):
    """`expect` or `no_recompiles` did not hold; the message names the causes."""


@contextlib.contextmanager
def expect(
    compiles: int | None = None, recompiles: int | None = None, graph_breaks: int | None = None
) -> Iterator[Recording]:
    """Exactly so many compilations, recompilations and places of graph breaks inside of the block; None: any number.

    Raises UnexpectedCompilation (an AssertionError) with the causes. An exception out of the block passes through.
    """
    recorder = Recorder().start()
    made = Recording(recorder)
    try:
        yield made
    finally:
        made.finish()
    wanted = {"compiles": compiles, "recompiles": recompiles, "graph_breaks": graph_breaks}
    trouble = differences(made, wanted)
    if trouble:
        raise UnexpectedCompilation("\n".join(trouble))


def differences(made: Recording, wanted: dict[str, int | None]) -> list[str]:
    """What is not as wanted, with its causes; nothing when all is."""
    found = {
        "compiles": made.compiles,
        "recompiles": made.recompile_count,
        "graph_breaks": len(made.graph_breaks),
    }
    out = []
    for name, number in wanted.items():
        if number is None or found[name] == number:
            continue
        out.append(f"expected {name}={number}, found {found[name]}")
        if name == "recompiles":
            out += told_recompiles(made)
        elif name == "graph_breaks":
            out += told_breaks(made)
        else:
            out += [f"  {c.key[2]} compiled at {c.key[0]}:{c.key[1]} ({c.id})" for c in made.run.compiles]
    return out


def told_recompiles(made: Recording) -> list[str]:
    """`2 recompiles of train_step: lr 0.1 → 0.05, passed at test_train.py:12  0.1 / (i + 1)   [MD106]`."""
    return [
        f"{count(c.compiles, 'recompile')} of {short_name(c)}: {c.name} {c.old} → {c.new}"
        + (f", {c.site_kind} at {place_text(c.site, False)}  {c.site.text}" if c.site is not None else "")
        + f"   [{c.code}]"
        for c in made.recompiles
    ]


def told_breaks(made: Recording) -> list[str]:
    """`graph break in f at f.py:3: call of print   [MD210]`."""
    return [
        f"graph break in {b.function} at {place_text(b.place, False)}: {b.text}   [{b.code}]"
        for b in made.graph_breaks
    ]


def no_recompiles() -> contextlib.AbstractContextManager[Recording]:
    """`expect(recompiles=0)`."""
    return expect(recompiles=0)


# --- the process -----------------------------------------------------------------------------------------------------
def own(recorder: Recorder) -> None:
    """`recorder` is the process's own: MINIDYNAMO_TRACE starts no other."""
    _process.append(recorder)


def from_environment() -> None:
    """Apply MINIDYNAMO_TRACE: record the whole process to that file, `%p` being the process id. Written to its end at exit."""
    path = os.environ.get("MINIDYNAMO_TRACE")
    if not path or _process:
        return
    recorder = Recorder(path).start()
    own(recorder)
    atexit.register(recorder.stop)


def _after_fork() -> None:
    for recorder in _process:
        recorder.restart_after_fork()


os.register_at_fork(after_in_child=_after_fork)

__all__ = [
    "Recording",
    "UnexpectedCompilation",
    "break_page",
    "expect",
    "from_environment",
    "no_recompiles",
    "own",
    "record",
]
