"""One compilation: seven stages, each a value to a value. Nothing here touches globals or the cache."""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from . import config, events
from .backends.contract import guards_of, prepared
from .backends.registry import Backend
from .cache import EntryHandle, Validity
from .events import Where
from .exc import BackendCompilerFailed
from .first_run import compare_first_run
from .graph.listing import Listing
from .graph.output_graph import CapturedGraph, GraphInput
from .graph.state_keys import Key
from .graph.undo import undoing
from .graph.wrappers import is_wrapper_class
from .guards.check_fn import CheckFn, CheckFunctionManager
from .guards.guard import Guard
from .pycode.expr import Stmt, source
from .pycode.lift import lift, unlift
from .pycode.lower import assemble
from .pycode.resume import is_resume_code
from .reasons import Why, unsupported_error
from .sources import FrameValues
from .translate.capture import Break, Capture, Return
from .translate.direct import Recipe
from .translate.emit import Output, emit
from .translate.plan import SkipFrame
from .translate.root import translate


@dataclass(frozen=True, slots=True)
class FrameInput:
    """What the native hook hands over: code, and the values that are bound before the first instruction. `stance`: see there."""

    code: types.CodeType
    values: FrameValues
    stance: str = "default"

    @property
    def where(self) -> Where:
        return Where(self.code.co_filename, self.code.co_firstlineno, self.code.co_qualname)


@dataclass(frozen=True, slots=True)
class Options:
    """What a compilation depends on besides the frame: part of the CompileKey, and whether breaks are allowed."""

    backend: Backend
    one_graph: bool
    compile_id: str


@dataclass(frozen=True, slots=True)
class Record:
    """What reports know of an entry: text and numbers, and the CheckFn that explains failures."""

    compile_id: str
    where: Where
    original_name: str
    check: CheckFn
    graph: Listing | None
    body: tuple[Stmt, ...]
    ops: int
    exit: str
    break_: tuple[Why, Where] | None
    backend: str
    seconds: float
    resumes: tuple[types.CodeType, ...]
    covered: bool

    @property
    def graph_text(self) -> str:
        """The FX graph as text; empty when nothing was captured."""
        return "" if self.graph is None else str(self.graph)

    @property
    def output_text(self) -> str:
        """The new code as Python-like statements."""
        return source(self.body)


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


def call_backend(capture: Capture, opts: Options) -> tuple[Callable[..., Any] | None, tuple[Guard, ...]]:
    """Stage 3. The backend's callable and the guards that it asks for. Raises BackendCompilerFailed."""
    graph = capture.graph
    if graph is None:
        return None, ()
    undo = undoing(graph) if capture.undoes else None
    if opts.backend.needs_meta:
        with prepared(graph, opts.compile_id) as context:
            compiled = run_backend(opts.backend, graph)
            guards = guards_of(context)
    else:
        compiled, guards = run_backend(opts.backend, graph), ()
    again = capture.undoes or not (graph.mutates or graph.draws_random)
    mode = None if again else capture.mode_outside
    if graph.states or mode is not None and mode is not torch.is_grad_enabled():
        compiled = with_states(compiled, graph.states, mode)
    if undo is not None:
        compiled = undo(compiled)
    return compiled, guards


def with_repro(
    capture: Capture, inp: FrameInput, opts: Options
) -> tuple[Callable[..., Any] | None, tuple[Guard, ...]]:
    """`call_backend`; when it fails, a script of the graph as the backend got it is left behind, and the error names it."""
    from .recording.reader import Unreadable
    from .recording.repro import failed_backend_script, write_beside

    graph = capture.graph
    if graph is None:
        return None, ()
    text = told = ""
    try:
        text = failed_backend_script(
            opts.compile_id, inp.where, opts.backend.name, graph.module, map(input_text, graph.inputs)
        )
    except Unreadable as why_not:
        told = f"no repro: {why_not}"
    try:
        return call_backend(capture, opts)
    except BackendCompilerFailed as error:
        error.args = (f"{error}\n  {told or write_beside(opts.compile_id, text)}",)
        raise


def run_backend(backend: Backend, graph: CapturedGraph) -> Callable[..., Any]:
    """What the backend makes of the graph. Raises BackendCompilerFailed."""
    before = [(key, key.get()) for key, _ in graph.states]
    try:
        compiled = backend.compiler_fn(graph.module, graph.example_inputs)
    except Exception as error:
        raise BackendCompilerFailed(
            f"backend {backend.name!r} raised {type(error).__name__}: {error}\n"
            "  set minidynamo.config.suppress_errors = True to run such frames as plain Python"
        ) from error
    finally:
        for key, value in before:  # a backend may run the graph
            key.put(value)
    if not callable(compiled):
        raise BackendCompilerFailed(
            f"backend {backend.name!r} returned {type(compiled).__name__}, not a callable that takes the graph's inputs "
            "and returns a tuple of its outputs; return e.g. gm.forward"
        )
    return compiled


def with_states(
    compiled: Callable[..., Any], states: tuple[tuple[Key, Any], ...], mode: bool | None
) -> Callable[..., Any]:
    """`compiled`, after which torch's state is as the program leaves it, whatever the backend made of the graph. When it raises the
    state is what it was before, as if the frame had not run, and the grad mode is `mode`, if that is not None: the `with` blocks
    of a frame that is not run again restore it."""

    def run(*inputs: Any) -> Any:
        before = [(key, key.get()) for key, _ in states]
        try:
            result = compiled(*inputs)
        except BaseException:
            for key, value in before:
                key.put(value)
            if mode is not None:
                torch._C._set_grad_enabled(mode)
            raise
        for key, value in states:
            key.put(value)
        return result

    return run


