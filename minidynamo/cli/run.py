"""`minidynamo run [options] SCRIPT|-m MODULE|-c CODE [arguments]`: run a program and say what was compiled, and why again.

The program runs as under the interpreter: its output, exit code, tracebacks, `sys.argv` and `__main__` are its own; the summary goes to
stderr when it has ended. Exit codes: the program's own when it is not 0; else 0, 2 for wrong usage, 3 for a gate that failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from minidynamo.cli import program
from minidynamo.cli.main import OneLineParser
from minidynamo.recording.recorder import Recorder

PROGRAM = "minidynamo run"
GATE_FAILED = 3


def parser() -> OneLineParser:
    """The command's arguments."""
    made = OneLineParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [OPTION ...] SCRIPT | -m MODULE | -c CODE [ARGUMENT ...]",
        description="Runs a program and tells what was compiled, why again, and why graphs break (on stderr, at its end).",
        allow_abbrev=False,
    )
    add = made.add_argument
    add(
        "-o",
        dest="output",
        metavar="FILE",
        help="the recording (default: a file that `report` finds); %%p: the process id",
    )
    add("--html", metavar="FILE", help="also a report for browsers, one file")
    add("--json", metavar="FILE", help="also the summary as JSON; - is standard output")
    add("--chrome", metavar="FILE", help="also a timeline for chrome://tracing or Perfetto")
    add("--torch-trace", metavar="DIR", help="also torch's structured log, which tlparse reads")
    add("--fail-on-recompile", type=int, metavar="N", help="exit 3 when there are more than N recompilations")
    add("--fail-on-graph-break", type=int, metavar="N", help="exit 3 when graphs break at more than N places")
    add("--fail-on-limit", action="store_true", help="exit 3 when a function reaches the cache limit")
    add("--max-compile-seconds", type=float, metavar="S", help="exit 3 when compiling takes longer")
    add(
        "--as-torch-compile",
        action="store_true",
        help="the program's own torch.compile(...) goes to minidynamo",
    )
    add(
        "--only", action="append", default=[], metavar="GLOB", help="record functions whose name or file fits"
    )
    add("--backend", metavar="NAME", help="the backend of everything that is optimized")
    add("-q", "--quiet", action="store_true", help="no summary")
    add("-v", "--verbose", action="store_true", help="every cause in full")
    add("--color", choices=("auto", "always", "never"), default="auto")
    add("--width", type=int, metavar="N", help="columns of the summary")
    add("-m", dest="module", metavar="MODULE", help="a module, as `python -m`")
    add("-c", dest="code", metavar="CODE", help="program text, as `python -c`")
    add("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def split(argv: list[str]) -> tuple[list[str], list[str]]:
    """(options up to the program, the program and its arguments). What follows SCRIPT, MODULE or CODE is the program's."""
    valued = {
        "-o",
        "--html",
        "--json",
        "--chrome",
        "--torch-trace",
        "--fail-on-recompile",
        "--fail-on-graph-break",
    }
    valued |= {"--max-compile-seconds", "--only", "--backend", "--color", "--width"}
    index = 0
    while index < len(argv):
        text = argv[index]
        if text in ("-m", "-c"):
            return argv[: index + 2], argv[index + 2 :]
        if text == "--":
            return argv[:index], argv[index + 1 :]
        if text == "-" or not text.startswith("-"):
            return argv[:index], argv[index:]
        index += 2 if text in valued else 1
    return argv, []


def run(argv: list[str]) -> int:
    """The command."""
    own, rest = split(argv)
    options = parser().parse_args(own)
    found = _program(options, rest)
    if isinstance(found, int):
        return found
    trouble = _unusable(options)
    if trouble:
        print(f"{PROGRAM}: {trouble}", file=sys.stderr)
        return 2
    from minidynamo.recording.reader import default_path

    path = options.output or default_path()
    if "%p" in path:  # processes that the program starts record too
        os.environ.setdefault("MINIDYNAMO_TRACE", os.path.abspath(path))
    recorder = Recorder(path, only=options.only, command=found.argv).start()
    from minidynamo.recording import session

    session.own(recorder)
    closing = _prepare(options)
    code = program.execute(found)
    recorder.stop(code)
    closing()
    return finish(options, recorder, code)


def _program(options: Any, rest: list[str]) -> program.Program | int:
    try:
        if options.module is not None:
            return program.module(options.module, rest)
        if options.code is not None:
            return program.command(options.code, rest)
        if not rest:
            print(f"{PROGRAM}: what to run? SCRIPT, -m MODULE or -c CODE", file=sys.stderr)
            return 2
        return program.script(rest[0], rest[1:])
    except program.NotRunnable as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    except SyntaxError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return 1


def _unusable(options: Any) -> str:
    """What is wrong with the options, "" for nothing."""
    if options.backend is not None:
        from minidynamo.backends.registry import lookup_backend
        from minidynamo.exc import InvalidBackend

        try:
            lookup_backend(options.backend)
        except InvalidBackend as error:
            return " ".join(str(error).split())
    for name in ("output", "html", "json", "chrome"):
        given = getattr(options, name)
        folder = os.path.dirname(given) if given and given != "-" else ""
        if folder and not os.path.isdir(folder):
            return f"no folder {folder!r} for {'-o' if name == 'output' else f'--{name}'}"
    return ""


def _prepare(options: Any) -> Any:
    """Switches that must be set before the program begins; the result is called when it has ended."""
    if options.backend is not None:
        from minidynamo import config

        config.backend = options.backend
    if options.as_torch_compile:
        import torch

        import minidynamo

        torch.compile = minidynamo.compile  # type: ignore[assignment]
        torch.compiler.set_stance = minidynamo.set_stance  # type: ignore[assignment]
    if options.torch_trace is not None:
        from minidynamo.debug.torch_trace import start

        return start(options.torch_trace)
    return lambda: None


def finish(options: Any, recorder: Recorder, code: int) -> int:
    """Summary, files, gates. The exit code."""
    from minidynamo.recording.model import build
    from minidynamo.recording.reader import expand, read

    recordings: list[Any] = [recorder.records]
    problems: list[str] = []
    if options.output and "%p" in options.output:
        recordings, problems = read(expand([options.output]))
    result = build(recordings, [*problems, *([recorder.failed] if recorder.failed else [])])
    if not options.quiet:
        _print(options, result)
    _files(options, result)
    failed = gates(options, result)
    for text in failed:
        print(f"minidynamo: {text}", file=sys.stderr)
    return code or (GATE_FAILED if failed else 0)


def _print(options: Any, result: Any) -> None:
    from minidynamo.recording.summary import lines
    from minidynamo.recording.why import break_page, page
    from minidynamo.recording.words import style_for

    sys.stdout.flush()
    style = style_for(sys.stderr, options.color, options.width)
    shown = lines(result, style, everything=options.verbose)
    if options.verbose:
        for cause in result.causes:
            shown += ["", *page(result, cause, style)]
        for row in result.breaks:
            shown += ["", *break_page(row)]
    if shown:
        print("\n".join(shown), file=sys.stderr)


def _files(options: Any, result: Any) -> None:
    from minidynamo.recording import formats

    for name, path in (("html", options.html), ("json", options.json), ("chrome", options.chrome)):
        if path is None:
            continue
        text = formats.FORMATS[name].make(result)
        try:
            formats.write(path, text)
        except OSError as error:
            print(f"{PROGRAM}: {path}: {error.strerror or error}", file=sys.stderr)


def gates(options: Any, result: Any) -> list[str]:
    """What the gates have to say; nothing when all hold."""
    out = []
    again, places = len(result.avoidable), len(result.breaks)
    if options.fail_on_recompile is not None and again > options.fail_on_recompile:
        out.append(f"{again} recompilations, at most {options.fail_on_recompile} are allowed")
    if options.fail_on_graph_break is not None and places > options.fail_on_graph_break:
        out.append(f"graphs break at {places} places, at most {options.fail_on_graph_break} are allowed")
    if options.fail_on_limit and result.limits:
        names = ", ".join(dict.fromkeys(limit.key[2] for limit in result.limits))
        out.append(f"the cache limit was reached by {names}")
    if options.max_compile_seconds is not None and result.seconds > options.max_compile_seconds:
        out.append(
            f"compiling took {result.seconds:.2f} s, at most {options.max_compile_seconds:g} s are allowed"
        )
    return out


__all__ = ["finish", "gates", "parser", "run", "split"]
