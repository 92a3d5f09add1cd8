"""The stages of one compilation, each shown as text: what `trace` and `walkthrough` print."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.table import Table

from minidynamo.backends.debug import graph_table
from minidynamo.cache import OptimizedFunction
from minidynamo.cli.target import BadTarget, Target, raised
from minidynamo.debug.frames import begins_at, code_of
from minidynamo.debug.listing import bytecode_lines, lift_rows, prologue_length
from minidynamo.debug.observe import Attempt, Compilation, Observed, observe
from minidynamo.debug.report import guard_lines, guards_text
from minidynamo.debug.show import make_console, table
from minidynamo.eval_frame import optimize
from minidynamo.exc import InvalidBackend
from minidynamo.rules.trace_rules import frame_policy


@dataclass(frozen=True, slots=True)
class Traced:
    """One observed call: the optimized object (which keeps the entries alive), its code, what happened, where
    to print."""

    optimized: Any
    code: types.CodeType
    seen: Observed
    console: Console

    @property
    def compilation(self) -> Compilation | None:
        """The compilation of the function itself; None when there was none."""
        return self.seen.of(self.code)

    def show(self, names: Iterable[str]) -> None:
        """Print the named stages."""
        for name in names:
            self.console.rule(f"{name}: {STAGES[name].doc}", align="left")
            STAGES[name].show(self)
            self.console.print()

    def nothing(self) -> None:
        """Print why there is nothing to show."""
        policy = frame_policy(self.code)
        skips = [f"{s.text} [{s.code}]; {s.hint}" for s in self.seen.skipped]
        reasons = skips if policy is None else [f"{policy}; {policy.hint}"]
        self.console.print(
            f"not compiled: {' / '.join(dict.fromkeys(reasons)) or 'the function was not reached'}"
        )


def traced_call(
    target: Target,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backend: str,
    console: Console | None = None,
) -> Traced:
    """Call the target once, compiled by `backend` apart from all other entries. Raises BadTarget: it raises,
    it has no Python code, no such backend."""
    try:
        optimized = optimize(backend, isolate=True)(plain(target.fn))
        code = code_of(optimized)
    except (InvalidBackend, TypeError) as error:
        raise BadTarget(str(error)) from error
    with observe() as seen:
        try:
            optimized(*args, **kwargs)
        except (Exception, SystemExit) as error:
            raise BadTarget(f"{target.label} raised {raised(error)}") from error
    return Traced(optimized, code, seen, make_console() if console is None else console)


def plain(fn: Any) -> Any:
    """The user's own function below `optimize`, bound where it was bound."""
    if isinstance(fn, types.MethodType) and isinstance(fn.__func__, OptimizedFunction):
        return types.MethodType(plain(fn.__func__), fn.__self__)
    return plain(fn.__wrapped__) if isinstance(fn, OptimizedFunction) else fn


def show_lift(traced: Traced) -> None:
    """The canonical instructions beside the original ones."""
    traced.console.print(lift_table(traced.code, traced.code.co_qualname))


def lift_table(code: types.CodeType, title: str) -> Table:
    """Every original instruction with its canonical ones; in a resume function also where it stood in the
    original."""
    shifted = prologue_length(code) > 0
    headings = (
        "line",
        "source",
        "offset",
        *(("in the original",) if shifted else ()),
        "bytecode",
        "canonical",
    )
    cells = (
        (
            shown(row.line),
            row.source,
            shown(row.offset),
            *((("prologue" if row.origin is None else row.origin),) if shifted else ()),
            row.original,
            "\n".join(row.canonical),
        )
        for row in lift_rows(code)
    )
    return table(title, headings, cells)


def shown(value: int | None) -> str:
    """A number, or nothing."""
    return "" if value is None else str(value)


