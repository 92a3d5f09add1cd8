"""The founding example: a function with a branch on a tensor's value, called 100 times with random arguments.

Shows three graphs (before the branch, and a resume function per side), each compiled once; then what is
compiled, why the graph broke, and the guards. Exits with 1 unless all of that holds.
"""

from __future__ import annotations

import sys
from collections import Counter

import torch

import minidynamo
from minidynamo import events
from minidynamo.debug.report import FrameRow, report
from minidynamo.debug.show import make_console, table

CALLS = 100


@minidynamo.optimize("debug")
def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def example_args() -> tuple[torch.Tensor, torch.Tensor]:
    """What the function is called with."""
    return torch.randn(10), torch.randn(10)


def run() -> tuple[int, Counter[str]]:
    """Call the function; how many results equal eager's, and how often each kind of event happened."""
    kinds: Counter[str] = Counter()
    equal = 0
    with events.listen(lambda event: kinds.update([type(event).__name__])):
        for _ in range(CALLS):
            a, b = example_args()
            equal += torch.equal(toy_example(a, b), toy_example.__wrapped__(a, b))
    return equal, kinds


def checks(equal: int, kinds: Counter[str], rows: list[FrameRow]) -> list[tuple[str, object, object]]:
    """What must hold: (what, expected, found)."""
    first = [row.hits for row in rows if row.depth == 0]
    return [
        ("results equal to eager", CALLS, equal),
        ("graphs", 3, sum(row.ops > 0 for row in rows)),
        ("compilations", 3, kinds["Compiled"]),
        ("recompilations", 0, kinds["Recompile"]),
        ("graph breaks", 1, kinds["GraphBreak"]),
        ("resume functions", 2, sum(row.depth == 1 for row in rows)),
        ("lines at which they begin", 2, len({row.line for row in rows if row.depth == 1})),
        ("hits of the first entry", [CALLS - 1], first),
        ("hits of the resume functions", CALLS - 2, sum(row.hits for row in rows if row.depth == 1)),
    ]


def main() -> int:
    torch.manual_seed(0)
    console = make_console()
    console.rule(f"the graphs, as the backend gets them during {CALLS} calls", align="left")
    equal, kinds = run()
    console.rule("what was compiled", align="left")
    rows = report(toy_example, console)
    console.rule("checks", align="left")
    found = checks(equal, kinds, rows)
    cells = (("ok" if want == got else "WRONG", what, want, got) for what, want, got in found)
    console.print(table("", ("", "what", "expected", "found"), cells))
    return 0 if all(want == got for _, want, got in found) else 1


if __name__ == "__main__":
    sys.exit(main())
