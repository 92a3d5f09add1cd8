"""The Python code of a captured graph: what `torch.fx.Graph.python_code` makes of it, for the kinds of nodes that a trace makes.

torch.fx asks every node for its name through functions that may be overridden, renames it for each text, and looks up what each
target is called. Here names are known to be the only ones, and targets are looked up once. Of a graph with anything else torch.fx
makes the code itself; so it does when the graph is compiled again. Under MINIDYNAMO_VERIFY=1 the two are compared.
"""

from __future__ import annotations

import dataclasses
import operator
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch.fx
from torch.fx.graph import PythonCode, _custom_builtins, _is_from_torch, inplace_methods, magic_methods
from torch.fx.node import _get_qualified_name

from .. import config
from ..exc import InternalError

BUILTINS: dict[str, Any] = {name: row.obj for name, row in _custom_builtins.items()}
FIELDS = {field.name for field in dataclasses.fields(PythonCode)}
#: operators of the module `operator` -> their text, and whether they are statements
SYMBOLS: dict[Any, tuple[str, bool]] = {
    getattr(operator, name): (text, in_place)
    for table, in_place in ((magic_methods, False), (inplace_methods, True))
    for name, text in table.items()
    if hasattr(operator, name)
}
#: types whose `repr` is Python code under the names of BUILTINS
LITERALS = frozenset({
    int, float, bool, complex, str, type(None), type(...), torch.dtype, torch.device, torch.layout, torch.memory_format,
})  # fmt: skip


class _Unknown(Exception):
    """torch.fx has to make the code."""


@contextmanager
def code_made_here(graph: torch.fx.Graph) -> Iterator[None]:
    """Inside, `graph.python_code` gives what is made here."""
    made = python_code(graph)
    if made is None:
        yield
        return
    if config.verify:
        theirs = graph.python_code("self")
        for name in FIELDS:
            if getattr(made, name) != getattr(theirs, name):
                raise InternalError(
                    f"{name} of a graph's code: {getattr(made, name)!r}, not {getattr(theirs, name)!r}"
                )

    def python_code_of(root_module: str, **options: Any) -> PythonCode:
        if any(options.values()):
            return torch.fx.Graph.python_code(graph, root_module, **options)
        return made

    graph.python_code = python_code_of  # type: ignore[method-assign]
    try:
        yield
    finally:
        del graph.python_code


def python_code(graph: torch.fx.Graph) -> PythonCode | None:
    """The code of `forward`; None where torch.fx has to make it."""
    try:
        writer = _Writer(graph)
    except _Unknown:
        return None
    given = ", ".join(["self", *writer.placeholders])
    # one line before the function, its head, and the lines of its body
    facts: dict[str, Any] = {
        "src": "\n\n\ndef forward({}):\n{}    ".format(
            given, "".join(f"    {line}\n" for line in writer.lines)
        ),
        "globals": BUILTINS | writer.globals,
        "_lineno_map": writer.line_map(),
        "_prologue_start": 4,
    }
    return PythonCode(**{name: value for name, value in facts.items() if name in FIELDS})


class _Writer:
    """The parts of the code. Raises _Unknown."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        nodes = list(graph.nodes)
        self.placeholders: list[str] = []
        self.lines: list[str] = []
        self.places: list[int] = []  # of each line's node
        self.globals: dict[str, Any] = {}
        last: dict[torch.fx.Node, list[str]] = {}  # node -> what is used there for the last time
        seen: set[torch.fx.Node] = set()
        for node in reversed(nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used.name)
        for place, node in enumerate(nodes):
            if node.op == "placeholder":
                if node.args:
                    raise _Unknown
                self.placeholders.append(str(node.target))
                if node.target == node.name:
                    continue
                self.lines.append(f"{node.name} = {node.target}")
            elif node.op == "output":
                self.lines.append(f"return {self.text(node.args[0])}")
            else:
                dead = last.get(node, [])
                if not node.users:
                    dead.append(node.name)
                end = f";  {' = '.join(dead)} = None" if dead else ""
                self.lines.append(self.statement(node) + end)
            self.places.append(place)
        if self.globals and not self.globals.keys().isdisjoint([node.name for node in nodes]):
            raise _Unknown

    def line_map(self) -> dict[int, int | None]:
        """Line, counted from the head of the function -> place of its node."""
        return dict(enumerate((*self.places, self.places[-1]), 1))

    def statement(self, node: torch.fx.Node) -> str:
        target, args = node.target, [self.text(arg) for arg in node.args]
        if node.op == "call_method" and isinstance(target, str) and target.isidentifier():
            return f"{node.name} = {args[0]}.{target}({', '.join(args[1:] + self.named(node))})"
        if node.op != "call_function":
            raise _Unknown
        symbol, in_place = SYMBOLS.get(target, (None, False))
        if symbol is None:
            return f"{node.name} = {self.call(node, args)}"
        if in_place:
            return f"{symbol.format(*args)};  {node.name} = {args[0]}"
        return f"{node.name} = {symbol.format(*args)}"

    def call(self, node: torch.fx.Node, args: list[str]) -> str:
        name = target_name(node.target)
        if name is None:
            raise _Unknown
        if node.target in OWN:
            self.globals[name] = node.target
            if node.target is getattr and len(args) == 2 and str(node.args[1]).isidentifier():
                return f"{args[0]}.{node.args[1]}"
        return f"{name}({', '.join(args + self.named(node))})"

    def named(self, node: torch.fx.Node) -> list[str]:
        return [f"{name} = {self.text(value)}" for name, value in node.kwargs.items()] if node.kwargs else []

    def text(self, value: Any) -> str:
        """An argument as Python code."""
        if isinstance(value, torch.fx.Node):
            return value.name
        kind = type(value)
        if kind in LITERALS:
            return repr(value)
        if kind is tuple:
            return f"({self.text(value[0])},)" if len(value) == 1 else f"({', '.join(map(self.text, value))})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if kind is slice:
            return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
        raise _Unknown


OWN = {getattr: "getattr", operator.setitem: "_operator_setitem"}  # functions that the code gets as globals
OF_TORCH = (types.BuiltinFunctionType, types.FunctionType)


def target_name(target: Any) -> str | None:
    """What a function is called in the code: a public one of torch's, or one of OWN; else None."""
    if type(target) not in OF_TORCH:
        return None
    module = target.__module__
    return _torch_name(target) if module is None or module.split(".")[0] == "torch" else OWN.get(target)


@lru_cache(maxsize=1024)
def _torch_name(target: Any) -> str | None:
    return _get_qualified_name(target) if _is_from_torch(target) else None
