"""`minidynamo explain MD201`: what a code means, what to do, and a program that shows it. Without argument:
every code.

Imports neither torch nor the native extension. Exit codes: 0; 2 for an unknown code.
"""

from __future__ import annotations

import difflib
import re
import sys
import textwrap

from minidynamo.cli.main import OneLineParser
from minidynamo.cli.reason_examples import EXAMPLES
from minidynamo.reasons import REASONS, Reason

PROGRAM = "minidynamo explain"

# First digit of the code -> what kind of thing it is.
KINDS = {
    "MD1": "recompilation",
    "MD2": "graph break: the graph ends here, plain Python runs this operation, a resume function goes on",
    "MD3": "not compiled: this frame, or this call, runs as plain Python",
}


def run(argv: list[str]) -> int:
    """The command."""
    parser = OneLineParser(prog=PROGRAM, description="What a code in a message means, and what to do.")
    parser.add_argument(
        "code", nargs="?", help="a code such as MD201 or a name such as TENSOR_BRANCH; default: list all"
    )
    options = parser.parse_args(argv)
    if options.code is None:
        print("\n".join(overview()))
        return 0
    found = find(options.code)
    if not found:
        print(f"{PROGRAM}: {unknown(options.code)}", file=sys.stderr)
        return 2
    print("\n\n".join("\n".join(page(row)) for row in found))
    return 0


def find(text: str) -> list[Reason]:
    """The rows whose code or name is `text`, in any case."""
    wanted = text.upper()
    return [row for row in REASONS.values() if wanted in (row.code, row.name)]


def unknown(text: str) -> str:
    """One line that names the nearest code."""
    names = {key: row for row in REASONS.values() for key in (row.code, row.name)}
    wanted = text.upper()
    near = [key for key in names if wanted.startswith(key)]
    near = near or difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    if not near:
        return f"unknown code {text!r}; `{PROGRAM}` lists all"
    return f"unknown code {text!r}; did you mean {near[0]} ({template(names[near[0]])})?"


def template(row: Reason) -> str:
    """The row's text with its holes as <name>."""
    return re.sub(r"\{(\w+)\}", r"<\1>", row.text)


def overview() -> list[str]:
    """One line per code, in order."""
    return [
        f"{row.code}  {row.name:<22} {template(row)}"
        for row in sorted(REASONS.values(), key=lambda r: r.code)
    ]


def page(row: Reason) -> list[str]:
    """The lines about one code."""
    lines = [
        f"{row.code}  {row.name}",
        f"  kind   {KINDS.get(row.code[:3], 'other')}",
        f"  text   {template(row)}",
        f"  to do  {row.hint}",
    ]
    example = EXAMPLES.get(row.name)
    if example is not None:
        lines += ["", f"  example: f({example.args})", textwrap.indent(example.source.rstrip(), "      ")]
        if example.instead:
            lines += ["", "  instead", textwrap.indent(example.instead.rstrip(), "      ")]
    return lines
