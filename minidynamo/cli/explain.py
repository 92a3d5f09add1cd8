"""`minidynamo explain MD201`: what a code means, what to do, and a program that shows it. Without argument:
every code. `--write FOLDER`: a Markdown page per code, as in docs/codes.

Imports neither torch nor the native extension. Exit codes: 0; 2 for an unknown code.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import textwrap

from minidynamo.cli.main import OneLineParser
from minidynamo.cli.reason_examples import EXAMPLES
from minidynamo.cli.recompile_examples import STORMS
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
    parser.add_argument("--write", metavar="FOLDER", help="write a Markdown page per code, and an index")
    options = parser.parse_args(argv)
    if options.write is not None:
        return write(options.write)
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
    begun = [key for key in names if key.startswith(wanted)] if wanted else []
    if len(begun) > 1:
        more = ", ..." if len(begun) > 8 else ""
        return f"unknown code {text!r}; {', '.join(begun[:8])}{more} begin with it"
    near = begun or [key for key in names if wanted.startswith(key)]
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
    heading, source, instead = example_of(row)
    if source:
        lines += ["", f"  {heading}", textwrap.indent(source.rstrip(), "      ")]
    if instead:
        lines += ["", "  instead", textwrap.indent(instead.rstrip(), "      ")]
    return lines


def example_of(row: Reason) -> tuple[str, str, str]:
    """(heading, program, the same program mended) of a row; "" for what there is not."""
    storm, example = STORMS.get(row.name), EXAMPLES.get(row.name)
    if storm is not None:
        return 'example (opt is minidynamo.optimize("eager"))', storm.source, storm.instead
    if example is not None:
        return f"example: f({example.args})", example.source, example.instead
    return "", "", ""


def markdown(row: Reason) -> str:
    """The page as Markdown."""
    heading, source, instead = example_of(row)
    parts = [
        f"# {row.code} {row.name}",
        f"{KINDS.get(row.code[:3], 'other').capitalize()}.",
        f"**Text:** {template(row)}",
        f"**To do:** {row.hint}",
    ]
    if source:
        parts.append(f"{heading.capitalize()}\n\n```python\n{source.rstrip()}\n```")
    if instead:
        parts.append(f"Instead\n\n```python\n{instead.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """File name -> text of every Markdown page. Rows with one code share a page."""
    made: dict[str, list[str]] = {}
    for row in sorted(REASONS.values(), key=lambda r: r.code):
        made.setdefault(f"{row.code}.md", []).append(markdown(row))
    index = [
        f"* [{row.code}]({row.code}.md) {template(row)}"
        for row in sorted(REASONS.values(), key=lambda r: r.code)
    ]
    head = "# Codes\n\nMD1xx: recompilations. MD2xx: graph breaks. MD3xx: frames that are not compiled.\n\n"
    return {
        "index.md": head + "\n".join(index) + "\n",
        **{name: "\n".join(texts) for name, texts in made.items()},
    }


def write(folder: str) -> int:
    """Write the pages; those of codes that are gone are removed."""
    try:
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            if re.fullmatch(r"MD\d+\.md", name) and name not in pages():
                os.remove(os.path.join(folder, name))
        for name, text in pages().items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(text)
    except OSError as error:
        print(f"{PROGRAM}: {folder}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0
