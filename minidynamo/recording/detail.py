"""What a report shows of one compilation besides its numbers: listings, the graph's nodes, what a repro needs."""

from __future__ import annotations

import dis
import linecache
import types
from typing import Any

from ..events import Compiled
from .schema import Record

LONGEST_LISTING = 4000  # instructions, nodes


def detail_of(event: Compiled) -> Record:
    """Everything as text. {} where the event lends nothing."""
    made = event.made
    if made is None:
        return {}
    return {
        "source": source_lines(made.before),
        "before": listing(made.before),
        "after": listing(made.after),
        "output": event.output,
        "nodes": [] if made.graph is None else nodes(made.graph.graph),
        "code": "" if made.graph is None else made.graph.code.strip(),
        "globals": {} if made.graph is None else global_lines(made.graph.graph),
        "inputs": [list(row) for row in made.inputs],
    }


def source_lines(code: types.CodeType) -> list[list[Any]]:
    """(line number, text) from the `def` to the last line of `code`."""
    numbers = [line for _, _, line in code.co_lines() if line is not None]
    first, last = code.co_firstlineno, max(numbers, default=code.co_firstlineno)
    found = [[n, linecache.getline(code.co_filename, n).rstrip("\n")] for n in range(first, last + 1)]
    return found if any(text for _, text in found) else []


def listing(code: types.CodeType) -> list[list[Any]]:
    """(line or None, offset, opname, argument) of each instruction."""
    out: list[list[Any]] = []
    for inst in dis.get_instructions(code):
        line = inst.positions.lineno if inst.positions is not None else None
        argument = (
            f"<code {inst.argval.co_name}>" if isinstance(inst.argval, types.CodeType) else inst.argrepr
        )
        out.append([line, inst.offset, inst.opname, argument[:80]])
        if len(out) == LONGEST_LISTING:
            break
    return out


def nodes(graph: Any) -> list[Record]:
    """The nodes of an FX graph: name, operation, target, the names of the nodes that it reads, its arguments as text."""
    return [
        {
            "name": node.name,
            "op": node.op,
            "target": target_name(node.target),
            "inputs": [source.name for source in node.all_input_nodes],
            "args": ", ".join([*map(str, node.args), *(f"{k}={v}" for k, v in node.kwargs.items())])[:200],
        }
        for node in list(graph.nodes)[:LONGEST_LISTING]
    ]


def target_name(target: Any) -> str:
    """A function's name with its module, or the method's name."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None) or ""
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or str(target)
    return (
        name
        if module in ("", "builtins", "_operator") or module.startswith("torch._C")
        else f"{module}.{name}"
    )


def global_lines(graph: Any) -> dict[str, str]:
    """Name -> the Python expression of a global that the graph's code uses; "" for one that has none."""
    found = graph.python_code("self").globals
    return {name: _expression(value) for name, value in found.items()}


def _expression(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return f"__import__('importlib').import_module({value.__name__!r})"
    text = repr(value)
    if text.startswith("torch.") and text.replace(".", "").replace("_", "").isalnum():
        return text
    if isinstance(value, (int, float, str, bytes, type(None))):
        return f"float({text!r})" if isinstance(value, float) else text
    if type(value).__module__ == "torch" and type(value).__name__ == "device":
        return f"torch.{text}"
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if module and name and "<" not in name:
        return f"getattr(__import__('importlib').import_module({module!r}), {name!r})"
    return ""
