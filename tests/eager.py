"""Runs a small program as plain Python and captured, and demands that nothing tells the two apart.

A program is source text that defines `f` (and whatever it uses). Calls are expressions over the program's names. Each side runs in a
module of its own, so each has its own globals; results, arguments, globals, printed text and exceptions are compared.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import linecache
import re
import sys
import textwrap
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import minidynamo
from minidynamo import events
from minidynamo.exc import MinidynamoWarning
from tests.describe import Describer
from tests.graph_text import compact

_numbers = itertools.count()
PRELUDE = {"torch": torch, "minidynamo": minidynamo, "F": torch.nn.functional}


def T(*shape: int, **options: Any) -> torch.Tensor:
    """A tensor with distinct values: 1, 2, 3, ..."""
    count = torch.Size(shape).numel()
    return (
        torch.arange(1.0, count + 1)
        .reshape(shape)
        .to(options.pop("dtype", torch.float32))
        .requires_grad_(options.pop("requires_grad", False))
    )


PRELUDE["T"] = T


class Module:
    """A fresh module that runs a program's text, with a file name that tracebacks and the interceptor can use."""

    def __init__(self, source: str, filename: str | None = None) -> None:
        self.source = textwrap.dedent(source)
        self.filename = filename or f"<program {next(_numbers)}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source), None, lines, self.filename)
        self.module = sys.modules["program"] = types.ModuleType("program")
        self.names = self.module.__dict__
        self.names.update(PRELUDE)
        exec(compile(self.source, self.filename, "exec"), self.names)
        self.functions = {name for name, value in self.names.items() if callable(value)}

    def state(self) -> dict[str, Any]:
        """The program's globals that are data."""
        return {
            name: value
            for name, value in sorted(self.names.items())
            if name not in PRELUDE
            and not name.startswith("__")
            and not callable(value)
            and not inspect.ismodule(value)
        }


@dataclass
class Outcome:
    """What a caller can see of one call."""

    result: Any
    error: Any
    printed: str
    state: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and vars(self) == vars(other)


def lines_of(error: BaseException, filename: str) -> list[tuple[str, int]]:
    """(function, line) of the program's frames, outermost first; a function in several pieces counts once, with the last line."""
    found: list[tuple[str, int]] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == filename:
            name = frame.f_code.co_qualname
            if found and found[-1][0] == name:
                found.pop()
            found.append((name, line))
    return found


def error_of(error: BaseException | None, filename: str) -> Any:
    if error is None:
        return None
    around = [type(e).__name__ for e in (error.__cause__, error.__context__)]
    lines: list[Any] = lines_of(error, filename)
    if isinstance(
        error, UnboundLocalError
    ):  # CPython 3.11: a warm function gives the line before (STORE_FAST__LOAD_FAST)
        lines = [name for name, _ in lines]
    return type(error).__name__, str(error), lines, around


def outcome(module: Module, call: str, describer: Describer) -> Outcome:
    """Evaluate `call` in the program's globals."""
    printed = io.StringIO()
    result = error = None
    torch.manual_seed(0)
    try:
        with contextlib.redirect_stdout(printed):
            result = eval(compile(call, "<call>", "eval"), module.names)
    except Exception as caught:
        error = caught
    described = describer(result)
    return Outcome(described, error_of(error, module.filename), printed.getvalue(), describer(module.state()))


@dataclass
class Seen:
    """What was captured while the program ran."""

    compiled: list[events.Compiled] = field(default_factory=list)
    breaks: list[events.GraphBreak] = field(default_factory=list)
    skipped: list[events.Skipped] = field(default_factory=list)
    recompiles: list[events.Recompile] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def graphs(self) -> int:
        """Graphs with at least one operator."""
        return sum(event.ops > 0 for event in self.compiled)

    @property
    def ops(self) -> int:
        return sum(event.ops for event in self.compiled)

    @property
    def reasons(self) -> list[str]:
        """MD codes of the breaks, in order."""
        return [event.code for event in self.breaks]

    @property
    def skips(self) -> list[str]:
        return [event.code for event in self.skipped]


