"""What torch's own compilers read besides the graph (decision 18), and the guards that they ask for (decision 1).

For the time of the call of a backend, `torch._guards.TracingContext.get()` gives a context whose fake mode is made when it
is asked for. AOTAutograd leaves its guards there; they become guards like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch._guards as theirs

from ..graph.node_meta import GraphFacts
from ..graph.output_graph import CapturedGraph
from ..guards.builder import GuardBuilder
from ..guards.guard import Guard, make_guard
from ..sources import Source
from .aliasing import Aliasing, aliasing


@dataclass(frozen=True)
class InputSource(theirs.Source):
    """One of our sources, as torch's compilers know sources: hashable, with a name."""

    ours: Source

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.ours.name()

    @property
    def guard_source(self) -> theirs.GuardSource:  # type: ignore[override]
        return theirs.GuardSource.LOCAL if self.ours.guard_source().is_local() else theirs.GuardSource.GLOBAL


class Context(theirs.TracingContext):
    """A TracingContext whose fake mode is made at the first look, with the fakes of the graph's inputs.

    The fakes have the sizes that were seen, whatever a compiler asks for: it gets the ones that are there already.
    """

    def __init__(self, inputs: list[torch.Tensor]) -> None:
        self._inputs: list[torch.Tensor] | None = inputs
        self._fakes: list[torch.Tensor] = []
        self._made: Any = None
        self.aliasing = Aliasing()
        super().__init__(None)

    def mode(self) -> Any:
        """The fake mode."""
        if self._made is None:
            from torch._subclasses.fake_tensor import FakeTensorMode
            from torch.fx.experimental.symbolic_shapes import ShapeEnv

            self._made = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True)
            self._fakes = [self._made.from_tensor(tensor) for tensor in self._inputs or ()]
        return self._made

    def close(self) -> None:
        """The backend is done: no tensor is held any more, and nobody makes a mode by looking."""
        self._inputs = None
        self._fakes.clear()

    @property
    def fake_mode(self) -> Any:
        return self._made if self._inputs is None else self.mode()

    @fake_mode.setter
    def fake_mode(self, mode: Any) -> None:
        self._made = mode


@contextmanager
def prepared(graph: CapturedGraph, compile_id: str) -> Iterator[Context]:
    """Attach to the graph what compilers read, for them to find while the block runs. The context has the guards.

    compile_id: `frame/compile`, two numbers
    """
    module = graph.module
    frame, count = map(int, compile_id.split("/"))
    number = theirs.CompileId(frame_id=frame, frame_compile_id=count)
    module.meta["dynamo_compile_id"] = number
    module._param_name_to_source = {}  # type: ignore[assignment]
    for node, given in zip(module.graph.find_nodes(op="placeholder"), graph.inputs, strict=True):
        node._dynamo_source = InputSource(given.source)  # type: ignore[attr-defined]
    context = Context(graph.example_inputs)
    GraphFacts(graph, torch.is_grad_enabled(), context.mode).attach(graph)
    with theirs.compile_context(theirs.CompileContext(number)), theirs.tracing(context):
        try:
            context.aliasing = aliasing(graph)
            with caching_apart(context.aliasing.tag):
                yield context
        finally:
            context.close()


@contextmanager
def caching_apart(tag: str) -> Iterator[None]:
    """torch's caches of compiled graphs do not look at how inputs overlap; a tag in their keys does."""
    if not tag:
        yield
        return
    import torch.compiler.config as options

    with options.patch(cache_key_tag=f"{options.cache_key_tag} {tag}"):  # type: ignore[attr-defined]
        yield


def guards_of(context: Context) -> tuple[Guard, ...]:
    """The guards that AOTAutograd left in the context, and those on memory that inputs share."""
    found = [*context.aliasing.guards]
    for asked in context.guards_context.aotautograd_guards:
        if isinstance(asked, theirs.DuplicateInputs):
            first, second = _ours(asked.input_source_a), _ours(asked.input_source_b)
            found.append(make_guard(second, GuardBuilder.DUPLICATE_INPUT, first))
        elif isinstance(asked, theirs.StorageOverlap):
            sources = [_ours(s) for s in (*asked.overlapping_sources, *asked.non_overlapping_sources)]
            found.append(make_guard(sources[0], GuardBuilder.STORAGE_LAYOUT, *sources[1:]))
        else:
            raise TypeError(
                f"the backend asks for a guard of a kind that is not known: {type(asked).__name__}"
            )
    return tuple(found)


def _ours(source: Any) -> Source:
    if not isinstance(source, InputSource):
        raise TypeError(f"the backend asks for a guard on {source!r}, which is no input of the graph")
    return source.ours
