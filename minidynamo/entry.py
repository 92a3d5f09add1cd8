"""Entries of the cache: what the stages of a compilation made, put together for the native cache and for reports."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import config, events, markers
from .backends.calling import input_text
from .backends.registry import Backend
from .cache import EntryHandle, Validity
from .events import Where
from .first_run import compare_first_run
from .graph.listing import Listing
from .graph.output_graph import CapturedGraph
from .graph.tape import Template, Untold
from .guards.check_fn import CheckFn, CheckFunctionManager
from .guards.guard import Guard
from .pycode.expr import source
from .pycode.resume import is_resume_code
from .reasons import Why
from .sources import FrameValues
from .translate.capture import Facts
from .translate.direct import Recipe
from .translate.emit import Output


def where_of(code: types.CodeType) -> Where:
    """The place of a function."""
    return Where(code.co_filename, code.co_firstlineno, code.co_qualname)


@dataclass(frozen=True, slots=True)
class FrameInput:
    """What the native hook hands over: code, and the values that are bound before the first instruction. `stance`: see there."""

    code: types.CodeType
    values: FrameValues
    stance: str = "default"

    @property
    def where(self) -> Where:
        return where_of(self.code)


@dataclass(frozen=True, slots=True)
class Options:
    """What a compilation depends on besides the frame: part of the CompileKey, whether breaks are allowed, and the entries that the
    frame has already."""

    backend: Backend
    one_graph: bool
    compile_id: str
    earlier: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of an entry: text and numbers for reports, the CheckFn that explains failures, and what the next compilation of the
    code may begin with. It keeps nothing alive that the entry calls.

    template: None where no compilation may begin with it
    guard_nn_modules, marks: that option, and the number of marks, when the entry was made
    """

    compile_id: str
    check: CheckFn
    graph: Listing | None
    ops: int
    backend: str
    seconds: float
    output: Output
    code: types.CodeType
    facts: Facts
    template: Template | None
    guard_nn_modules: bool
    marks: int

    @property
    def where(self) -> Where:
        """The function."""
        return where_of(self.code)

    @property
    def original_name(self) -> str:
        """Its qualified name."""
        return self.code.co_qualname

    @property
    def break_(self) -> tuple[Why, Where] | None:
        """Why and where its graph ends before the function does."""
        end = self.facts.break_
        return None if end is None else end[:2]

    @property
    def exit(self) -> str:
        """How the frame leaves the graph."""
        return "return" if self.facts.break_ is None else f"break: {self.facts.break_[0]}"

    @property
    def covered(self) -> bool:
        """Operators lie in try or with blocks."""
        return self.facts.covered

    @property
    def resumes(self) -> tuple[types.CodeType, ...]:
        """The resume functions that it may go on in."""
        return self.output.resumes

    @property
    def graph_text(self) -> str:
        """The FX graph as text; empty when nothing was captured."""
        return "" if self.graph is None else str(self.graph)

    @property
    def output_text(self) -> str:
        """The new code as Python-like statements."""
        return source(self.output.body)


@dataclass(frozen=True, slots=True)
class GuardedCode:
    """Transformed code with the check that says when it may be used, as the native cache takes it."""

    code: types.CodeType
    check_fn: Callable[..., Any]
    validity: Validity
    handles: tuple[EntryHandle, ...]
    owned: tuple[Any, ...]
    has_break: bool
    rerunnable: bool
    payload: Record
    direct: tuple[EntryHandle, tuple[int, ...] | None, Any] | None


@dataclass(frozen=True, slots=True)
class Made:
    """One compilation before it is put together: what `finish` takes."""

    graph: CapturedGraph | None
    output: Output
    code: types.CodeType
    check: CheckFn
    validity: Validity
    facts: Facts


class Stages:
    """Times the stages of one compilation and emits an event per stage."""

    def __init__(self, inp: FrameInput, opts: Options) -> None:
        self.inp = inp
        self.opts = opts
        self.begin = self.last = time.perf_counter()

    def done(self, stage: str, **facts: int) -> None:
        now = time.perf_counter()
        if events.listening():
            events.emit(events.StageDone(self.opts.compile_id, stage, self.inp.where, now - self.last, facts))
        self.last = time.perf_counter()


