"""What compilers read of a graph's nodes (`node.meta`), worked out when it is read.

`example_value` (a fake tensor), `stack_trace`, `nn_module_stack`, `source_fn_stack`; on placeholders of parameters and
buffers also `tensor_dict`. Nothing here keeps a tensor of the program alive.
"""

from __future__ import annotations

import linecache
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.fx

from ..pycode.lift import lift
from ..pycode.module_call import is_module_call
from ..sources import AttrSource, ItemSource, Source
from . import fake
from .meta_value import TensorMeta
from .output_graph import CapturedGraph, Position
from .wrappers import is_wrapper_class

MISSING = object()


class NodeMeta(dict[str, Any]):
    """A node's meta dictionary whose first values are made when they are looked at. What is stored or deleted stays so."""

    __slots__ = ("node", "facts", "pending")

    def __init__(self, node: torch.fx.Node, facts: GraphFacts, pending: set[str] | None = None) -> None:
        super().__init__()
        self.node = node
        self.facts = facts
        self.pending = {*FACTS} if pending is None else pending

    def _settle(self, key: object) -> None:
        if key in self.pending:
            assert isinstance(key, str)
            self.pending.discard(key)
            value = FACTS[key](self.facts, self.node)
            if value is not MISSING:
                dict.__setitem__(self, key, value)

    def _settle_all(self) -> None:
        for key in FACTS:
            self._settle(key)

    def __getitem__(self, key: str) -> Any:
        self._settle(key)
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self.pending.discard(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self._settle(key)
        super().__delitem__(key)

    def __contains__(self, key: object) -> bool:
        self._settle(key)
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def pop(self, key: str, *default: Any) -> Any:
        self._settle(key)
        return super().pop(key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        self._settle(key)
        return super().setdefault(key, default)

    def update(self, *others: Any, **named: Any) -> None:
        for key, value in dict(*others, **named).items():
            self[key] = value

    def clear(self) -> None:
        self.pending.clear()
        super().clear()

    def popitem(self) -> tuple[str, Any]:
        self._settle_all()
        return super().popitem()

    def copy(self) -> NodeMeta:  # type: ignore[override]
        """A copy that is as lazy as this one."""
        made = NodeMeta(self.node, self.facts, set(self.pending))
        dict.update(made, {key: dict.__getitem__(self, key) for key in dict.keys(self)})
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        import copy

        return copy.deepcopy(dict(self), memo)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self


def _whole(name: str) -> Callable[..., Any]:
    """A method of dict that sees every key: the pending values are made first."""
    plain = getattr(dict, name)

    def method(self: NodeMeta, *args: Any) -> Any:
        self._settle_all()
        return plain(self, *args)

    method.__name__ = name
    return method


for _name in (
    "__iter__",
    "__len__",
    "__eq__",
    "__ne__",
    "__repr__",
    "__reversed__",
    "keys",
    "values",
    "items",
):
    setattr(NodeMeta, _name, _whole(_name))


class GraphFacts:
    """Where the values come from: the captured graph, and a fake mode that is made when it is needed.

    mode: gives the FakeTensorMode
    """

    def __init__(self, graph: CapturedGraph, grad_mode: bool, mode: Callable[[], Any]) -> None:
        self.lines = graph.lines
        self.grad_mode = grad_mode
        self.states = tuple(key for key, _ in graph.states)
        self.mode = mode
        inputs = list(zip(graph.module.graph.find_nodes(op="placeholder"), graph.inputs, strict=True))
        self.inputs = {node: given.source for node, given in inputs}  # (compilers rename placeholders)
        self._metas = {node: TensorMeta.of(given.example) for node, given in inputs}
        self._tensors = {node: weakref.ref(given.example) for node, given in inputs}
        self._wrappers = {node for node, given in inputs if is_wrapper_class(type(given.example))}
        self._examples: dict[torch.fx.Node, Any] | None = None

    def attach(self, graph: CapturedGraph) -> None:
        """Give every node its lazy meta."""
        for node in graph.module.graph.nodes:
            node.meta = NodeMeta(node, self)

    # --- example values ---------------------------------------------------------------------------------------------
    def example(self, node: torch.fx.Node) -> Any:
        """The node's value on fake tensors; MISSING when it cannot be worked out."""
        if self._examples is None:
            self._examples = {}
            self._run(node.graph)
        return self._examples.get(node, MISSING)

    def _input(self, mode: Any, node: torch.fx.Node) -> torch.Tensor:
        """The fake of a graph input: of the real tensor while that lives and is as it was, else of its metadata."""
        tensor, meta = self._tensors[node](), self._metas[node]
        unchanged = tensor is not None and TensorMeta.of(tensor) == meta
        made: torch.Tensor = mode.from_tensor(tensor) if unchanged else meta.make_empty()
        return made

    def _is_gone(self, node: torch.fx.Node) -> bool:
        """A wrapper that does not live any more, or changed: metadata alone does not make another."""
        tensor = self._tensors[node]()
        same = tensor is not None and TensorMeta.of(tensor) == self._metas[node]
        return not same and node in self._wrappers

    def _run(self, graph: torch.fx.Graph) -> None:
        """Every operator on fakes, in order. (A tensor that changes its own sizes has the last ones.)"""
        examples = self._examples
        assert examples is not None
        values: dict[torch.fx.Node, Any] = {}
        mode = self.mode()
        before = [(key, key.get()) for key in self.states]
        try:
            with fake.undisturbed(self.grad_mode, ()), _own_symbols(mode), mode:
                for node in graph.nodes:
                    if node.op == "placeholder":
                        if node in self._metas and not self._is_gone(node):
                            examples[node] = values[node] = self._input(mode, node)
                    elif node.op in ("call_function", "call_method"):
                        self._step(node, values, examples)
        finally:
            for key, value in before:
                key.put(value)

    def _step(
        self, node: torch.fx.Node, values: dict[torch.fx.Node, Any], examples: dict[torch.fx.Node, Any]
    ) -> None:
        if not all(needed in values for needed in node.all_input_nodes):
            return
        args = torch.fx.map_arg(node.args, values.__getitem__)
        kwargs = torch.fx.map_arg(node.kwargs, values.__getitem__)
        op = ("method", node.target) if isinstance(node.target, str) else node.target
        try:
            values[node] = fake.call(op, args, kwargs)  # type: ignore[arg-type]
        except Exception:  # fakes cannot run it, whatever they say: those that need it have no example either
            return
        examples[node] = values[node]

    # --- where in the program ---------------------------------------------------------------------------------------
    def frames(self, node: torch.fx.Node) -> list[Position]:
        """The positions that the node was made at, root frame first."""
        found: list[Position] = []
        at = self.lines.get(node)
        while at is not None:
            if not is_module_call(at.code):  # a frame of ours
                found.append(at)
            at = at.caller
        return found[::-1]


def _own_symbols(mode: Any) -> AbstractContextManager[Any]:
    """Symbols that operators make are not waited for: who compiles the graph makes others."""
    environment = mode.shape_env
    return nullcontext() if environment is None else environment.ignore_fresh_unbacked_symbols()


def _example_value(facts: GraphFacts, node: torch.fx.Node) -> Any:
    return facts.example(node)


def _stack_trace(facts: GraphFacts, node: torch.fx.Node) -> Any:
    """As `traceback` prints it, innermost frame last."""
    lines = []
    for at in facts.frames(node):
        number = lift(at.code).line_of(at.instruction) or at.code.co_firstlineno
        lines.append(f'  File "{at.code.co_filename}", line {number}, in {at.code.co_name}\n')
        text = linecache.getline(at.code.co_filename, number).strip()
        lines += [f"    {text}\n"] if text else []
    return "".join(lines) if lines else MISSING


def _nn_module_stack(facts: GraphFacts, node: torch.fx.Node) -> Any:
    """Modules that are being called, outermost first: key -> (path, class)."""
    modules = [at.module for at in facts.frames(node) if at.module is not None]
    found = {}
    for module in modules:
        path = module_path(module.source)
        found[re.sub(r"\W+", "_", f"L_{path}")] = (path, module.cls)
    return found if found else MISSING


def _source_fn_stack(facts: GraphFacts, node: torch.fx.Node) -> Any:
    """The function or method that the program called."""
    return [(node.name, node.target)] if node.op.startswith("call_") else MISSING


def _tensor_dict(facts: GraphFacts, node: torch.fx.Node) -> Any:
    """Parameters and buffers of modules stay where they are from call to call; their address is not guarded."""
    source = facts.inputs.get(node)
    if source is None:
        return MISSING
    return {"_dynamo_static_input_type": "unguarded"} if is_module_state(source) else {}


FACTS: dict[str, Callable[[GraphFacts, torch.fx.Node], Any]] = {
    "example_value": _example_value,
    "stack_trace": _stack_trace,
    "nn_module_stack": _nn_module_stack,
    "source_fn_stack": _source_fn_stack,
    "tensor_dict": _tensor_dict,
}

TABLES = ("_parameters", "_buffers")


def is_module_state(source: Source) -> bool:
    """A parameter or buffer, reached through its module."""
    return (
        isinstance(source, ItemSource)
        and isinstance(source.base, AttrSource)
        and source.base.member in TABLES
    )


def _steps(source: Source) -> Iterator[str]:
    """The path of a module, with `layers.0` for `_modules['layers']._modules['0']`."""
    if (
        isinstance(source, ItemSource)
        and isinstance(source.base, AttrSource)
        and source.base.member == "_modules"
    ):
        yield from _steps(source.base.base)
        yield str(source.key)
    else:
        yield source.owner()


def module_path(source: Source) -> str:
    """`self.layers.0`, as the program's author names it."""
    return ".".join(_steps(source))
