"""The public API: `optimize`, `compile`, `disable`, `reset`, `explain`, `cache_entries`."""

from __future__ import annotations

import contextlib
import difflib
import functools
import gc
import inspect
import os
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import torch

from . import config, events, logs
from .backends.registry import Backend, lookup_backend, with_options
from .cache import (
    CacheEntry,
    CompileKey,
    OptimizeContext,
    OptimizedFunction,
    reset_all,
    reset_code,
    set_convert_frame,
    set_rerun_callback,
)
from .cache import cache_entries as _entries_of_code
from .debug.frames import code_of, compiled_frames
from .markers import leave_out
from .optimized_module import OptimizedModule
from .reasons import SKIP_GENERATOR, SKIP_LIBRARY, unsupported_error, why

P = ParamSpec("P")
R = TypeVar("R")
GENERATOR_LIKE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_keys: weakref.WeakValueDictionary[Any, CompileKey] = weakref.WeakValueDictionary()


def _first_miss(*frame: Any) -> Any:
    """Loads the compiler and takes its place. No garbage is collected meanwhile: loading makes none, and a full collection over
    torch's objects takes longer than the loading itself."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        from .misses import rerun_succeeded
        from .on_miss import on_miss
    finally:
        if collecting:
            gc.enable()
    set_convert_frame(on_miss)
    set_rerun_callback(rerun_succeeded)
    return on_miss(*frame)


set_convert_frame(_first_miss)
logs.from_environment()
if os.environ.get("MINIDYNAMO_TRACE"):
    from .recording import session

    session.from_environment()


def _identity(value: Any) -> Any:
    """A hashable stand-in for identity; two bound methods of one object and function are one."""
    if isinstance(value, types.MethodType):
        return (id(value.__self__), id(value.__func__))
    return id(value)


def _compile_key(
    backend: Backend, dynamic: bool | None, options: dict[str, Any], isolate: bool
) -> CompileKey:
    """Objects with equal keys share entries (decision 23); keys live as long as an object uses them."""
    if isolate:
        return CompileKey(backend.compiler_fn, dynamic, tuple(sorted(options.items(), key=lambda kv: kv[0])))
    wanted = (_identity(backend.compiler_fn), dynamic, repr(sorted(options.items(), key=lambda kv: kv[0])))
    key = _keys.get(wanted)
    if key is None:
        key = _keys[wanted] = CompileKey(backend.compiler_fn, dynamic, tuple(sorted(options.items())))
    return key


class Optimizer(OptimizeContext):
    """What `optimize(...)` gives: a decorator, and a context manager inside which every frame is a candidate."""

    def __call__(self, fn: Any) -> Any:
        """Wrap a function, method, callable object or module. TypeError for anything else; Unsupported for a generator
        function under `nopython`."""
        fn = _target(fn)
        code = getattr(fn, "__code__", None)
        if isinstance(code, types.CodeType) and code.co_flags & GENERATOR_LIKE:
            self._skip_generator(code)
        if isinstance(fn, (classmethod, staticmethod)):
            return type(fn)(OptimizedFunction(fn.__func__, self))
        if isinstance(fn, property):
            parts = {name: getattr(fn, name) for name in ("fget", "fset", "fdel")}
            wrapped = {k: part and OptimizedFunction(part, self) for k, part in parts.items()}
            return property(**wrapped, doc=fn.__doc__)
        if isinstance(fn, torch.nn.Module):
            return OptimizedModule(fn, self)
        return OptimizedFunction(fn, self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Made anew by the same call of `optimize`; the backend must be a name, or something that can be pickled."""
        return _optimize_again, (self.arguments,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Optimizer:
        return self

    def _skip_generator(self, code: types.CodeType) -> None:
        """Its frames run after the call has returned, so the call can say nothing about them."""
        where, reason = (
            events.Where(code.co_filename, code.co_firstlineno, code.co_qualname),
            why(SKIP_GENERATOR),
        )
        if self.nopython:
            raise unsupported_error(code.co_qualname, reason, where)
        events.emit(events.Skipped(where, reason.code, reason.text, reason.hint))


def _optimize_again(arguments: dict[str, Any]) -> Any:
    return optimize(**arguments)


class NoOptimizer(contextlib.nullcontext[None]):
    """What `optimize(disable=True)` gives: it leaves functions as they are."""

    def __call__(self, fn: Any) -> Any:
        return _target(fn)


def _target(fn: Any) -> Any:
    """The thing to wrap: an optimized function is unwrapped. TypeError for what cannot be called like a function."""
    if isinstance(fn, OptimizedFunction):
        fn = fn.__wrapped__
    if isinstance(fn, OptimizedModule):
        fn = fn._orig_mod
    if isinstance(fn, type) or not (callable(fn) or isinstance(fn, (classmethod, staticmethod, property))):
        kind = (
            f"the class {fn.__name__}" if isinstance(fn, type) else f"an object of type {type(fn).__name__}"
        )
        raise TypeError(
            f"minidynamo.optimize takes a function, method, callable object or nn.Module, not {kind}; "
            "decorate the methods to be captured"
        )
    return fn


def checked_call(fn: Callable[P, R]) -> Callable[P, R]:
    """`fn`, whose wrong calls raise a TypeError that names the argument, and the one that was meant. Only the first parameter is
    given by position."""
    first, *others = inspect.signature(fn).parameters

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name != first and name not in others:
                near = difflib.get_close_matches(name, others, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(others)}"
                raise TypeError(f"minidynamo.{fn.__name__}: no argument {name!r}; {hint}")
        if len(args) > 1:
            raise TypeError(
                f"minidynamo.{fn.__name__}: only {first} is given by position; write {others[0]}={args[1]!r}"
            )
        return fn(*args, **kwargs)

    return call


@checked_call
def optimize(
    backend: str | Callable[..., Any] = "inductor",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    guard_fail_fn: Callable[[Any], Any] | None = None,
    isolate: bool = False,
) -> Optimizer | NoOptimizer:
    """Capture the decorated function into graphs for `backend`.

    backend: a registered name, or a callable `(gm: torch.fx.GraphModule, example_inputs: list[Tensor]) -> callable`
    nopython: the whole function must be one graph; a graph break raises `Unsupported` with the user's line
    dynamic: None or False; True is accepted and compiles static shapes
    mode, options: handed to a backend that takes them
    disable: do nothing
    guard_fail_fn: called with a `Recompile` event when no entry of a frame fits
    isolate: share no cache entries with other objects of the same backend and options

    Raises InvalidBackend or TypeError at decoration.
    """
    for name, value, types_ in (("nopython", nopython, bool), ("dynamic", dynamic, (bool, type(None)))):
        if not isinstance(value, types_):  # type: ignore[arg-type]
            raise TypeError(
                f"minidynamo.optimize: {name} takes a bool, not {type(value).__name__} ({value!r})"
            )
    if guard_fail_fn is not None and not callable(guard_fail_fn):
        raise TypeError(
            f"minidynamo.optimize: guard_fail_fn takes a callable, not {type(guard_fail_fn).__name__}"
        )
    found = lookup_backend(config.backend or backend)
    bound, given = with_options(found, mode, options)
    if disable or config.disable:
        return NoOptimizer()
    ctx = Optimizer(_compile_key(found, dynamic, given, isolate), nopython)
    ctx.backend = bound
    ctx.arguments = {
        "backend": backend,
        "nopython": nopython,
        "dynamic": dynamic,
        "mode": mode,
        "options": options,
        "guard_fail_fn": guard_fail_fn,
        "isolate": isolate,
    }
    if guard_fail_fn is not None:
        ctx.guard_fail_fn = guard_fail_fn
    return ctx


@checked_call
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """`torch.compile`'s signature over `optimize`. Without `model` it is a decorator. Raises TypeError, naming it, for an
    argument that it has not."""
    optimizer = optimize(
        backend, nopython=fullgraph, dynamic=dynamic, mode=mode, options=options, disable=disable
    )
    return optimizer if model is None else optimizer(model)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Never capture `fn`, nor (when `recursive`) what it calls; captured code that calls it breaks the graph there."""
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)
    if isinstance(fn, OptimizedFunction):
        fn = fn.__wrapped__
    if isinstance(fn, OptimizedModule):
        fn = fn._orig_mod
    if not callable(fn):
        raise TypeError(f"minidynamo.disable takes a callable, not {type(fn).__name__}")
    if not recursive:
        mark_skipped(fn)
        return fn
    made = OptimizedFunction(fn, None)
    if reason is not None:
        made.disable_reason = reason
    return made


def mark_skipped(fn: Any) -> None:
    """The frame of `fn` itself is never compiled, nor traced as part of its caller; what it calls still may be."""
    leave_out(code_of(fn))
    reset_code(code_of(fn))


def reset() -> None:
    """Drop every cache entry and mark, and what is remembered about functions."""
    reset_all()
    misses = sys.modules.get(f"{__package__}.misses")
    if misses is not None:
        misses.forget()


def cache_entries(fn: Any) -> list[CacheEntry]:
    """Live cache entries of a function (optimized or not) or code object, in the order in which they are tried.

    An entry has `hits`, `valid`, `check_fn`, `code`, `has_break`, and `guarded`, what reports know: `compile_id`, `where`,
    `check.source_text`, `graph_text`, `output_text`, `exit`, `resumes`.
    """
    return _entries_of_code(code_of(fn))


@dataclass(slots=True)
class ExplainOutput:
    """What happened in one call: `result`, and the events of what was compiled, broken or skipped during it; `frames` are
    all entries of the function afterwards, older ones included."""

    result: Any = None
    compiled: list[events.Compiled] = field(default_factory=list)
    breaks: list[events.GraphBreak] = field(default_factory=list)
    skipped: list[events.Skipped] = field(default_factory=list)
    recompiles: list[events.Recompile] = field(default_factory=list)
    frames: list[CacheEntry] = field(default_factory=list)

    @property
    def graph_count(self) -> int:
        return sum(entry.guarded.ops > 0 for entry in self.frames)

    @property
    def op_count(self) -> int:
        return sum(entry.guarded.ops for entry in self.frames)

    @property
    def graph_break_count(self) -> int:
        return len({entry.guarded.break_ for entry in self.frames if entry.guarded.break_ is not None})

    def __str__(self) -> str:
        lines = [
            f"{self.graph_count} graphs, {self.op_count} operators, {self.graph_break_count} graph breaks"
        ]
        for entry in self.frames:
            made = entry.guarded
            lines.append(f"  {made.compile_id}  {made.where}  {made.ops} operators, {made.exit}")
        for reason, where in dict.fromkeys(
            e.guarded.break_ for e in self.frames if e.guarded.break_ is not None
        ):
            lines.append(f"  break at {where}: {reason}; {reason.hint}")
        lines += [
            f"  not compiled: {s.where} {s.where.function}: {s.text} [{s.code}]; {s.hint}"
            for s in self.skipped
        ]
        return "\n".join(lines)


_LISTS: dict[type, str] = {
    events.Compiled: "compiled",
    events.GraphBreak: "breaks",
    events.Skipped: "skipped",
    events.Recompile: "recompiles",
}


def explain(fn: Any, backend: str | Callable[..., Any] = "eager") -> Callable[..., ExplainOutput]:
    """`explain(fn)(*args)` calls `fn` (optimized with `backend` if it is not yet) and says what was captured. Caches are
    not reset: what was compiled before is part of the answer."""
    target = fn if isinstance(fn, (OptimizedFunction, OptimizedModule)) else optimize(backend)(fn)

    def call(*args: Any, **kwargs: Any) -> ExplainOutput:
        out = ExplainOutput()

        def note(event: events.Event) -> None:
            name = _LISTS.get(type(event))
            if name is not None and getattr(event, "code", None) != SKIP_LIBRARY.code:
                getattr(out, name).append(event)

        with events.listen(note):
            out.result = target(*args, **kwargs)
        out.frames = [entry for _, entry in compiled_frames(target)]
        return out

    return call
