"""`minidynamo why FUNC|ID`: one cause in full. A number or an id (0/1), a function, a code (MD106), or the letter of a graph break.

Imports neither torch nor the native extension. Exit codes: 0; 4 when there is no such cause.
"""

from __future__ import annotations

from minidynamo.cli.recordings import answer, reading_parser
from minidynamo.recording.model import Run
from minidynamo.recording.reader import Unreadable
from minidynamo.recording.why import break_page, find, find_break, page
from minidynamo.recording.words import Style


def run(argv: list[str]) -> int:
    """The command."""
    parser = reading_parser("why", "One cause of recompilation, or one graph break, in full.")
    parser.add_argument(
        "what", metavar="FUNC|ID", help="a number of the report, 0/1, a function, MD106, or a letter"
    )
    options = parser.parse_args(argv)

    def make(found: Run, style: Style) -> str:
        try:
            causes = find(found, options.what)
        except Unreadable:
            row = find_break(found, options.what)
            if row is None:
                raise
            return "\n".join(break_page(row))
        return "\n\n".join("\n".join(page(found, cause, style)) for cause in causes)

    return answer("why", options, make)
