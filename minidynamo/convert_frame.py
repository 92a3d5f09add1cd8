"""From a frame that missed the cache to a GuardedCode: the seven stages, and what happens when one of them fails."""

from __future__ import annotations

import itertools
import linecache
import os
import threading
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import config, events
from .backends.registry import Backend
from .cache import SKIP, SKIP_SUBTREE, CacheEntry, EntryHandle, OptimizeContext, Validity, cache_entries
from .events import Where
from .exc import BackendCompilerFailed, InternalError, MinidynamoWarning, RecompileError, Unsupported
from .guards.check_fn import CheckFn, CheckFunctionManager
from .guards.diagnose import Failure, explain_failure
from .guards.guard import Guard
from .pycode.expr import source
from .pycode.identity import IdentityCache
from .pycode.lift import lift
from .pycode.lower import assemble
from .pycode.resume import is_resume_code
from .pycode.verify import verify
from .reasons import BACKEND_FAILED, LIMIT_HIT, RERUN, SKIP_ARGUMENT, SKIP_INTERNAL, Why, why
from .rules.trace_rules import frame_policy, library_of
from .sources import FrameValues
from .translate.capture import Break, Capture
from .translate.emit import Output, emit
from .translate.plan import SkipFrame
from .translate.root import translate


@dataclass(frozen=True, slots=True)
class FrameInput:
    """What the native hook hands over: code, and the values that are bound before the first instruction."""

    code: types.CodeType
    values: FrameValues

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
    graph_text: str
    output_text: str
    ops: int
    exit: str
    break_: tuple[Why, Where] | None
    backend: str
    seconds: float
    resumes: tuple[types.CodeType, ...]


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


def call_backend(capture: Capture, opts: Options) -> tuple[Callable[..., Any] | None, tuple[Guard, ...]]:
    """Stage 3. The backend's callable and the guards that it asks for. Raises BackendCompilerFailed."""
    if capture.graph is None:
        return None, ()
    backend = opts.backend
    try:
        compiled = backend.compiler_fn(capture.graph.module, capture.graph.example_inputs)
    except Exception as error:
        raise BackendCompilerFailed(
            f"backend {backend.name!r} raised {type(error).__name__}: {error}\n"
            "  set minidynamo.config.suppress_errors = True to run such frames as plain Python"
        ) from error
    if not callable(compiled):
        raise BackendCompilerFailed(
            f"backend {backend.name!r} returned {type(compiled).__name__}, not a callable that takes the graph's inputs "
            "and returns a tuple of its outputs; return e.g. gm.forward"
        )
    return compiled, ()


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
    capture = translate(inp.values, inp.code)
    ops = capture.graph.ops if capture.graph is not None else 0
    stages.done("translate", steps=capture.steps, ops=ops, guards=len(capture.guards))
    if opts.one_graph and isinstance(capture.exit, Break):
        raise unsupported_error(inp.code.co_qualname, capture.exit.reason, capture.exit.cause)
    compiled, backend_guards = call_backend(capture, opts)
    stages.done("backend", ops=ops)
    output = emit(capture, inp.code, compiled)
    stages.done("emit", statements=len(output.body))
    code = assemble(inp.code, output.body)
    if config.verify:
        verify(code)
    stages.done("assemble", bytes=len(code.co_code))
    validity = Validity()
    check = CheckFunctionManager(
        capture.guards + backend_guards,
        inp.values,
        inp.code,
        validity,
        guard_nn_modules=config.guard_nn_modules,
    ).compile_check_fn()
    stages.done("guards", rows=len(check.rows))
    return GuardedCode(
        code,
        check.fn,
        validity,
        output.handles,
        output.owned,
        isinstance(capture.exit, Break),
        output.rerunnable,
        record(inp, opts, capture, output, check, time.perf_counter() - stages.begin),
    )


def record(inp: FrameInput, opts: Options, capture: Capture, output: Output, check: CheckFn, seconds: float) -> Record:
    """The report's view of a compilation; its event goes out here."""
    end = capture.exit
    made = Record(
        opts.compile_id,
        inp.where,
        inp.code.co_qualname,
        check,
        str(capture.graph.module.graph) if capture.graph is not None else "",
        source(output.body),
        capture.graph.ops if capture.graph is not None else 0,
        f"break: {end.reason}" if isinstance(end, Break) else "return",
        (end.reason, end.cause) if isinstance(end, Break) else None,
        opts.backend.name,
        seconds,
        output.resumes,
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
            )
        )
    return made


