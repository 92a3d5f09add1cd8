"""`minidynamo walkthrough`: one compilation of one function, a screen per stage, with the data of this very
run.

Exit codes: 0; 1 when torch or the native extension is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from minidynamo.cli.main import OneLineParser

PROGRAM = "minidynamo walkthrough"
LAST = "q"


def run(argv: list[str]) -> int:
    """The command."""
    parser = OneLineParser(
        prog=PROGRAM, description="One compilation, a screen per stage, with the data of this run."
    )
    parser.add_argument(
        "--no-pager",
        action="store_true",
        help="do not wait between screens (the default unless both ends are terminals)",
    )
    options = parser.parse_args(argv)
    try:
        from minidynamo.cli.screens import SCREENS, walk
        from minidynamo.debug.show import make_console
    except ImportError as error:
        print(f"{PROGRAM}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    wait = not options.no_pager and sys.stdin.isatty() and sys.stdout.isatty()
    shown = walk(make_console())
    for screen in SCREENS:
        screen.print(shown)
        if wait and screen is not SCREENS[-1] and ask() == LAST:
            break
    return 0


def ask(read: Callable[[str], str] = input) -> str:
    """What the reader typed between two screens; the end of input counts as "q"."""
    try:
        return read("Enter: next screen, q: quit ").strip().lower()
    except EOFError:
        return LAST
