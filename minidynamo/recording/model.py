"""Records as rows: one per cause, break, skipped frame and compilation, with counts. What every report is made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .callsite import Place
from .schema import Record, place_from

QUIET_SKIPS = ("MD302", "MD303")  # module bodies and library code: nothing to do about them
COMPILE_FIELDS = (
    "n",
    "id",
    "at",
    "resume",
    "ops",
    "guards",
    "exit",
    "seconds",
    "stages",
    "backend",
    "thread",
)
CAUSE_FIELDS = ("code", "name", "old", "new", "kind", "guard", "site_kind", "fix", "edits")
Key = tuple[str, int, str]  # file, line, function


@dataclass(slots=True)
class Compile:
    """One compilation. `hits` is None where the recording ends early."""

    pid: int
    n: int
    id: str
    at: float
    key: Key
    resume: bool
    ops: int
    guards: list[list[str]] = field(repr=False)
    exit: str
    seconds: float
    stages: dict[str, float]
    backend: str
    thread: int
    detail: Record = field(repr=False)
    hits: int | None = None
    again: bool = False  # a recompilation


@dataclass(slots=True, repr=False)
class Cause:
    """One reason for which one function was compiled again. `compiles` counts recompilations in which it took part; `seconds` is its
    share of their time; `values` are those seen, oldest first."""

    number: int
    key: Key
    code: str
    name: str
    old: str
    new: str
    kind: str
    guard: str
    site: Place | None
    site_kind: str
    used: Place | None
    writers: list[Place]
    fix: str
    edits: list[Record]
    values: list[str]
    compiles: int = 0
    seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    entries: list[Compile] = field(default_factory=list)
    replaced: str = ""
    ends: str = ""

    @property
    def function(self) -> str:
        return self.key[2]

    def __repr__(self) -> str:
        """Short: what is needed to recognise it; the fields have the rest."""
        at = f", {self.site_kind} at {self.site}  {self.site.text}" if self.site is not None else ""
        return f"<{self.code} {self.function}: {self.name} {self.old} -> {self.new}{at}; {self.compiles} recompiles>"


@dataclass(slots=True, repr=False)
class Break:
    """One place where graphs end. `count`: how often a call left a graph there; `before`, `after`: operators of the graphs on both
    sides (-1: not known)."""

    letter: str
    place: Place
    function: str
    code: str
    text: str
    hint: str
    count: int = 0
    compiles: int = 0
    before: int = -1
    after: int = -1

    def __repr__(self) -> str:
        return f"<{self.code} {self.function} at {self.place}: {self.text}; {self.count} calls>"


@dataclass(slots=True)
class Skip:
    """A frame that is not compiled."""

    key: Key
    code: str
    text: str
    hint: str
    count: int = 1


@dataclass(slots=True)
class Limit:
    """A function that reached the cache limit."""

    key: Key
    limit: int
    guard: str
    values: list[str]
    causes: list[list[str]]
    option: str = "cache_size_limit"


@dataclass(slots=True)
class Run:
    """All recordings of one program, merged."""

    headers: list[Record]
    compiles: list[Compile]
    causes: list[Cause]
    breaks: list[Break]
    skips: list[Skip]
    limits: list[Limit]
    problems: list[str]
    exit: int | None
    complete: bool

    @property
    def seconds(self) -> float:
        """Time spent compiling."""
        return sum(c.seconds for c in self.compiles)

    @property
    def avoidable(self) -> list[Compile]:
        """Recompilations."""
        return [c for c in self.compiles if c.again]

    @property
    def functions(self) -> list[Key]:
        """Functions that were compiled, in order."""
        return list(dict.fromkeys(c.key for c in self.compiles))

    @property
    def program(self) -> str:
        """What ran, in a few words."""
        command = self.headers[0].get("command") or [] if self.headers else []
        return " ".join(command) or "program"

    def calls_of(self, key: Key) -> int | None:
        """Calls of a function that ran an entry of its own; None where hits are not known."""
        own = [c for c in self.compiles if c.key == key and not c.resume]
        return None if any(c.hits is None for c in own) else sum(c.hits or 0 for c in own) + len(own)


def build(recordings: Iterable[Sequence[Record]], problems: Sequence[str] = ()) -> Run:
    """The rows of one or more recordings."""
    run = Run([], [], [], [], [], [], list(problems), None, True)
    causes: dict[tuple[Any, ...], Cause] = {}
    breaks: dict[tuple[Any, ...], Break] = {}
    for records in recordings:
        _add(run, records, causes, breaks)
    run.causes = sorted(causes.values(), key=lambda c: -c.seconds)
    run.breaks = sorted(breaks.values(), key=lambda b: -b.count)
    for index, cause in enumerate(run.causes, 1):
        cause.number = index
        cause.ends = ending(run, cause)
    for index, row in enumerate(run.breaks):
        row.letter = letter(index)
    return run


def letter(index: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    return (letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def _add(run: Run, records: Sequence[Record], causes: dict[Any, Cause], breaks: dict[Any, Break]) -> None:
    pid = 0
    pending: dict[str, list[Cause]] = {}
    broken: dict[int, Break] = {}
    compiles: dict[int, Compile] = {}
    skips: dict[str, Skip] = {}
    last_break: Break | None = None
    complete = False
    for record in records:
        event = record["event"]
        if event == "header":
            run.headers.append(record)
            pid = record.get("pid", 0)
            continue
        if event == "summary":
            complete = True
            run.exit = record.get("exit") if record.get("exit") is not None else run.exit
            for n, hits in record.get("hits", {}).items():
                if int(n) in compiles:
                    compiles[int(n)].hits = hits
            for name, count in record.get("skips", {}).items():
                if name in skips:
                    skips[name].count += count - 1
            continue
        key = (record["file"], record["line"], record["function"])
        if event == "compile":
            fields = {name: record[name] for name in COMPILE_FIELDS}
            made = Compile(pid=pid, key=key, detail=record.get("detail", {}), **fields)
            run.compiles.append(made)
            compiles[made.n] = made
            _charge(made, pending.pop(made.id, []))
            if last_break is not None and made.resume:
                last_break.after = max(last_break.after, made.ops)
            last_break = broken.get(made.n)
            if last_break is not None:
                last_break.before = max(last_break.before, made.ops)
        elif event == "recompile":
            pending[record["id"]] = [_cause(causes, key, row, record["closest"]) for row in record["causes"]]
        elif event == "graph_break":
            place = Place(record["file"], record["line"], record["source"], text=record["source"])
            where = (*key, record["code"], record["text"])
            row = breaks.setdefault(
                where, Break("", place, record["function"], record["code"], record["text"], record["hint"])
            )
            row.compiles += 1
            broken[record["n"]] = row
        elif event == "skip":
            skip = Skip(key, record["code"], record["text"], record["hint"])
            skips[f"{key[0]}:{key[1]}:{key[2]}:{skip.code}"] = skip
            run.skips.append(skip)
        elif event == "limit":
            run.limits.append(
                Limit(
                    key,
                    record["limit"],
                    record["guard"],
                    record["values"],
                    record["causes"],
                    record.get("option", "cache_size_limit"),
                )
            )
    for n, row in broken.items():
        made_at = compiles.get(n)
        row.count += 1 + ((made_at.hits or 0) if made_at is not None else 0)
    run.complete &= complete


def _charge(made: Compile, causes: list[Cause]) -> None:
    """Divide the time of a recompilation among its causes."""
    made.again = bool(causes)
    for cause in causes:
        cause.compiles += 1
        cause.entries.append(made)
        cause.seconds += made.seconds / len(causes)
        for stage, seconds in made.stages.items():
            cause.stages[stage] = cause.stages.get(stage, 0.0) + seconds / len(causes)


def _cause(causes: dict[Any, Cause], key: Key, row: Record, closest: str) -> Cause:
    where = (key, row["code"], row["name"])
    site, used = place_from(row["site"]), place_from(row["used"])
    written = [place for place in map(place_from, row["writers"]) if place is not None]
    found = causes.get(where)
    if found is None:
        fields = {name: row[name] for name in CAUSE_FIELDS}
        found = causes[where] = Cause(
            number=0, key=key, site=site, used=used, writers=written, values=[row["old"]], **fields
        )
    else:
        found.old, found.new, found.guard = row["old"], row["new"], row["guard"]
        found.site, found.site_kind, found.used, found.writers = site, row["site_kind"], used, written
        found.fix = row["fix"]
        edits = {(e["file"], e["line"]): e for e in (*found.edits, *row["edits"])}
        found.edits = list(edits.values())
    found.values.append(row["new"])
    found.replaced = closest
    return found


def ending(run: Run, cause: Cause) -> str:
    """Whether it goes on: in words, from the values seen, the hits of the entries, and the limit."""
    limited = any(limit.key == cause.key and [cause.code, cause.name] in limit.causes for limit in run.limits)
    values = list(dict.fromkeys(cause.values))
    calls = run.calls_of(cause.key)
    seen = f"{len(values)} values" + (f" in {calls} calls" if calls is not None else "")
    if limited:
        return f"limit reached after {seen}: calls that fit no entry run as plain Python"
    if not run.complete or not cause.entries:
        return seen
    hits = [entry.hits or 0 for entry in cause.entries]
    if len(cause.values) - 1 > len(values) and len(values) <= 2 or len(values) == 2 and hits[-1] > 0:
        return "2 values: harmless"
    if len(values) >= 3 and not any(hits[:-1]) and hits[-1] <= max(1, len(hits) // 2):
        return f"unbounded: {seen}"
    if hits[-1] > 0:
        return f"settled: the last entry served {hits[-1]} more call{'s' * (hits[-1] != 1)}"
    return f"{seen} so far"