# --- failures and policy ---------------------------------------------------------------------------------------------

Answer = GuardedCode | int | None  # what the native hook takes: an entry, a mark, or None (plain Python this time)
PLAIN_BELOW: Any = NotImplemented  # plain Python this time, and nothing below this frame is compiled
FRUITLESS = 4  # traces of a function without any tensor operation before it is marked


@dataclass(slots=True)
class Seen:
    """What is remembered per code object (by identity, weakly)."""

    frame_id: int
    compiles: int = 0
    fruitless: int = 0
    warned: set[int] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)


_seen: IdentityCache[Seen] = IdentityCache()
_frame_ids = itertools.count()
_lock = threading.RLock()


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def forget() -> None:
    """Drop everything remembered about code objects; part of `reset`."""
    global _frame_ids
    _seen.clear()
    _frame_ids = itertools.count()


def seen(code: types.CodeType) -> Seen:
    return _seen.get(code) or _seen.set(code, Seen(next(_frame_ids)))


def convert_frame_assert(compiler_fn: Backend, one_graph: bool = True) -> Callable[[FrameInput, OptimizeContext], Answer]:
    """The strict form: a graph break or a frame that may not be compiled raises Unsupported when `one_graph`."""

    def _convert_frame_assert(frame: FrameInput, ctx: OptimizeContext) -> Answer:
        policy = frame_policy(frame.code)
        if policy is not None:
            return _skip(frame, SkipFrame(policy), one_graph)
        about = seen(frame.code)
        others = [e for e in cache_entries(frame.code) if e.key is ctx.key]
        if others:
            _recompiles(frame, about, others)
        if sum(e.owner_ctx_id == id(ctx) for e in others) >= config.cache_size_limit:
            _limit(frame, about, ctx)
            return PLAIN_BELOW
        compile_id = f"{about.frame_id}/{about.compiles}"
        try:
            with _lock:
                made = compile_frame(frame, Options(compiler_fn, one_graph, compile_id))
        except SkipFrame as skip:
            if skip.mark:
                return _skip(frame, skip, one_graph)
            about.fruitless += 1
            return _skip(frame, SkipFrame(skip.reason, skip.where, about.fruitless >= FRUITLESS), one_graph)
        about.compiles += 1
        return made

    return _convert_frame_assert


def convert_frame(compiler_fn: Backend, one_graph: bool = False) -> Callable[[FrameInput, OptimizeContext], Answer]:
    """The form that falls back: what cannot be compiled runs as plain Python, and nothing of the user's is lost.

    Raises what the user asked to see: Unsupported (`one_graph`), RecompileError (`config.error_on_recompile`),
    BackendCompilerFailed (unless `config.suppress_errors`), InternalError (`config.internal_errors = "raise"`, or
    `one_graph`).
    """
    inner = convert_frame_assert(compiler_fn, one_graph)

    def _convert_frame(frame: FrameInput, ctx: OptimizeContext) -> Answer:
        try:
            return inner(frame, ctx)
        except RecompileError:
            raise
        except Unsupported as stop:
            if one_graph:
                raise
            reason = stop.reason if isinstance(stop.reason, Why) else why(SKIP_ARGUMENT, error=str(stop))
            return _skip(frame, SkipFrame(reason), one_graph)
        except BackendCompilerFailed as error:
            if one_graph or not config.suppress_errors:
                raise
            cause = type(error.__cause__).__name__ if error.__cause__ is not None else "an error"
            reason = why(BACKEND_FAILED, backend=compiler_fn.name, error=cause)
            warn(frame.where, f"{error}".splitlines()[0] + "; the function runs as plain Python")
            return _skip(frame, SkipFrame(reason), one_graph)
        except Exception as error:
            return _internal(frame, error, one_graph)

    return _convert_frame


def _skip(frame: FrameInput, skip: SkipFrame, one_graph: bool) -> Answer:
    where = skip.where or frame.where
    if one_graph:
        raise unsupported_error(frame.code.co_qualname, skip.reason, where)
    if events.listening():
        events.emit(events.Skipped(frame.where, skip.reason.code, skip.reason.text, skip.reason.hint))
    if not skip.mark:
        return None
    library = library_of(frame.code)
    return SKIP_SUBTREE if library in SUBTREES else SKIP


