"""`minidynamo repro ID -o repro.py`: a standalone script of one compilation: its graph, inputs like those seen, the backend.

Imports neither torch nor the native extension; the script does. Exit codes: 0; 4 for what cannot be read or made.
"""

from __future__ import annotations

from minidynamo.cli.recordings import answer, reading_parser
from minidynamo.recording.formats import write
from minidynamo.recording.model import Run
from minidynamo.recording.reader import Unreadable
from minidynamo.recording.repro import script
from minidynamo.recording.why import find_compile
from minidynamo.recording.words import Style, key_text


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
            made = find_compile(found, options.id)
            text = script(made.id, made.key[2], key_text(made.key), made.backend, made.detail)
            write(options.output, text)
        except OSError as error:
            raise Unreadable(f"{options.output}: {error.strerror or error}") from error

    return answer("repro", options, make)
