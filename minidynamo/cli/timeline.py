"""`minidynamo timeline [FILE ...] -o t.json`: what was compiled when, for chrome://tracing and Perfetto.

Imports neither torch nor the native extension. Exit codes: 0; 2 when it cannot be written; 4 for what cannot be read.
"""

from __future__ import annotations

import sys

from minidynamo.cli.recordings import answer, reading_parser
from minidynamo.recording.chrome import chrome
from minidynamo.recording.formats import write


def run(argv: list[str]) -> int:
    """The command."""
    parser = reading_parser(
        "timeline", "What was compiled when, in the Trace Event Format.", files="arguments"
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", default="-", help="where to (default: standard output)"
    )
    options = parser.parse_args(argv)
    try:
        return answer("timeline", options, lambda found, style: write(options.output, chrome(found)))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"minidynamo timeline: {options.output}: {error.strerror or error}", file=sys.stderr)
        return 2
