"""Events become records. Nothing is done on a hit: hits are counted in C and read when the recording ends."""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib.metadata
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from .. import config, events
from ..events import GuardFailure, Where
from ..reasons import FLOAT_CHANGED, INT_CHANGED
from .behind import Origin, origin
from .callsite import Passed, Place, Site, caller, line_place, passed, site_of
from .causes import Change, as_the_program_says, classify
from .detail import detail_of
from .fixes import Fix, Situation, fix_of
from .schema import SCHEMA, Record, place_record, redact
from .writers import Writer, carets, writers

KEPT_SITES = 16  # calls remembered per function


@dataclasses.dataclass(slots=True)
class _Frame:
    """What is remembered of a function while it is recorded: the calls that compiled it, and values seen per cause."""

    sites: dict[tuple[str, int], Site] = dataclasses.field(default_factory=dict)
    seen: dict[tuple[str, str], list[str]] = dataclasses.field(default_factory=dict)


class Recorder:
    """Listens and keeps records. `only`: globs of which one must match the file's name or the function (none: everything).
    `path`: also written there, line by line, `%p` being the process id; forked processes write files of their own.
    """

    def __init__(
        self,
        path: str | None = None,
        *,
        only: Sequence[str] = (),
        command: Sequence[str] | None = None,
        details: bool = True,
        redacted: bool | None = None,
    ) -> None:
        self.path = path
        self.only = tuple(only)
        self.details = details
        self.redacted = _flag("MINIDYNAMO_REDACT") if redacted is None else redacted
        self.command = list(sys.argv if command is None else command)
        self._lock = threading.RLock()
        self._begin()

    def _begin(self) -> None:
        self.records: list[Record] = []
        self.counters: dict[int, Any] = {}
        self.failed = self.incomplete = ""
        self._out: TextIO | None = None
        self._frames: dict[Where, _Frame] = {}
        self._stages: dict[str, dict[str, float]] = {}
        self._skips: dict[str, int] = {}
        self._latest: dict[str, int] = {}
        self._breaks: set[tuple[str, int]] = set()
        self._count = 0
        self._site: tuple[str, Site] | None = None
        self._remove: Callable[[], None] | None = None
        self._pid = os.getpid()
        self._started = time.perf_counter()

    # --- beginning and end ---------------------------------------------------------------------------------------------
    def start(self) -> Recorder:
        """Listen from now on."""
        self._started = time.perf_counter()
        self._write(_header(self.command))
        self._remove = events.subscribe(self._listen)
        return self

    def stop(self, exit_code: int | None = None) -> None:
        """Listen no more, and write the summary. A second call does nothing."""
        if self._remove is None:
            return
        self._remove()
        self._remove = None
        with self._lock:
            self._write(self.summary(exit_code))
            if self._out is not None:
                self._out.close()
                self._out = None

    def summary(self, exit_code: int | None = None) -> Record:
        """The summary as it would be now."""
        return {
            "event": "summary",
            "hits": {str(n): counter.hits for n, counter in self.counters.items()},
            "skips": dict(self._skips),
            "seconds": round(time.perf_counter() - self._started, 6),
            "exit": exit_code,
        }

    def restart_after_fork(self) -> None:
        """In a child process: a file of its own; what the parent has recorded is the parent's."""
        listening = self._remove is not None
        if self._remove is not None:
            self._remove()
        self._lock = threading.RLock()
        self._begin()
        if listening:
            self.start()

    # --- records -------------------------------------------------------------------------------------------------------
    def _write(self, record: Record) -> None:
        if self.redacted:
            record = redact(record)
        self.records.append(record)
        if self.path is None or self.failed:
            return
        try:
            if self._out is None:
                name = self.path.replace("%p", str(self._pid))
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                self._out = open(name, "w", encoding="utf-8")
            self._out.write(json.dumps(record, separators=(",", ":"), default=str) + "\n")
            self._out.flush()
        except OSError as error:
            self.failed = f"{self.path}: {error.strerror or error}"
            print(f"minidynamo: the recording cannot be written to {self.failed}", file=sys.stderr)

    def _wanted(self, where: Where) -> bool:
        if not self.only:
            return True
        names = (
            where.filename,
            os.path.basename(where.filename),
            where.function,
            where.function.rpartition(".")[2],
        )
        return any(fnmatch.fnmatchcase(name, glob) for glob in self.only for name in names)

    def _listen(self, event: events.Event) -> None:
        note = _NOTES.get(type(event))
        if note is None or not self._wanted(event.where):
            return
        try:
            with self._lock:
                note(self, event)
        except Exception as error:  # the program goes on as if nobody listened
            if config.internal_errors == "raise":
                raise
            if not self.incomplete:
                self.incomplete = (
                    f"the recording is incomplete: {type(error).__name__}: {error}; please report it"
                )
                print(f"minidynamo: {self.incomplete}", file=sys.stderr)

    def _stage(self, event: events.StageDone) -> None:
        stages = self._stages.setdefault(event.compile_id, {})
        stages[event.stage] = stages.get(event.stage, 0.0) + event.seconds

    def _compiled(self, event: events.Compiled) -> None:
        made = event.made
        number = self._latest.pop(event.compile_id, None) or self._next()
        if made is not None:
            self.counters[number] = made.counter
        if not event.resume:
            self._remember_site(event.compile_id, event.where)
        self._site = None
        stages = self._stages.pop(event.compile_id, {})
        self._write(
            {
                "event": "compile",
                "n": number,
                "id": event.compile_id,
                "at": self._now(),
                **_where(event.where),
                "resume": event.resume,
                "ops": event.ops,
                "guards": [list(row) for row in zip(event.guards, event.meanings or event.guards)],
                "exit": event.exit,
                "seconds": round(event.seconds, 6),
                "stages": {name: round(seconds, 6) for name, seconds in stages.items()},
                "backend": event.backend,
                "thread": threading.get_ident(),
                "detail": detail_of(event) if self.details and not self.redacted else {},
            }
        )

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _now(self) -> float:
        return round(time.perf_counter() - self._started, 6)

    def _broke(self, event: events.GraphBreak) -> None:
        number = self._latest[event.compile_id] = self._next()
        self._breaks.add((event.where.filename, event.where.line))
        self._write(
            {
                "event": "graph_break",
                "n": number,
                "id": event.compile_id,
                **_where(event.where),
                "code": event.code,
                "text": event.text,
                "hint": event.hint,
                "opname": event.opname,
                "source": line_place(event.where.filename, event.where.line).text,
            }
        )

    def _skipped(self, event: events.Skipped) -> None:
        key = f"{event.where}:{event.where.function}:{event.code}"
        self._skips[key] = self._skips.get(key, 0) + 1
        if self._skips[key] == 1:
            self._write(
                {
                    "event": "skip",
                    "at": self._now(),
                    **_where(event.where),
                    "code": event.code,
                    "text": event.text,
                    "hint": event.hint,
                }
            )

    def _recompiled(self, event: events.Recompile) -> None:
        site = self._remember_site(event.compile_id, event.where)
        causes = [self._cause(event, failure, site) for failure in as_the_program_says(event)]
        self._write(
            {
                "event": "recompile",
                "id": event.compile_id,
                "at": self._now(),
                **_where(event.where),
                "closest": event.closest,
                "causes": causes,
            }
        )

    def _limit(self, event: events.LimitHit) -> None:
        changes = [classify(failure) for failure in event.causes]
        self._write(
            {
                "event": "limit",
                "at": self._now(),
                **_where(event.where),
                "limit": event.limit,
                "option": event.option,
                "guard": event.guard,
                "values": list(event.values),
                "causes": [[change.reason.code, change.name] for change in changes],
            }
        )

    # --- causes --------------------------------------------------------------------------------------------------------
    def _remember_site(self, compile_id: str, where: Where) -> Site | None:
        """The call that is being made now, remembered as one that compiles the function at `where`."""
        if self._site is not None and self._site[0] == compile_id:
            return self._site[1]
        frame = caller()
        if frame is None:
            return None
        site = site_of(frame, where.function)
        self._site = compile_id, site
        about = self._frames.setdefault(where, _Frame())
        about.sites.pop(site.key, None)
        about.sites[site.key] = site
        while len(about.sites) > KEPT_SITES:
            del about.sites[next(iter(about.sites))]
        return site

    def _cause(self, event: events.Recompile, failure: GuardFailure, site: Site | None) -> Record:
        comes = Origin()
        if event.resume and failure.root == "argument":
            comes = origin(event.where.filename, event.begins, failure.root_name, self._breaks)
        made = comes.place
        if made is not None:
            made = _bound(event, failure, made)
            failure = _of_a_break(failure, made)
        change = classify(failure)
        about = self._frames.setdefault(event.where, _Frame())
        seen = about.seen.setdefault((change.reason.code, change.name), [change.old])
        seen.append(change.new)
        del seen[:-KEPT_SITES]
        calls = tuple((s, _passed(s, event, failure)) for s in about.sites.values()) if made is None else ()
        used = _used(failure)
        found = self._writers(event, failure, site, used)
        mend = comes.mend(change.reason in (INT_CHANGED, FLOAT_CHANGED))
        fix = fix_of(Situation(change, failure, calls, tuple(found), tuple(seen), used, mend))
        place, kind = (made, "made") if made is not None else self._where_from(event, failure, site, found)
        return _cause_record(change, failure, place, kind, used, found, fix)

    def _writers(
        self, event: events.Recompile, failure: GuardFailure, site: Site | None, used: Place | None
    ) -> list[Writer]:
        outside = failure.root in ("global", "closure", "default") or failure.member[0] != "name"
        structure = failure.kind in (
            "LENGTH",
            "DICT_KEYS",
            "SET_ITEMS",
            "SET_ORDER",
            "DICT_CONTAINS",
            "DICT_NOT_CONTAINS",
        )
        if not (outside or structure) or failure.root in ("state", "other"):
            return []
        files = [event.where.filename]
        if used is not None:
            files.append(used.file)
        if site is not None:
            files.insert(0, site.place.file)
        found = writers(tuple(files), failure.member, failure.name, site.function if site is not None else "")
        if structure and failure.root == "argument" and failure.member[0] == "name":
            return [
                writer for writer in found if writer.changes
            ]  # the call passes the name; what changed is its contents
        return found if structure else [writer for writer in found if not writer.changes]

    def _where_from(
        self, event: events.Recompile, failure: GuardFailure, site: Site | None, found: list[Writer]
    ) -> tuple[Place | None, str]:
        """The place that the report names, and what it is: passed, written, called, made."""
        if found:
            return found[0].place, "written"
        if site is None:
            return None, ""
        given = _passed(site, event, failure)
        if given is not None:
            return site.place_of(given.node), "passed"
        return site.outer or site.place, "called"