SUBTREES = ("minidynamo", "importlib and other frozen modules")  # nothing below these is the user's


def _internal(frame: FrameInput, error: Exception, one_graph: bool) -> Answer:
    """minidynamo's own fault: the frame runs as plain Python with one warning, or raises where that was asked for."""
    text = f"{type(error).__name__}: {error}"
    if one_graph or config.internal_errors == "raise":
        raise InternalError(
            f"minidynamo failed on {frame.code.co_qualname} ({frame.where}): {text}\n"
            "  this is a fault of minidynamo; please report it with the function above"
        ) from error
    warn(
        frame.where,
        f"minidynamo failed on {frame.code.co_qualname} ({text}); it runs as plain Python. "
        "Please report this; minidynamo.config.internal_errors = 'raise' shows the traceback.",
    )
    return _skip(frame, SkipFrame(why(SKIP_INTERNAL, error=text)), one_graph)


def warn(where: Where, message: str) -> None:
    """One warning at the user's function."""
    warnings.warn_explicit(message, MinidynamoWarning, where.filename, where.line)


def unsupported_error(function: str, reason: Why, where: Where) -> Unsupported:
    """What `nopython=True` raises: where, the source line, what was met, what to do."""
    line = linecache.getline(where.filename, where.line).strip()
    shown = f"\n    {line}" if line else ""
    inside = "" if where.function == function else f" (inside {where.function}, which {function} calls)"
    error = Unsupported(
        f"{where}{inside}: {reason.text} [{reason.code}]{shown}\n  to do: {reason.hint}\n"
        f"  {function} was asked to be one graph (nopython/fullgraph); without that it would run with a graph break here",
        reason,
    )
    error.where = where
    return error


# --- misses ------------------------------------------------------------------------------------------------------------


def _recompiles(frame: FrameInput, about: Seen, entries: list[CacheEntry]) -> None:
    """No entry fitted. Work out why, for the limit's warning and for whoever listens."""
    found = [(e.guarded.compile_id, explain_failure(e.guarded.check, frame.values)) for e in entries]
    failures = [(name, failure) for name, failure in found if failure is not None]
    if failures:
        about.failures.append(failures[-1][1])
        del about.failures[:-16]
    if events.listening():
        rows = tuple((name, f.part, f.expected, f.actual) for name, f in failures)
        events.emit(events.Recompile(f"{about.frame_id}/{about.compiles}", frame.where, rows))
    if config.error_on_recompile:
        reasons = "; ".join(f.message() for _, f in failures) or "its entries are for other options"
        raise RecompileError(
            f"{frame.where}: {frame.code.co_qualname} would be compiled again: {reasons}\n"
            "  to do: keep that value constant, pass it as a tensor, or unset config.error_on_recompile"
        )


def _limit(frame: FrameInput, about: Seen, ctx: OptimizeContext) -> None:
    """Decision 26: entries are still tried; a miss runs plain Python and its callees are not compiled. Told once."""
    if id(ctx) in about.warned:
        return
    about.warned.add(id(ctx))
    last = about.failures[-1] if about.failures else None
    same = [f for f in about.failures if last is not None and f.where == last.where]
    values = tuple(dict.fromkeys([*(f.expected for f in same), *(f.actual for f in same)]))
    guard = last.part if last is not None else "(none: entries for other options)"
    if events.listening():
        events.emit(events.LimitHit(frame.where, config.cache_size_limit, guard, values))
    kept = f"{last.where} kept changing: {', '.join(values)}" if last is not None else "no entry fits"
    warn(
        frame.where,
        f"{frame.code.co_qualname} was compiled {config.cache_size_limit} times (cache_size_limit); "
        f"calls that fit no entry run as plain Python from now on. Last failing guard: {guard}; {kept}. "
        f"To do: {LIMIT_HIT.hint}.",
    )


def rerun_succeeded(entry: CacheEntry, error: str) -> None:
    """The graph raised, plain Python did not: decision 17."""
    where = entry.guarded.where
    reason = why(RERUN, error=error)
    warn(where, f"{entry.guarded.original_name}: {reason}; {reason.hint}")
