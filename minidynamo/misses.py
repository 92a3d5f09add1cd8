"""What is remembered per code object, and what is said when no entry fits: recompiles, the limit, failed graphs."""

from __future__ import annotations

import itertools
import types
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from . import config, events
from .cache import CacheEntry, OptimizeContext
from .compile_frame import FrameInput
from .events import Where
from .exc import MinidynamoWarning, RecompileError
from .guards.check_fn import flat_names
from .guards.diagnose import Failure, explain_failure, explain_failures
from .guards.rows import GuardRow
from .pycode.identity import IdentityCache
from .pycode.module_call import is_module_call
from .pycode.resume import is_resume_code
from .reasons import LIMIT_HIT, RERUN, why
from .translate.loops import goes_round
from .translate.reloads import load_failed

TOLD_ENTRIES = 16  # the newest entries of a function, for the limit's warning


@dataclass(slots=True)
class Seen:
    """What is remembered per code object (by identity, weakly)."""

    frame_id: int
    compiles: int = 0
    fruitless: int = 0
    warned: tuple[int, ...] = ()
    called: tuple[int, ...] = ()  # objects that have called it once under "eager_then_compile"
    failures: tuple[Failure, ...] = ()  # of the body of a loop, the newest
    causes: tuple[events.GuardFailure, ...] = ()  # the newest, with somebody listening


_seen: IdentityCache[Seen] = IdentityCache()
_frame_ids = itertools.count()
_told_of_modules = False


def forget() -> None:
    """Drop everything remembered about code objects; part of `reset`."""
    global _frame_ids, _told_of_modules
    _seen.clear()
    _frame_ids = itertools.count()
    _told_of_modules = False


def seen(code: types.CodeType) -> Seen:
    return _seen.get(code) or _seen.set(code, Seen(next(_frame_ids)))


def warn(where: Where, message: str) -> None:
    """One warning at the user's function."""
    warnings.warn_explicit(message, MinidynamoWarning, where.filename, where.line)


def unguarded_modules(where: Where) -> None:
    """Something was compiled with `config.guard_nn_modules` off: one warning until `reset`."""
    global _told_of_modules
    if config.guard_nn_modules or _told_of_modules:
        return
    _told_of_modules = True
    warn(
        where,
        "minidynamo.config.guard_nn_modules is False: changes inside of modules (attributes, training mode, submodules, hooks) are "
        "not seen by what is compiled; call minidynamo.reset() after one, or leave the option True",
    )


def recompiles(frame: FrameInput, about: Seen, entries: list[CacheEntry], ctx: OptimizeContext) -> None:
    """No entry fitted. Work out why, for whoever wants to know."""
    told = getattr(ctx, "guard_fail_fn", None)
    forbids = "unset config.error_on_recompile" if config.error_on_recompile else FORBIDDING.get(frame.stance)
    in_rounds = goes_round(frame.code)
    if told is None and forbids is None and not in_rounds and not events.listening():
        return
    found = [(e.guarded.compile_id, explain_failure(e.guarded.check, frame.values)) for e in entries]
    failures = [(name, failure) for name, failure in found if failure is not None]
    if failures and in_rounds:
        about.failures = (*about.failures, failures[-1][1])[-ROUNDS:]
    if told is not None or events.listening():
        rows = tuple((name, f.part, f.expected, f.actual) for name, f in failures)
        closest, about.causes = closest_entry(frame, entries) if events.listening() else ("", ())
        event = events.Recompile(
            f"{about.frame_id}/{about.compiles}",
            frame.where,
            rows,
            closest,
            about.causes,
            *signature(frame),
        )
        events.emit(event)
        if told is not None:
            try:
                told(event)
            except Exception as error:  # the user's own callback: the program goes on
                warn(
                    frame.where,
                    f"guard_fail_fn raised {type(error).__name__}: {error}; the compilation goes on",
                )
    if forbids is not None:
        reasons = "; ".join(f.message() for _, f in failures) or "its entries are for other options"
        raise RecompileError(
            f"{frame.where}: {frame.code.co_qualname} would be compiled again: {reasons}\n"
            f"  to do: keep that value constant, pass it as a tensor, or {forbids}"
        )


FORBIDDING = {"fail_on_recompile": "leave the stance 'fail_on_recompile'"}


def may_compile(frame: FrameInput, about: Seen, entries: list[CacheEntry], ctx: OptimizeContext) -> bool:
    """Whether the frame's stance, which is not the default, lets it be compiled; `entries` are those that did not fit.

    Raises RecompileError under "fail_on_recompile": with the cause, or for a frame with tensors that has no entry yet.
    """
    if frame.stance == "eager_then_compile":
        if entries or is_resume_code(frame.code) or id(ctx) in about.called:
            return True
        about.called += (id(ctx),)
    elif frame.stance in FORBIDDING:
        if entries:
            recompiles(frame, about, entries, ctx)
        elif any(map(holds_tensor, frame.values.locals.values())):
            raise RecompileError(
                f"{frame.where}: {frame.code.co_qualname} would be compiled: it has no entry yet\n"
                f"  to do: call it once before, or {FORBIDDING[frame.stance]}"
            )
    return False


