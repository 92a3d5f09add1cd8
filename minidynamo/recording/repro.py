"""A standalone script of one compilation: its graph, inputs like those seen, the backend.

`minidynamo repro` makes it of a recording; with MINIDYNAMO_REPRO=1 one is written when a backend fails.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from ..events import Where
from .detail import global_lines
from .reader import Unreadable
from .schema import Record

TEMPLATE = '''\
"""The graph of {id} {function} ({at}), compiled by {backend!r}."""

import torch
{globals}

class Graph(torch.nn.Module):
{code}


def like(made):
    """Values for a tensor of that metadata; a generator as it is."""
    if isinstance(made, torch.Generator):
        return made
    if made.dtype == torch.bool:
        return made.fill_(True)
    with torch.no_grad():
        return made.uniform_() if made.is_floating_point() else made.fill_(1)


inputs = [
{inputs}
]

if __name__ == "__main__":
    import minidynamo
    from minidynamo.backends.registry import lookup_backend

    graph = torch.fx.symbolic_trace(Graph()) if {traceable} else Graph()
    expected = Graph()(*inputs)
    backend = lookup_backend({backend!r})
    compiled = backend.compiler_fn(graph, inputs)
    print("expected", expected)
    print("compiled", compiled(*inputs))
'''


def script(name: str, function: str, at: str, backend: str, detail: Record) -> str:
    """The script's text. `detail`: code, globals and inputs, as `detail.detail_of` gives them.

    Raises Unreadable for a compilation without graph, or with objects that text cannot name.
    """
    if not detail.get("code"):
        raise Unreadable(f"{name} {function} has no graph")
    used = {
        n: text for n, text in detail["globals"].items() if re.search(rf"\b{re.escape(n)}\b", detail["code"])
    }
    unnamed = [n for n, text in used.items() if not text]
    if unnamed:
        raise Unreadable(
            f"{name} {function}: the graph uses objects that a script cannot name: {', '.join(unnamed)}"
        )
    unmade = [n for n, _, text in detail["inputs"] if not text]
    if unmade:
        raise Unreadable(
            f"{name} {function}: inputs are tensors that wrap others, which a script cannot make: {', '.join(unmade)}"
        )
    body = "\n".join(f"    {line}" if line.strip() else "" for line in detail["code"].splitlines())
    names = "".join(f"{n} = {text}\n" for n, text in used.items() if n != "torch")
    inputs = "\n".join(f"    like({text}),  # {n}: {where}" for n, where, text in detail["inputs"])
    return TEMPLATE.format(
        id=name,
        function=function,
        at=at,
        backend=backend,
        globals=names,
        code=body,
        inputs=inputs,
        traceable=not re.search(r"_set_grad_enabled", detail["code"]),
    )


def failed_backend_script(
    name: str, where: Where, backend: str, module: Any, inputs: Iterable[tuple[str, str, str]]
) -> str:
    """The script of a graph that a backend is about to get (it may change the graph). `module`: torch.fx.GraphModule.

    Raises Unreadable as `script` does.
    """
    detail = {
        "code": module.code.strip(),
        "globals": global_lines(module.graph),
        "inputs": [list(row) for row in inputs],
    }
    return script(name, where.function, f"{where.filename}:{where.line}", backend, detail)


def write_beside(name: str, text: str) -> str:
    """Write `text` into the current folder; one line that says where it is, or why it could not be written."""
    path = f"minidynamo-repro-{os.getpid()}-{name.replace('/', '-')}.py"
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return f"no repro: {path}: {error.strerror or error}"
    return f"repro: {path}"
