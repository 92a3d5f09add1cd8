"""The command line of the harness.

    minidynamo bench [SUITE...] [--vs torch|eager|FILE] [-o r.json] [--md r.md] [--svg DIR] [--page FILE] [--quick]
    minidynamo bench compare BASE.json NEW.json [--fail 5%]
    minidynamo bench show RUN.json [--md r.md] [--svg DIR] [--page FILE]

Exit codes: 0; 1 a workload failed; 2 wrong usage or an unreadable file; 3 a regression.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import page, results, tables
from .comparing import compare
from .plots import NoPlots, draw
from .workloads import SUITES


class OneLineParser(argparse.ArgumentParser):
    """Wrong usage is one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def percent(text: str) -> float:
    """`5%` or `0.05` as 0.05."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 5% or 0.05") from error
    if not 0 < value < 10:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1000%")
    return value


def seconds(text: str) -> float:
    """A positive number."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from error
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds between 0 and a million")
    return value


def suite(text: str) -> str:
    if text not in SUITES:
        raise argparse.ArgumentTypeError(f"no suite {text!r}; suites are {', '.join(SUITES)}")
    return text


def parser() -> OneLineParser:
    made = OneLineParser(
        prog="minidynamo bench",
        description="What minidynamo costs and gains.",
        epilog="`minidynamo bench compare BASE NEW` compares two runs; `minidynamo bench show RUN` renders a stored one.",
    )
    made.add_argument(
        "suites", nargs="*", type=suite, metavar="SUITE", help=f"{', '.join(SUITES)} (default: all)"
    )
    made.add_argument(
        "--vs",
        default="torch",
        metavar="torch|eager|FILE",
        help="compare with torch.compile too (default), with eager only, or also with a stored run",
    )
    made.add_argument("--quick", action="store_true", help="fewer workloads, fewer pairs")
    made.add_argument("--budget", type=seconds, metavar="SECONDS", help="time for the whole run")
    made.add_argument("--counters", action="store_true", help="exact counters only, no times")
    made.add_argument("--only", metavar="TEXT", help="workloads whose name contains TEXT")
    made.add_argument("--fail", type=percent, default=0.05, metavar="5%%", help="threshold with --vs FILE")
    made.add_argument("-o", type=Path, metavar="FILE", dest="output", help="write JSON")
    made.add_argument(
        "--portable",
        type=Path,
        metavar="FILE",
        help="write counters and ratios only, for a committed baseline",
    )
    outputs(made)
    made.add_argument("--plain", action="store_true", help="tab-separated lines also on a terminal")
    return made


def outputs(made: argparse.ArgumentParser) -> None:
    """The options that say what is written of a run."""
    made.add_argument("--md", type=Path, metavar="FILE", help="write Markdown")
    made.add_argument("--svg", type=Path, metavar="DIR", help="write plots (SVG and PNG)")
    made.add_argument(
        "--page", type=Path, metavar="FILE", help="write the page of docs/, its plots beside it"
    )


def show_parser() -> OneLineParser:
    made = OneLineParser(prog="minidynamo bench show", description="Renders a stored run.")
    made.add_argument("run", type=Path)
    made.add_argument("--plain", action="store_true", help="tab-separated lines also on a terminal")
    outputs(made)
    return made


def compare_parser() -> OneLineParser:
    made = OneLineParser(
        prog="minidynamo bench compare", description="Exit 3 if NEW is worse than BASE beyond doubt."
    )
    made.add_argument("base", type=Path)
    made.add_argument("new", type=Path)
    made.add_argument(
        "--fail",
        type=percent,
        default=0.05,
        metavar="5%%",
        help="smallest slowdown that counts (default 5%%)",
    )
    return made


def told(base: dict[str, Any], new: dict[str, Any], threshold: float) -> int:
    """Prints what differs; 3 if anything is worse."""
    changes = compare(base, new, threshold)
    for change in changes:
        print(change)
    worse = sum(change.worse for change in changes)
    rows = {row["name"] for row in base["workloads"]} & {row["name"] for row in new["workloads"]}
    print(
        f"{worse} regression{'s' * (worse != 1)} in {len(rows)} workloads (threshold {threshold:.0%}, beyond chance and A/A noise)"
    )
    return 3 if worse else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line (default `sys.argv[1:]`)."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words[:1] == ["compare"]:
            options = compare_parser().parse_args(words[1:])
            return told(results.read(options.base), results.read(options.new), options.fail)
        if words[:1] == ["show"]:
            options = show_parser().parse_args(words[1:])
            return rendered(results.read(options.run), options)
        return measure(parser().parse_args(words))
    except (results.Unreadable, NoPlots) as error:
        print(f"minidynamo bench: {error}", file=sys.stderr)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"minidynamo bench: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
    return 2


def rendered(document: dict[str, Any], options: argparse.Namespace) -> int:
    """The run on the terminal and in the files that were asked for. Raises NoPlots, OSError."""
    if options.plain or not sys.stdout.isatty():
        print(tables.plain(document))
    else:
        tables.print_rich(document)
    if options.md:
        options.md.write_text(tables.markdown(document))
    if options.svg:
        draw(document, options.svg)
    if options.page:
        page.write(document, options.page)
    return 0


def measure(options: argparse.Namespace) -> int:
    base = None if options.vs in ("torch", "eager") else results.read(Path(options.vs))
    from .progress import shown
    from .runner import Plan, run

    targets = (options.output, options.portable, options.md, options.page)
    for path in (*(target.parent for target in targets if target), *(p for p in (options.svg,) if p)):
        path.mkdir(parents=True, exist_ok=True)  # what cannot be written is found before anything is measured
    plan = Plan(
        options.suites or list(SUITES),
        options.quick,
        options.vs != "eager",
        options.only,
        options.counters,
        options.budget,
    )
    with shown() as progress:
        document = run(plan, progress)
    if not document["workloads"]:
        print("minidynamo bench: no workload fits; see benchmarks/suites", file=sys.stderr)
        return 2
    if options.output:
        results.write(document, options.output)
    if options.portable:
        results.write(results.portable(document), options.portable)
    rendered(document, options)
    failed = sum("error" in row for row in document["workloads"])
    compared = told(base, document, options.fail) if base is not None else 0
    return compared or (1 if failed else 0)