def may_run_twice(capture: Capture) -> bool:
    """Running the frame's code once more shows nothing and changes nothing."""
    graph = capture.graph
    return capture.comparable and (graph is None or not (graph.mutates or graph.draws_random or graph.states))


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
    indexes = tuple(index for index in inputs if isinstance(index, int))
    if len(indexes) == len(inputs):
        return handle, indexes, recipe
    return (handle, None, recipe) if output.loaded else None


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


def compile_frame(inp: FrameInput, opts: Options) -> GuardedCode:
    """One compilation, each line a value to a value. Raises SkipFrame, Unsupported (one_graph), BackendCompilerFailed."""
    stages = Stages(inp, opts)
    ir = lift(inp.code)
    stages.done("lift", instructions=len(ir.instructions))
    capture = translate(inp.values, inp.code, for_compiler=opts.backend.needs_meta)
    try:
        ops = capture.graph.ops if capture.graph is not None else 0
        stages.done("translate", steps=capture.steps, ops=ops, guards=len(capture.guards))
        if opts.one_graph and isinstance(capture.exit, Break):
            if capture.exit.reason.is_own_error():
                raise SkipFrame(capture.exit.reason, capture.exit.cause, mark=False)
            raise unsupported_error(inp.code.co_qualname, capture.exit.reason, capture.exit.cause)
        try:
            compiled, backend_guards = (
                with_repro(capture, inp, opts) if config.repro else call_backend(capture, opts)
            )
        except BackendCompilerFailed as error:
            error.args = (f"{inp.where}: {inp.code.co_qualname}: {error}",)
            raise
        stages.done("backend", ops=ops)
        output = emit(capture, inp.code, compiled)
        stages.done("emit", statements=len(output.body))
        code = assemble(inp.code, output.body)
        stages.done("assemble", bytes=len(code.co_code))
        validity = Validity()
        check = CheckFunctionManager(
            capture.guards + backend_guards,
            inp.values,
            inp.code,
            validity,
            guard_nn_modules=config.guard_nn_modules,
            mode=config.guards,
        ).compile_check_fn(output.loaded or None)
        in_python = check.program.in_python() if check.program is not None else len(check.rows)
        stages.done("guards", rows=len(check.rows), in_python=in_python)
        if (
            config.verify
            and may_run_twice(capture)
            and output.rerunnable
            and isinstance(capture.exit, Return)
        ):
            with given_inputs(output, check, inp):
                compare_first_run(inp.code, code, inp.values, capture.covered)
        made = GuardedCode(
            code,
            check.entry_point,
            validity,
            output.handles,
            output.owned,
            isinstance(capture.exit, Break),
            output.rerunnable,
            record(inp, opts, capture, output, check, time.perf_counter() - stages.begin, code, validity),
            native_direct(output),
        )
        check.forget_program()
        return made
    finally:
        capture.release()
        unlift(inp.code)


def record(
    inp: FrameInput,
    opts: Options,
    capture: Capture,
    output: Output,
    check: CheckFn,
    seconds: float,
    code: types.CodeType,
    validity: Validity,
) -> Record:
    """The report's view of a compilation; its event goes out here."""
    end = capture.exit
    made = Record(
        opts.compile_id,
        inp.where,
        inp.code.co_qualname,
        check,
        Listing(capture.graph.module.graph) if capture.graph is not None else None,
        output.body,
        capture.graph.ops if capture.graph is not None else 0,
        f"break: {end.reason}" if isinstance(end, Break) else "return",
        (end.reason, end.cause) if isinstance(end, Break) else None,
        opts.backend.name,
        seconds,
        output.resumes,
        capture.covered,
    )
    if events.listening():
        if isinstance(end, Break):
            events.emit(
                events.GraphBreak(
                    made.compile_id, end.cause, end.reason.code, end.reason.text, end.reason.hint, end.opname
                )
            )
        events.emit(
            events.Compiled(
                made.compile_id,
                made.where,
                is_resume_code(inp.code),
                made.ops,
                check.parts,
                made.graph_text,
                made.output_text,
                made.exit,
                seconds,
                made.backend,
                tuple(f"{row.path.describe()}: {check.expected.get(row, row.kind)}" for row in check.rows),
                events.Made(
                    inp.code,
                    code,
                    None if capture.graph is None else capture.graph.module,
                    () if capture.graph is None else tuple(map(input_text, capture.graph.inputs)),
                    validity,
                ),
            )
        )
    return made


def input_text(given: GraphInput) -> tuple[str, str, str]:
    """(name, where it comes from, Python text that makes a tensor with the same metadata, or a generator; no text for a wrapper)."""
    example = given.example
    if isinstance(example, torch.Generator):
        return given.name, given.source.describe(), f"torch.Generator({str(example.device)!r})"
    if is_wrapper_class(type(example)):
        return given.name, given.source.describe(), ""
    made = f"torch.empty_strided({tuple(example.shape)}, {tuple(example.stride())}, dtype={example.dtype}"
    made += f", device={str(example.device)!r}, requires_grad={example.requires_grad})"
    return given.name, given.source.describe(), made