def holds_tensor(value: Any, depth: int = 3) -> bool:
    """A tensor, a module, or a list, tuple or dict that has one not far below."""
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return True
    if depth == 0 or type(value) not in (list, tuple, dict):
        return False
    inner = value.values() if type(value) is dict else value
    return any(holds_tensor(each, depth - 1) for each in inner)


def signature(frame: FrameInput) -> tuple[tuple[str, ...], int, bool, bool, int]:
    """(parameters, how many are positional, resume function, call of a module, first line), as `events.Recompile` takes them."""
    code, called = frame.code, is_module_call(frame.code)
    if called:
        forward = getattr(type(frame.values.locals["self"]), "forward", None)
        code = getattr(forward, "__code__", code)
    begins = next((line for _, _, line in code.co_lines() if line is not None), code.co_firstlineno)
    return flat_names(code), code.co_argcount, is_resume_code(code), called, begins


def closest_entry(
    frame: FrameInput, entries: list[CacheEntry]
) -> tuple[str, tuple[events.GuardFailure, ...]]:
    """The entry with the fewest failing guards (the newest among equals), and those failures."""
    holding: set[GuardRow] = set()
    found = [
        (e.guarded.compile_id, explain_failures(e.guarded.check, frame.values, holding))
        for e in reversed(entries)
    ]
    return min((row for row in found if row[1]), key=lambda row: len(row[1]), default=("", ()))


def other_options(frame: FrameInput, about: Seen, others: list[CacheEntry], ctx: OptimizeContext) -> None:
    """The frame has entries, all of them for another backend or other options."""
    if not events.listening():
        return
    newest = others[-1]
    old, new = newest.guarded.backend, ctx.backend.name
    if _options(newest.key) != _options(ctx.key):
        old, new = (f"{name} ({_options(key)})" for name, key in ((old, newest.key), (new, ctx.key)))
    cause = events.GuardFailure(
        "OPTIONS", "", "", "backend", "other", "", ("name", ""), old, new if old != new else f"another {new}"
    )
    events.emit(
        events.Recompile(
            f"{about.frame_id}/{about.compiles}",
            frame.where,
            (),
            newest.guarded.compile_id,
            (cause,),
            *signature(frame),
        )
    )


def _options(key: Any) -> str:
    parts = [f"{name}={value!r}" for name, value in key.options]
    return ", ".join(parts if key.dynamic is None else [f"dynamic={key.dynamic}", *parts]) or "no options"


ROUNDS = 2  # recompiles of the body of a loop for one and the same thing before it is left to plain Python


def changes_in_rounds(about: Seen) -> Failure | None:
    """A frame goes on inside a loop, and what it is compiled for changes in each round: the last failure."""
    last = about.failures
    return last[-1] if len(last) == ROUNDS and len({failure.where for failure in last}) == 1 else None


def limit_of(entries: list[CacheEntry], ctx: OptimizeContext) -> str | None:
    """The option whose limit these entries of one code object reach: of those that `ctx` made, or of all; None if neither."""
    if sum(e.key is ctx.key and e.owner_ctx_id == id(ctx) for e in entries) >= config.cache_size_limit:
        return "cache_size_limit"
    return "accumulated_recompile_limit" if len(entries) >= config.accumulated_recompile_limit else None


def limit_reached(
    frame: FrameInput, about: Seen, entries: list[CacheEntry], ctx: OptimizeContext, option: str
) -> None:
    """Decision 26: entries are still tried; a miss runs plain Python and its callees are not compiled. Told once."""
    limit = getattr(config, option)
    if id(ctx) in about.warned:
        return
    about.warned += (id(ctx),)
    found = [explain_failure(entry.guarded.check, frame.values) for entry in entries[-TOLD_ENTRIES:]]
    failures = [failure for failure in found if failure is not None]
    last = failures[-1] if failures else None
    same = [failure for failure in failures if last is not None and failure.where == last.where]
    values = tuple(dict.fromkeys([*(f.expected for f in same), *(f.actual for f in same)]))
    guard = last.part if last is not None else "(none: entries for other options)"
    if events.listening():
        events.emit(events.LimitHit(frame.where, limit, guard, values, about.causes, option))
    kept = f"{last.where} kept changing: {', '.join(values)}" if last is not None else "no entry fits"
    warn(
        frame.where,
        f"{frame.code.co_qualname} was compiled {limit} times ({option}); "
        f"calls that fit no entry run as plain Python from now on. Last failing guard: {guard}; {kept}. "
        f"To do: {LIMIT_HIT.hint}.",
    )


def rerun_succeeded(entry: CacheEntry, error: str) -> None:
    """The graph raised `error` (type and message), plain Python did not: decision 17."""
    if (
        load_failed(entry.code) or entry.guarded.covered
    ):  # no graph failed, or a handler of the program's took it
        return
    where = entry.guarded.where
    reason = why(RERUN, error=error.splitlines()[0])
    warn(where, f"{entry.guarded.original_name}: {reason}; {reason.hint}")
