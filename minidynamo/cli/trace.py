"""`minidynamo trace FILE:FUNC`: call a function once and show what each stage of its compilation made.

Exit codes: 0; 1 when torch or the native extension is missing; 2 when the target or its arguments are not
usable, or the function raises.
"""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING

from minidynamo.cli.main import OneLineParser
from minidynamo.cli.target import BadTarget, arguments, load_target

if TYPE_CHECKING:
    from minidynamo.cli.stages import Traced

PROGRAM = "minidynamo trace"
STAGES = ("lift", "step", "graph", "guards", "code", "resume")


def run(argv: list[str]) -> int:
    """The command."""
    parser = OneLineParser(
        prog=PROGRAM, description="Call a function once and show the stages of its compilation."
    )
    parser.add_argument("target", metavar="FILE:FUNC", help="FUNC may be dotted, e.g. Model.forward")
    parser.add_argument(
        "--stage", default=",".join(STAGES), help=f"some of {','.join(STAGES)} (default: all)"
    )
    parser.add_argument("--args", help="arguments as in a call, e.g. --args 'torch.randn(3), 2'")
    parser.add_argument("--backend", default="eager", help="name of a registered backend (default: eager)")
    options = parser.parse_args(argv)
    try:
        stages = stage_names(options.stage)
        traced = trace(options.target, options.args, options.backend)
    except BadTarget as error:
        return _complain(str(error), 2)
    except ImportError as error:
        return _complain(" ".join(str(error).split()), 1)
    traced.show(stages)
    return 0


def stage_names(text: str) -> list[str]:
    """The stages that `--stage` lists, in its order. Raises BadTarget with the nearest name for an unknown
    one."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in STAGES:
            near = difflib.get_close_matches(name, STAGES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"stages are {', '.join(STAGES)}"
            raise BadTarget(f"unknown stage {name!r}; {hint}")
    if not wanted:
        raise BadTarget(f"no stage was named; stages are {', '.join(STAGES)}")
    return wanted


def trace(spec: str, args: str | None, backend: str) -> Traced:
    """Call FILE:FUNC once, compiled. Raises BadTarget, and ImportError when torch or the native extension is
    missing."""
    from minidynamo.cli.stages import traced_call

    target = load_target(spec)
    positional, keywords = arguments(target, args)
    return traced_call(target, positional, keywords, backend)


def _complain(message: str, code: int) -> int:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return code
