"""Stage 3: the graph goes to the backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import config
from ..events import Where
from ..exc import BackendCompilerFailed
from ..graph.output_graph import CapturedGraph, GraphInput
from ..graph.state_keys import Key
from ..graph.undo import undoing
from ..graph.wrappers import is_wrapper_class
from ..guards.guard import Guard
from ..translate.capture import Facts
from .contract import guards_of, prepared
from .registry import Backend

Compiled = tuple[
    Callable[..., Any] | None, tuple[Guard, ...]
]  # a graph's callable, and the guards that it asks for


def call_backend(graph: CapturedGraph | None, facts: Facts, backend: Backend, compile_id: str) -> Compiled:
    """The backend's callable and the guards that it asks for. Raises BackendCompilerFailed."""
    if graph is None:
        return None, ()
    undo = undoing(graph) if facts.undoes else None
    if backend.needs_meta:
        with prepared(graph, compile_id) as context:
            compiled = run_backend(backend, graph)
            guards = guards_of(context)
    else:
        compiled, guards = run_backend(backend, graph), ()
    again = facts.undoes or not (graph.mutates or graph.draws_random)
    mode = None if again else facts.mode_outside
    if graph.states or mode is not None and mode is not torch.is_grad_enabled():
        compiled = with_states(compiled, graph.states, mode)
    if undo is not None:
        compiled = undo(compiled)
    return compiled, guards


def backend_for(
    graph: CapturedGraph | None, facts: Facts, backend: Backend, compile_id: str, where: Where
) -> Compiled:
    """`call_backend`, whose error names the frame, and leaves a script behind where that was asked for."""
    try:
        if config.repro:
            return with_repro(graph, facts, backend, compile_id, where)
        return call_backend(graph, facts, backend, compile_id)
    except BackendCompilerFailed as error:
        error.args = (f"{where}: {where.function}: {error}",)
        raise


def with_repro(
    graph: CapturedGraph | None, facts: Facts, backend: Backend, compile_id: str, where: Where
) -> Compiled:
    """`call_backend`; when it fails, a script of the graph as the backend got it is left behind, and the error names it."""
    from ..recording.reader import Unreadable
    from ..recording.repro import failed_backend_script, write_beside

    if graph is None:
        return None, ()
    text = told = ""
    try:
        text = failed_backend_script(
            compile_id, where, backend.name, graph.module, map(input_text, graph.inputs)
        )
    except Unreadable as why_not:
        told = f"no repro: {why_not}"
    try:
        return call_backend(graph, facts, backend, compile_id)
    except BackendCompilerFailed as error:
        error.args = (f"{error}\n  {told or write_beside(compile_id, text)}",)
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