def guards_for(guards: tuple[Guard, ...], inp: FrameInput, validity: Validity) -> CheckFunctionManager:
    return CheckFunctionManager(
        guards,
        inp.values,
        inp.code,
        validity,
        guard_nn_modules=config.guard_nn_modules,
        mode=config.guards,
    )


def may_run_twice(made: Made) -> bool:
    """Running the frame's code once more shows nothing and changes nothing."""
    graph = made.graph
    return made.facts.comparable and (
        graph is None or not (graph.mutates or graph.draws_random or graph.states)
    )


@contextlib.contextmanager
def given_inputs(output: Output, check: CheckFn, inp: FrameInput) -> Iterator[None]:
    """The code may be called meanwhile, which is not yet a cache entry's."""
    takers = [handle for handle in output.handles if handle.loaded]
    for handle in takers:
        handle.given = check.native.load(*check.arguments(inp.values)) if check.native is not None else None
    try:
        yield
    finally:
        for handle in takers:
            handle.given = None


def native_direct(output: Output) -> tuple[EntryHandle, tuple[int, ...] | None, Recipe] | None:
    """`direct` as the native cache takes it: inputs as flat argument indexes, or None: the guard program loads them."""
    if output.direct is None:
        return None
    handle, inputs, recipe = output.direct
    if all(isinstance(index, int) for index in inputs):
        return output.direct  # type: ignore[return-value]
    return (handle, None, recipe) if output.loaded else None


def finish(inp: FrameInput, opts: Options, made: Made, stages: Stages) -> GuardedCode:
    """The entry, as the native cache takes it."""
    output, check, facts = made.output, made.check, made.facts
    in_python = check.program.in_python() if check.program is not None else len(check.rows)
    stages.done("guards", rows=len(check.rows), in_python=in_python)
    if config.verify and may_run_twice(made) and output.rerunnable and facts.break_ is None:
        with given_inputs(output, check, inp):
            compare_first_run(inp.code, made.code, inp.values, facts.covered)
    guarded = GuardedCode(
        made.code,
        check.entry_point,
        made.validity,
        output.handles,
        output.owned,
        facts.break_ is not None,
        output.rerunnable,
        record(inp, opts, made, time.perf_counter() - stages.begin),
        native_direct(output),
    )
    check.forget_program()
    return guarded


def record(inp: FrameInput, opts: Options, made: Made, seconds: float) -> Record:
    """The report's view of a compilation; its event goes out here."""
    graph, output, check, end = made.graph, made.output, made.check, made.facts.break_
    about = Record(
        opts.compile_id,
        check,
        graph.listing if graph is not None else None,
        graph.ops if graph is not None else 0,
        opts.backend.name,
        seconds,
        dataclasses.replace(output, owned=()),
        made.code,
        made.facts,
        template_of(made, opts),
        config.guard_nn_modules,
        markers.changes(),
    )
    if events.listening():
        if end is not None:
            reason, where, opname = end
            events.emit(
                events.GraphBreak(about.compile_id, where, reason.code, reason.text, reason.hint, opname)
            )
        events.emit(
            events.Compiled(
                about.compile_id,
                about.where,
                is_resume_code(inp.code),
                about.ops,
                check.parts,
                about.graph_text,
                about.output_text,
                about.exit,
                seconds,
                about.backend,
                tuple(f"{row.path.describe()}: {check.expected.get(row, row.kind)}" for row in check.rows),
                events.Made(
                    inp.code,
                    made.code,
                    None if graph is None else graph.module,
                    () if graph is None else tuple(map(input_text, graph.inputs)),
                    made.validity,
                ),
            )
        )
    return about


def template_of(made: Made, opts: Options) -> Template | None:
    """What the next compilation of the code may begin with."""
    if made.graph is None or made.graph.template is None or made.facts.undoes or opts.backend.needs_meta:
        return None
    try:
        return made.graph.template()
    except Untold:
        return None
