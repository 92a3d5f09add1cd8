"""What the native hook calls for a frame that no entry fits: policy, the compilation, and what happens when it fails."""

from __future__ import annotations

import functools
import os
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

from . import config, events
from .backends.registry import Backend
from .cache import SKIP, SKIP_SUBTREE, OptimizeContext, cache_entries
from .compile_frame import FrameInput, GuardedCode, Options, compile_frame
from .exc import BackendCompilerFailed, InternalError, RecompileError, Unsupported
from .guards.check_fn import flat_names
from .misses import (
    changes_in_rounds,
    limit_of,
    limit_reached,
    may_compile,
    other_options,
    recompiles,
    seen,
    unguarded_modules,
    warn,
)
from .pycode.module_call import is_module_call
from .pycode.resume import is_resume_code
from .reasons import (
    BACKEND_FAILED,
    SKIP_ARGUMENT,
    SKIP_INTERNAL,
    SKIP_LIBRARY,
    SKIP_LOOP,
    SKIP_NO_TENSORS,
    Why,
    unsupported_error,
    why,
)
from .rules.trace_rules import frame_policy, library_of, nothing_below
from .sources import check_local_name
from .translate.plan import SkipFrame

Answer = (
    GuardedCode | int | None
)  # what the native hook takes: an entry, a mark, or None (plain Python this time)
PLAIN_BELOW: Any = NotImplemented  # plain Python this time, and nothing below this frame is compiled
FRUITLESS = 4  # traces of a function without any tensor operation before it is marked


_lock = threading.RLock()


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def convert_frame_assert(
    compiler_fn: Backend, one_graph: bool = True
) -> Callable[[FrameInput, OptimizeContext], Answer]:
    """The strict form: a graph break or a frame that may not be compiled raises Unsupported when `one_graph`."""
    return functools.partial(_convert_frame_assert, compiler_fn, one_graph)


def convert_frame(
    compiler_fn: Backend, one_graph: bool = False
) -> Callable[[FrameInput, OptimizeContext], Answer]:
    """The form that falls back: what cannot be compiled runs as plain Python, and nothing of the user's is lost.

    Raises what the user asked to see: Unsupported (`one_graph`), RecompileError (`config.error_on_recompile`),
    BackendCompilerFailed (unless `config.suppress_errors`), InternalError (`config.internal_errors = "raise"`, or
    `one_graph`).
    """
    return functools.partial(convert, compiler_fn, one_graph)


def _convert_frame_assert(
    compiler_fn: Backend, one_graph: bool, frame: FrameInput, ctx: OptimizeContext
) -> Answer:
    policy = frame_policy(frame.code)
    if policy is not None:
        return _skip(frame, SkipFrame(policy), one_graph)
    for name in flat_names(frame.code):
        check_local_name(name)
    about = seen(frame.code)
    entries = cache_entries(frame.code)
    others = [e for e in entries if e.key is ctx.key]
    if frame.stance != "default" and not may_compile(frame, about, others, ctx):
        return None
    limit = limit_of(entries, ctx)
    if limit and id(ctx) in about.warned:
        return PLAIN_BELOW
    if others:
        recompiles(frame, about, others, ctx)
        changing = changes_in_rounds(about)
        if changing is not None:
            return _skip(frame, SkipFrame(why(SKIP_LOOP, guard=changing.part)), one_graph)
    elif entries:
        other_options(frame, about, entries, ctx)
    if limit:
        limit_reached(frame, about, others, ctx, limit)
        return PLAIN_BELOW
    compile_id = f"{about.frame_id}/{about.compiles}"
    try:
        with _lock:
            earlier = tuple([entry.guarded for entry in others])
            made = compile_frame(frame, Options(compiler_fn, one_graph, compile_id, earlier))
    except SkipFrame as skip:
        if skip.mark:
            return _skip(frame, skip, one_graph)
        about.fruitless += 1
        mark = about.fruitless >= FRUITLESS and not one_graph  # (other values may have operators)
        return _skip(frame, SkipFrame(skip.reason, skip.where, mark), one_graph)
    about.compiles += 1
    unguarded_modules(frame.where)
    return made


def convert(compiler_fn: Backend, one_graph: bool, frame: FrameInput, ctx: OptimizeContext) -> Answer:
    """What `convert_frame(compiler_fn, one_graph)` does with a frame."""
    try:
        return _convert_frame_assert(compiler_fn, one_graph, frame, ctx)
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
    except (
        RecursionError
    ):  # the program has nearly used up its stack: this call runs plain Python, which raises by itself
        return None
    except Exception as error:
        return _internal(frame, error, one_graph)


def _skip(frame: FrameInput, skip: SkipFrame, one_graph: bool) -> Answer:
    where = skip.where or frame.where
    if skip.reason.code == SKIP_LIBRARY.code and library_of(frame.code) == "minidynamo":
        return SKIP_SUBTREE  # what emitted code calls: no part of the program
    if one_graph and skip.reason.is_own_error():
        return PLAIN_BELOW  # the caller is to get the program's own exception, not one about graphs
    if one_graph and skip.reason.code == SKIP_NO_TENSORS.code:  # what has no operator has no break either
        return SKIP_SUBTREE if skip.mark else PLAIN_BELOW
    if one_graph:
        raise unsupported_error(frame.code.co_qualname, skip.reason, where)
    if events.listening() and is_news(frame.code, skip.reason):
        events.emit(events.Skipped(frame.where, skip.reason.code, skip.reason.text, skip.reason.hint))
    if not skip.mark:
        return None
    return SKIP_SUBTREE if nothing_below(frame.code) else SKIP


def is_news(code: types.CodeType, reason: Why) -> bool:
    """Whether a report is to tell that a frame is not compiled: not of the call of a module, whose forward is a frame by itself, not of
    our own code, nor that what is left of a function behind a break computes nothing with tensors."""
    if is_module_call(code) or library_of(code) == "minidynamo":
        return False
    return reason.reason is not SKIP_NO_TENSORS or not is_resume_code(code)


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
        "Please report this; minidynamo.config.internal_errors = 'raise' raises it, minidynamo.config.verbose = True shows "
        "the traceback." + (f"\n{''.join(traceback.format_exception(error))}" if config.verbose else ""),
    )
    return _skip(frame, SkipFrame(why(SKIP_INTERNAL, error=text)), one_graph)