def show_step(traced: Traced) -> None:
    """The symbolic stack before and after every instruction, of every attempt."""
    about = traced.compilation
    if about is None or not about.attempts:
        traced.nothing()
        return
    count = len(about.attempts)
    for number, attempt in enumerate(about.attempts, 1):
        traced.console.print(step_table(attempt, f"attempt {number} of {count}"))
        if number < count:
            traced.console.print(
                f"stopped: {attempt.stopped}; traced again, with the decision to end the graph there\n"
            )
    traced.console.print(ending(about))


def step_table(attempt: Attempt, title: str) -> Table:
    """One row an instruction; those of inlined calls are indented. The top of the stack is on the right."""
    cells, last = [], None
    for step in attempt.steps:
        line, last = (step.line if step.line != last else None), step.line
        name = f"{'  ' * step.depth}{step.instruction}"
        cells.append((shown(line), name, " | ".join(step.before), step.stopped or " | ".join(step.after)))
    return table(title, ("line", "instruction", "stack before", "stack after"), cells)


def ending(about: Compilation) -> str:
    """How the last attempt ended, in one line."""
    if about.capture is None:
        return f"not captured: {about.skipped}"
    reason = getattr(about.capture.exit, "reason", None)
    steps = f"{about.capture.steps} instructions executed"
    return f"{steps}, then return" if reason is None else f"{steps}, then the graph ends: {reason}"


def show_graph(traced: Traced) -> None:
    """The FX graph as a table."""
    about = traced.compilation
    graph = None if about is None or about.capture is None else about.capture.graph
    if graph is None:
        traced.nothing()
        return
    inputs = ", ".join(f"{i.name} = {i.source.describe()}" for i in graph.inputs)
    traced.console.print(f"{graph.ops} operators; inputs: {inputs or 'none'}")
    traced.console.print(graph_table(graph.module, ""))


def show_guards(traced: Traced) -> None:
    """The check_fn, one guard a line."""
    about = traced.compilation
    if about is None or about.made is None:
        traced.nothing()
        return
    traced.console.print(guards_text(guard_lines(about.made.payload.check)), soft_wrap=True)


def show_code(traced: Traced) -> None:
    """The emitted statements, then the new bytecode beside the original."""
    about = traced.compilation
    if about is None or about.made is None:
        traced.nothing()
        return
    show_statements(traced)
    traced.console.print()
    traced.console.print(bytecode_table(traced.code, about.made.code))


def show_statements(traced: Traced) -> None:
    """The emitted statements."""
    about = traced.compilation
    assert about is not None and about.made is not None
    traced.console.print(about.made.payload.output_text, soft_wrap=True)


def bytecode_table(old: types.CodeType, new: types.CodeType) -> Table:
    """Two code objects side by side: line, offset, instruction."""
    left, right = bytecode_lines(old), bytecode_lines(new)
    headings = (f"original: {len(left)} instructions", f"new: {len(right)} instructions")
    return table("bytecode", headings, zip_longest(left, right, fillvalue=""))


def show_resume(traced: Traced) -> None:
    """Each resume function: a prologue, then the original bytecode."""
    about = traced.compilation
    resumes = () if about is None or about.output is None else about.output.resumes
    for code in dict.fromkeys(resumes):
        parameters = ", ".join(code.co_varnames[: code.co_argcount])
        title = f"{code.co_qualname} from line {begins_at(code)}, called with ({parameters})"
        traced.console.print(lift_table(code, title))
        traced.console.print()
    if not resumes:
        traced.console.print("no resume function: the graph did not break")


@dataclass(frozen=True, slots=True)
class Stage:
    """A row: what `--stage` shows."""

    doc: str
    show: Callable[[Traced], None]


STAGES: dict[str, Stage] = {
    "lift": Stage("bytecode to canonical instructions", show_lift),
    "step": Stage("the instructions executed over symbolic values", show_step),
    "graph": Stage("what the backend compiles", show_graph),
    "guards": Stage("when the result may be used again", show_guards),
    "code": Stage("what runs instead of the original", show_code),
    "resume": Stage("the functions that go on after a graph break", show_resume),
}
