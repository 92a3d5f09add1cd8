"""OutputGraph: the FX tracer. It holds the graph that is being made and its inputs; one per capture."""

from __future__ import annotations

import functools
import keyword
import re
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.fx

from ..guards.state_reads import put_device
from ..sources import Source
from .graph_source import CodeGen, unregister_with
from .listing import Listing, places_of
from .memory import any_may_be_input
from .meta_value import TensorMeta
from .regions import Region, extract
from .state_keys import Key
from .tape import Tape, Template


@dataclass(frozen=True, slots=True)
class Module:
    """A module that is being called: where it is, and its class."""

    source: Source
    cls: type


class Position(NamedTuple):
    """A place in the program: an instruction by its index, the call that the frame runs in (None for the root), and the
    module whose `forward` the frame is. Lines and texts are worked out when somebody asks."""

    code: types.CodeType
    instruction: int
    caller: Position | None = None
    module: Module | None = None


@dataclass(frozen=True, slots=True)
class GraphInput:
    """One placeholder: where its tensor comes from and the tensor that was seen. convert: what makes the tensor that the graph is
    given of the one that is there, with its further arguments (none: nothing). A graph that is run as it is may be given random
    generators, too."""

    name: str
    source: Source
    example: Any  # torch.Tensor or torch.Generator
    convert: tuple[Any, ...] = ()
    meta: TensorMeta | None = None  # of a tensor that is taken as it is


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """What a backend gets: the module, its inputs in placeholder order, and facts about it.

    `outputs` maps a graph node to its place in the tuple that the module returns. `states`: what parts of torch's state
    the graph changes, and what each is after it.
    """

    module: torch.fx.GraphModule
    inputs: tuple[GraphInput, ...]
    outputs: dict[torch.fx.Node, int]
    ops: int
    written: tuple[torch.fx.Node, ...]
    draws_random: bool
    states: tuple[tuple[Key, Any], ...]
    lines: dict[torch.fx.Node, Position]
    listing: Listing
    template: (
        Callable[[], Template] | None
    )  # of a replay, when all has been said; None where there cannot be one

    @property
    def mutates(self) -> bool:
        """Something that may have been there before is changed in place."""
        return any_may_be_input(self.written)

    @property
    def example_inputs(self) -> list[Any]:
        return [i.example for i in self.inputs]


SET_ARGUMENTS = getattr(torch.fx.Node, "_update_args_kwargs", None)  # torch 2.7 and later