_LISTS = {
    events.Compiled: "compiled",
    events.GraphBreak: "breaks",
    events.Skipped: "skipped",
    events.Recompile: "recompiles",
}


@contextlib.contextmanager
def watching() -> Iterator[Seen]:
    """The events of a block."""
    seen = Seen()

    def note(event: events.Event) -> None:
        name = _LISTS.get(type(event))  # type: ignore[arg-type]
        if name is not None:
            getattr(seen, name).append(event)

    with events.listen(note):
        yield seen


def check(source: str, *calls: str, backend: str | Callable[..., Any] = "eager", warns: bool = False) -> Seen:
    """Run the calls in order on both sides. Raises AssertionError at the first difference, and for any warning of minidynamo's own
    unless `warns`."""
    plain = Module(source)
    captured = Module(source, plain.filename)
    captured.names["f"] = minidynamo.optimize(backend)(captured.names["f"])
    left, right = Describer(), Describer()
    with watching() as seen, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number, call in enumerate(calls):
            expected, got = outcome(plain, call, left), outcome(captured, call, right)
            seen.outcomes.append(got)
            assert got == expected, difference(number, call, expected, got)
    own = [str(warning.message) for warning in told if issubclass(warning.category, MinidynamoWarning)]
    assert warns or not own, own
    return seen


def difference(number: int, call: str, expected: Outcome, got: Outcome) -> str:
    lines = [f"call {number}, {call}:"]
    for part in vars(expected):
        wanted, found = getattr(expected, part), getattr(got, part)
        if wanted != found:
            lines.append(f"  {part}\n    eager    {wanted}\n    captured {found}")
    return "\n".join(lines)


def text_of(fn: Callable[..., Any]) -> str:
    """The source of a function, named `f`, as a program."""
    text = textwrap.dedent(inspect.getsource(fn))
    return text.replace(f"def {fn.__name__}(", "def f(", 1)


@dataclass(frozen=True)
class Program:
    """A named program with its calls. Something of it is captured, unless the name ends with "(plain)"."""

    name: str
    source: str
    calls: tuple[str, ...]

    def check(self) -> Seen:
        """Run it both ways."""
        seen = check(self.source, *self.calls)
        assert seen.graphs or self.name.endswith("(plain)"), (
            f"nothing was captured: {seen.reasons} {seen.skips}"
        )
        return seen


def programs(text: str) -> list[Any]:
    """Programs as parameters of a test. Each begins with its name in a comment, `# name:`, and its calls in comments below."""
    found = []
    for block in re.split(r"\n# (?! )", text)[1:]:
        head, *lines = block.splitlines()
        calls = [
            line.removeprefix("#   ")
            for line in itertools.takewhile(lambda line: line.startswith("#   "), lines)
        ]
        source = "\n".join(lines[len(calls) :]) + "\n"
        name = head.removesuffix(":")
        found.append(pytest.param(Program(name, source, tuple(calls)), id=name))
    return found


@dataclass
class View:
    """One captured call: its result, the graphs as text, and what was seen."""

    result: Any
    graphs: list[str]
    seen: Seen
    optimized: Any  # cache entries live as long as this

    @property
    def frames(self) -> list[tuple[int, Any]]:
        """(depth, entry) of the function and its resume functions."""
        return list(minidynamo.compiled_frames(self.optimized))

    @property
    def graph(self) -> str:
        """All graphs, in the order in which they were captured."""
        return " | ".join(self.graphs)

    @property
    def guards(self) -> str:
        """The guards of the first graph."""
        return " and ".join(self.seen.compiled[0].guards)


def trace(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> View:
    """Call `fn` captured and show its graphs."""
    graphs: list[str] = []

    def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(compact(module))
        return module.forward

    optimized = minidynamo.optimize(backend)(fn)
    with watching() as seen:
        result = optimized(*args, **kwargs)
    return View(result, graphs, seen, optimized)