def _passed(site: Site, event: events.Recompile, failure: GuardFailure) -> Passed | None:
    if site.call is None or failure.root != "argument":
        return None
    index = -1
    if (
        failure.member[0] == "item"
        and failure.member[1].isdigit()
        and failure.name == f"{failure.root_name}[{failure.member[1]}]"
    ):
        index = int(failure.member[1])
    return passed(
        site.call, event.parameters, event.positional, event.where.function, failure.root_name, index
    )


def _bound(event: events.Recompile, failure: GuardFailure, made: Place) -> Place:
    """The statement above the break that gave the value its name, if the one at the break does not."""
    if failure.member[0] != "name" or failure.name.startswith("___stack"):
        return made
    known = [w.place for w in writers((event.where.filename,), failure.member, failure.name, "")]
    above = [place for place in known if event.where.line <= place.line <= made.line]
    return max(above, key=lambda place: place.line, default=made)


def _of_a_break(failure: GuardFailure, made: Place) -> GuardFailure:
    """A value that plain Python made at a break is named after what it is assigned to."""
    if not failure.name.startswith("___stack"):
        return failure
    name, equals, _ = made.text.partition(" = ")
    said = name if equals and name.isidentifier() else f"the value of line {made.line}"
    text = said + failure.name.removeprefix(failure.root_name)
    return dataclasses.replace(failure, name=text, member=("name", said))


