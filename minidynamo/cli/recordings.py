"""What the commands that read a recording share: their arguments, loading, exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from minidynamo.cli.main import OneLineParser
from minidynamo.recording.model import Run, build
from minidynamo.recording.reader import Unreadable, default_path, read
from minidynamo.recording.words import Style, standard_style

UNREADABLE = 4


def reading_parser(name: str, description: str, *, files: str = "option") -> OneLineParser:
    """A parser with the arguments of every reading command. files: "option" (-i FILE) or "arguments" (FILE ...)."""
    parser = OneLineParser(prog=f"minidynamo {name}", description=description)
    where = "the recording (default: that of the last `minidynamo run`); %%p: of every process"
    if files == "arguments":
        parser.add_argument("files", nargs="*", metavar="FILE", help=where)
    else:
        parser.add_argument("-i", dest="files", action="append", metavar="FILE", help=where)
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--width", type=int, metavar="N", help="columns")
    return parser


def load(files: list[str] | None) -> Run:
    """The rows of the recordings. Raises Unreadable."""
    if not files:
        import os

        path = default_path()
        if not os.path.exists(path):
            raise Unreadable("nothing is recorded yet: `minidynamo run SCRIPT` records a program")
        files = [path]
    return build(*read(files))


def answer(name: str, options: Any, make: Callable[[Run, Style], str | None]) -> int:
    """Print what `make` gives for the recording. Exit codes: 0; 4 for what cannot be read, in one line."""
    try:
        text = make(load(options.files), standard_style(options.color, options.width))
    except Unreadable as error:
        print(f"minidynamo {name}: {error}", file=sys.stderr)
        return UNREADABLE
    if text:
        print(text)
    return 0
