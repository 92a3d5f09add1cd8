"""The command line: one table of commands. A command's module is imported only when the command runs.

Exit codes: what the command returns; 2 for wrong usage; 1 for an error of minidynamo's own, told in one line.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from minidynamo.exc import MinidynamoError


@dataclass(frozen=True, slots=True)
class Command:
    """One row: the module that has `run(argv: list[str]) -> int`, and the line that `--help` prints."""

    module: str
    help: str


COMMANDS: dict[str, Command] = {
    "run": Command(
        "minidynamo.cli.run", "run a program and tell what was compiled, and why again: run SCRIPT"
    ),
    "report": Command("minidynamo.cli.report", "the same from a recording, in other formats"),
    "why": Command("minidynamo.cli.why", "one cause in full: why 1, why FUNC"),
    "diff": Command("minidynamo.cli.diff", "two runs, or two entries: diff A B, diff 0/1 0/2"),
    "graph": Command("minidynamo.cli.graph", "the graph of a compilation: graph 0/1 --svg"),
    "code": Command("minidynamo.cli.code", "bytecode before and after, and guards: code 0/1"),
    "timeline": Command("minidynamo.cli.timeline", "a timeline for chrome://tracing and Perfetto"),
    "repro": Command("minidynamo.cli.repro", "a standalone script of one compilation: repro 0/1 -o repro.py"),
    "doctor": Command("minidynamo.cli.doctor", "what of this installation is present, missing or slower"),
    "walkthrough": Command("minidynamo.cli.walkthrough", "one compilation, one screen per stage"),
    "trace": Command("minidynamo.cli.trace", "the stages of one function: trace FILE:FUNC --stage=graph"),
    "explain": Command("minidynamo.cli.explain", "what an MD code means and what to do: explain MD201"),
    "bench": Command("minidynamo.cli.bench", "what it costs and gains: bench --quick, bench compare A B"),
    "tables": Command("minidynamo.cli.tables", "every dispatch table"),
    "completion": Command("minidynamo.cli.completion", "completion for bash, zsh or fish"),
}


class OneLineParser(argparse.ArgumentParser):
    """Wrong usage is one line on stderr, with what may have been meant, and exit code 2. Commands use it for their own arguments too."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}{self._meant(message)}\n")

    def _meant(self, message: str) -> str:
        """`; did you mean 'x'?` for a wrong choice and for an unknown option."""
        choice = INVALID_CHOICE.search(message)
        if choice is not None:
            wrong, known = choice[1], [text.strip(" '") for text in choice[2].split(",")]
        elif message.startswith(UNKNOWN_OPTION):
            words = message.removeprefix(UNKNOWN_OPTION).split()
            wrong = next((word for word in words if word.startswith("-")), "").partition("=")[0]
            known = list(self._option_string_actions)
        else:
            return ""
        near = difflib.get_close_matches(wrong, known, n=1)
        return f"; did you mean {near[0]!r}?" if near else ""


INVALID_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from ([^)]*)\)")
UNKNOWN_OPTION = "unrecognized arguments: "


def available() -> dict[str, Command]:
    """The commands whose module is part of this installation, in the table's order."""
    return {name: row for name, row in COMMANDS.items() if importlib.util.find_spec(row.module) is not None}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line (default `sys.argv[1:]`) and returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    position = next((i for i, text in enumerate(arguments) if not text.startswith("-")), len(arguments))
    own, rest = arguments[:position], arguments[position:]
    try:
        parser = _parser(available())
        options = parser.parse_args(own)
        if options.version:
            print(f"minidynamo {_version()}")
            return 0
        if not rest:
            parser.print_help()
            return 2
        code = _run(rest[0], rest[1:])
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return _complain(stop.code) if isinstance(stop.code, str) else int(stop.code or 0)
    except MinidynamoError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # The reader went away: nothing more to say, and nothing for the interpreter to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130


def _parser(commands: dict[str, Command]) -> OneLineParser:
    width = max(map(len, commands), default=0)
    rows = "\n".join(f"  {name:<{width}}  {row.help}" for name, row in commands.items())
    parser = OneLineParser(
        prog="minidynamo",
        usage="minidynamo [-h] [--version] COMMAND [ARGUMENT ...]",
        description="A frame interceptor for PyTorch programs.",
        epilog=f"commands:\n{rows}\n\n`minidynamo COMMAND --help` says more about one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    return parser


def _run(name: str, argv: list[str]) -> int:
    commands = available()
    if name not in commands:
        near = difflib.get_close_matches(name, commands, n=2, cutoff=0.7)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?" if near else f"commands are {', '.join(commands)}"
        )
        print(f"minidynamo: unknown command {name!r}; {hint}", file=sys.stderr)
        return 2
    return importlib.import_module(commands[name].module).run(argv)


def _complain(message: str) -> int:
    print(f"minidynamo: {' '.join(message.split())}", file=sys.stderr)
    return 1


def _version() -> str:
    import minidynamo

    return minidynamo.__version__