def _used(failure: GuardFailure) -> Place | None:
    if failure.user is None:
        return None
    return carets(line_place(failure.user.filename, failure.user.line), failure.name, failure.member)


def _where(where: Where) -> Record:
    return {"file": where.filename, "line": where.line, "function": where.function}


def _cause_record(
    change: Change,
    failure: GuardFailure,
    place: Place | None,
    kind: str,
    used: Place | None,
    found: list[Writer],
    fix: Fix,
) -> Record:
    return {
        "code": change.reason.code,
        "name": change.name,
        "old": change.old,
        "new": change.new,
        "kind": failure.kind,
        "guard": guard_words(failure),
        "guard_text": failure.part,
        "source": failure.path,
        "expected": failure.expected,
        "actual": failure.actual,
        "site": place_record(place),
        "site_kind": kind,
        "used": place_record(used),
        "writers": [place_record(writer.place) for writer in found[:4]],
        "fix": fix.text,
        "edits": [dataclasses.asdict(edit) for edit in fix.edits],
    }


def guard_words(failure: GuardFailure) -> str:
    """The guard as the program would say it: `lr == 0.1`; `x: size (2,)`."""
    if failure.kind in ("EQUALS_MATCH", "SAME_MATCH"):
        return f"{failure.name} == {failure.expected}"
    return f"{failure.name}: {failure.expected}"


_NOTES: dict[type, Callable[[Recorder, Any], None]] = {
    events.StageDone: Recorder._stage,
    events.Compiled: Recorder._compiled,
    events.GraphBreak: Recorder._broke,
    events.Skipped: Recorder._skipped,
    events.Recompile: Recorder._recompiled,
    events.LimitHit: Recorder._limit,
}


def _flag(name: str) -> bool:
    return os.environ.get(name, "0").lower() not in ("", "0", "false", "no")


def _header(command: list[str]) -> Record:
    return {
        "event": "header",
        "schema": SCHEMA,
        "pid": os.getpid(),
        "command": command,
        "cwd": os.getcwd(),
        "python": platform.python_version(),
        "torch": _version("torch"),
        "minidynamo": _version("minidynamo"),
        "config": {name: getattr(config, name) for name in config.OPTIONS},
        "time": round(time.time(), 3),
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
