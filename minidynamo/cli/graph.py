"""`minidynamo graph ID`: the graph of one compilation as text, SVG or DOT, from a recording.

Imports neither torch nor the native extension. Exit codes: 0; 4 for what cannot be read.
"""

from __future__ import annotations

from minidynamo.cli.recordings import answer, reading_parser
from minidynamo.recording import svg
from minidynamo.recording.formats import write
from minidynamo.recording.model import Run
from minidynamo.recording.reader import Unreadable
from minidynamo.recording.why import find_compile
from minidynamo.recording.words import Style

FORMS = {"svg": svg.svg, "dot": svg.dot}


def run(argv: list[str]) -> int:
    """The command."""
    parser = reading_parser("graph", "The graph of one compilation.")
    parser.add_argument("id", metavar="ID", help="a compilation such as 0/1, or a function")
    form = parser.add_mutually_exclusive_group()
    for name in ("svg", "dot", "text"):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name)
    parser.add_argument("-o", dest="output", metavar="FILE", help="where to (default: standard output)")
    options = parser.parse_args(argv)

    def make(found: Run, style: Style) -> str | None:
        made = find_compile(found, options.id)
        nodes = made.detail.get("nodes")
        if not nodes:
            raise Unreadable(f"{made.id} {made.key[2]} has no graph")
        title = f"{made.id} {made.key[2]}"
        text = FORMS[options.form](nodes, title) if options.form in FORMS else svg.text(nodes)
        if options.output is None:
            return text
        try:
            write(options.output, text)
        except OSError as error:
            raise Unreadable(f"{options.output}: {error.strerror or error}") from error
        return None

    return answer("graph", options, make)
