"""`minidynamo report [FILE ...]`: a recording as a table, lines, JSON, Markdown, HTML, annotations or JUnit XML.

Imports neither torch nor the native extension. Exit codes: 0; 2 for wrong usage; 4 for a recording that cannot be read.
"""

from __future__ import annotations

import sys

from minidynamo.cli.recordings import answer, reading_parser
from minidynamo.recording import formats
from minidynamo.recording.model import Run
from minidynamo.recording.summary import head
from minidynamo.recording.words import Style

NAMES = ("rich", "plain", "json", "md", "html", "github", "junit")


def run(argv: list[str]) -> int:
    """The command."""
    parser = reading_parser("report", "What was compiled, and why again.", files="arguments")
    parser.add_argument("--format", choices=NAMES, help="default: rich on a terminal, else plain")
    parser.add_argument("--sort", choices=("cost", "count"), default="cost", help="order of the causes")
    parser.add_argument("-o", dest="output", metavar="FILE", help="where to (default: standard output)")
    parser.add_argument("--html", metavar="FILE", help="the same as --format html -o FILE")
    options = parser.parse_args(argv)
    if options.html is not None:
        options.format, options.output = "html", options.html

    def make(found: Run, style: Style) -> str | None:
        name = options.format or ("rich" if style.terminal or style.colour else "plain")
        if name == "rich":
            text = formats.rich(found, style, options.sort)
        elif name == "plain":
            text = formats.text(found, options.sort)
            if not text:
                print(f"minidynamo report: nothing to mend: {head(found)}", file=sys.stderr)
        else:
            text = formats.FORMATS[name].make(found)
        for problem in found.problems:
            print(f"minidynamo report: note: {problem}", file=sys.stderr)
        if options.output is None:
            return text
        formats.write(options.output, text)
        return None

    try:
        return answer("report", options, make)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"minidynamo report: {options.output}: {error.strerror or error}", file=sys.stderr)
        return 2
