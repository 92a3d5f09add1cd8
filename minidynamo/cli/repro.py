"""`minidynamo repro ID -o repro.py`: a standalone script of one compilation: its graph, inputs like those seen, the backend.

Imports neither torch nor the native extension; the script does. Exit codes: 0; 4 for what cannot be read or made.
"""

from __future__ import annotations

import re

from minidynamo.cli.recordings import answer, reading_parser
from minidynamo.recording.formats import write
from minidynamo.recording.model import Compile, Run
from minidynamo.recording.reader import Unreadable
from minidynamo.recording.why import find_compile
from minidynamo.recording.words import Style, key_text

TEMPLATE = '''\
"""The graph of {id} {function} ({at}), compiled by {backend!r}."""

import torch
{globals}

class Graph(torch.nn.Module):
{code}


def like(made):
    """Values for a tensor of that metadata."""
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


def run(argv: list[str]) -> int:
    """The command."""
    parser = reading_parser("repro", "A standalone script of one compilation.")
    parser.add_argument("id", metavar="ID", help="a compilation such as 0/1, or a function")
    parser.add_argument(
        "-o", dest="output", metavar="FILE", default="-", help="where to (default: standard output)"
    )
    options = parser.parse_args(argv)

    def make(found: Run, style: Style) -> None:
        try:
            write(options.output, script(find_compile(found, options.id)))
        except OSError as error:
            raise Unreadable(f"{options.output}: {error.strerror or error}") from error

    return answer("repro", options, make)


def script(made: Compile) -> str:
    """The script's text. Raises Unreadable for a compilation without graph, or with objects that text cannot name."""
    detail = made.detail
    if not detail.get("code"):
        raise Unreadable(f"{made.id} {made.key[2]} has no graph")
    used = {
        n: text for n, text in detail["globals"].items() if re.search(rf"\b{re.escape(n)}\b", detail["code"])
    }
    unnamed = [name for name, text in used.items() if not text]
    if unnamed:
        raise Unreadable(
            f"{made.id} {made.key[2]}: the graph uses objects that a script cannot name: {', '.join(unnamed)}"
        )
    code = re.sub(r"^(def forward)", r"\1", detail["code"], flags=re.MULTILINE)
    body = "\n".join(f"    {line}" if line.strip() else "" for line in code.splitlines())
    names = "".join(f"{name} = {text}\n" for name, text in used.items() if name != "torch")
    inputs = "\n".join(f"    like({text}),  # {name}: {where}" for name, where, text in detail["inputs"])
    return TEMPLATE.format(
        id=made.id,
        function=made.key[2],
        at=key_text(made.key),
        backend=made.backend,
        globals=names,
        code=body,
        inputs=inputs,
        traceable=not re.search(r"_set_grad_enabled", code),
    )