def append(
    graph: torch.fx.Graph, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.fx.Node:
    """`graph.create_node`, without its search of the arguments for torch's symbolic numbers: a trace has none."""
    name = target if isinstance(target, str) else getattr(target, "__name__", None)
    name = None if name is None else wanted_name(name, kind)
    if SET_ARGUMENTS is None:
        return graph.create_node(kind, target, args, kwargs, name)
    node = graph.create_node(kind, target, (), {}, name)
    SET_ARGUMENTS(node, args, kwargs)
    return node


@functools.lru_cache(maxsize=1024)
def wanted_name(target: str, kind: str) -> str:
    """What a node for a target of this name is called, but for the number that makes it the only one: `add`, `layer_norm`."""
    if kind == "call_method" and target.startswith("__") and target.endswith("__"):
        target = target[2:-2]
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", target).lower()


class OutputGraph(torch.fx.Tracer):
    """Nodes are appended while the frame is executed symbolically. Nothing is ever removed but unused inputs."""

    def __init__(self, name: str, for_compiler: bool = True) -> None:
        super().__init__(autowrap_modules=())  # no function runs on proxies: none is to be wrapped
        self.graph = torch.fx.Graph(tracer_cls=type(self))
        if not for_compiler:  # (compilers look at what writes the code)
            self.graph.set_codegen(CodeGen())
        self.class_name = re.sub(r"\W", "_", name) or "captured"
        self.inputs: dict[torch.fx.Node, GraphInput] = {}
        self.ops = 0
        self.written: dict[torch.fx.Node, None] = {}  # what operators change in place
        self.linked: dict[
            torch.fx.Node, None
        ] = {}  # those of them that become results of an operator for autograd
        self.draws_random = False
        self.lines: dict[torch.fx.Node, Position] = {}
        self.regions: list[Region] = []
        self.tape = Tape()

    @property
    def mutates(self) -> bool:
        """Something that may have been there before is changed in place."""
        return any_may_be_input(self.written)

    def add_input(
        self,
        source: Source,
        example: torch.Tensor | torch.Generator,
        convert: tuple[Any, ...] = (),
        meta: TensorMeta | None = None,
    ) -> torch.fx.Proxy:
        """A placeholder named after its source: `x`, `globals_w`. The names are the same in every process. Placeholders come before
        all other nodes. `example` is what `convert`, if given, made of the tensor."""
        last, graph = next(reversed(self.inputs), None), self.graph
        first = next(iter(graph.nodes), None)
        with (
            graph.inserting_before(first)
            if last is None and first is not None
            else graph.inserting_after(last)
        ):
            name = re.sub(r"\W+", "_", source.name()).strip("_") or "input"
            node = graph.placeholder(f"{name}_" if keyword.iskeyword(name) else name)
        self.inputs[node] = GraphInput(node.name, source, example, convert, meta)
        return torch.fx.Proxy(node, self)

    def add_op(
        self,
        target: Callable[..., Any] | str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        where: Position,
        written: Sequence[torch.fx.Node] = (),
        draws_random: bool = False,
        linked: bool = False,
    ) -> torch.fx.Proxy:
        """Append `call_method` for a name, else `call_function`. written: the nodes whose tensors it changes in place; linked: and for
        autograd they are its results from here on."""
        kind = "call_method" if isinstance(target, str) else "call_function"
        node = append(self.graph, kind, target, args, kwargs)
        if self.tape.handed:
            self.tape.arguments(node, args, kwargs)
        self.lines[node] = where
        self.ops += 1
        if written:
            changed = dict.fromkeys(written)
            self.written.update(changed)
            if linked:
                self.linked.update(changed)
        self.draws_random |= draws_random
        return torch.fx.Proxy(node, self)

    @contextmanager
    def scratch(self) -> Iterator[Callable[[], dict[torch.fx.Node, None]]]:
        """Operators that are added inside are removed again. Gives a function that tells them."""
        self.tape.lost = True
        known = dict.fromkeys(self.graph.nodes)
        kept = self.ops, self.written, self.linked, self.draws_random, self.lines, self.regions
        self.written, self.linked, self.draws_random = {}, {}, False
        self.lines, self.regions = dict(self.lines), []

        def added() -> dict[torch.fx.Node, None]:
            return dict.fromkeys(node for node in self.graph.nodes if node not in known)

        yield added
        for node in reversed(added()):
            self.graph.erase_node(node)
        self.ops, self.written, self.linked, self.draws_random, self.lines, self.regions = kept

    def draws_on_the_cpu(self) -> bool:
        """Its random numbers, if any, come from the CPU's default generator alone, whose state can be put back."""
        values: list[Any] = [torch.get_default_device()]
        for given in self.inputs.values():
            values += (given.example, given.example.device)
        for node in self.graph.nodes if self.draws_random else ():
            torch.fx.node.map_aggregate((node.args, node.kwargs), values.append)
            values.append(str(node.kwargs.get("device", "cpu")))
            values.append(node.target if node.op == "call_method" else None)
        others = ("cuda", "xpu", "mps", "mtia", "openreg", "privateuseone", "generator")
        return self.draws_random and not any(
            isinstance(value, torch.Generator)
            or isinstance(value, torch.device)
            and value.type != "cpu"
            or isinstance(value, str)
            and value.startswith(others)
            for value in values
        )

    def begin_on(self, kind: str, index: int) -> None:
        """The graph, which leaves another device current, makes `index` current first: a backend may run it several times."""
        first = next(node for node in self.graph.nodes if node.op != "placeholder")
        with self.graph.inserting_before(first):
            node = self.graph.call_function(put_device, (kind, index))
        self.lines[node] = self.lines[first]

    def extract_regions(self, wanted: set[torch.fx.Node]) -> dict[torch.fx.Node, torch.fx.Node]:
        """Make them graphs of their own. Gives what stands for their nodes outside; what one writes is known by no other."""
        moved: dict[torch.fx.Node, torch.fx.Node] = {}
        for region in self.regions:
            first = self.lines[region.nodes[0]]
            found = extract(self.graph, region, wanted)
            moved |= found
            for node in region.nodes:
                self.lines.pop(node, None)
                if node not in found:
                    self.written.pop(node, None)
            for node in self.graph.nodes:
                if node.op != "placeholder" and node not in self.lines:
                    self.lines[node] = first
        return moved

    def finish(self, wanted: list[torch.fx.Node], states: tuple[tuple[Key, Any], ...] = ()) -> CapturedGraph:
        """Close the graph: it returns the tuple of `wanted` nodes; inputs that nothing uses are dropped."""
        outputs = {node: index for index, node in enumerate(dict.fromkeys(wanted))}
        moved = self.extract_regions(set(outputs))
        self.graph.output(tuple(moved.get(node, node) for node in outputs))
        known = dict(self.inputs)
        for node in known:
            if not node.users:
                self.graph.erase_node(node)
                del self.inputs[node]
        places = places_of(self.graph)
        written = tuple(moved.get(node, node) for node in self.written)
        may_be_replayed = (
            not (states or self.tape.lost or self.regions)
            and len(self.tape.metas) == len(self.lines)
            and all(given.meta is not None for given in known.values())
        )
        module = torch.fx.GraphModule({}, self.graph, self.class_name)
        unregister_with(type(module).forward.__code__)
        return CapturedGraph(
            module,
            tuple(self.inputs.values()),
            outputs,
            self.ops,
            written,
            self.draws_random,
            states,
            self.lines,
            Listing(places),
            functools.partial(Template, self.tape, places, known, written, self) if may_be_replayed else None,
        )
