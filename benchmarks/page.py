"""`docs/performance.md` of a run: how it was measured, the goals, every table, the pictures beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .goals import NO_FIGURE
from .plots import TITLES, draw
from .tables import heading, markdown_table, tables

COMMAND = "make performance"
HOW = """\
Written by `{command}` from one run; `minidynamo bench show RUN.json --page FILE` writes it again from the stored JSON. Times are
processor time of one thread without garbage collection. A ratio is the median over interleaved (ABBA) pairs in one process, `±` half of
its bootstrap 95 % interval, the number of pairs in brackets; pairs are taken until that is below 2 % or the workload's share of the run's
time is used. A/A is the same measurement of two makes of one thing: the noise of the machine at that time. torch.compile runs with the
same backend, which runs graphs as they are. Counts (calls, graphs, guards) are exact. "bare graph" is the captured graph called by
itself: the least that any front end can cost.
"""
GOALS_HOW = """\
"within noise": the interval or the A/A noise reaches the goal, the figure does not. The last column says what the figure comes from, and
where a missed one's time or memory goes.
"""


def write(document: dict[str, Any], path: Path) -> list[Path]:
    """Writes the page, and its plots into the folder beside it that has its name. Raises NoPlots, OSError."""
    folder = path.with_suffix("")
    pictures = draw(document, folder)
    path.write_text(
        text(document, [f"{folder.name}/{found.name}" for found in pictures if found.suffix == ".svg"])
    )
    return [path, *pictures]


def text(document: dict[str, Any], pictures: list[str]) -> str:
    """The page. pictures: paths from the page to the plots."""
    made = {table.key: table for table in tables(document)}
    goal = made.pop("goal", None)
    parts = ["# Performance\n", HOW.format(command=COMMAND), f"Run: {heading(document)}.\n"]
    if goal is not None:
        parts += ["## Goals\n", GOALS_HOW, markdown_table(goal)]
        missing = [row["what"] for row in document["goals"] if row["note"] == NO_FIGURE]
        parts += [f"Not measured by this run: {'; '.join(missing)}.\n"] if missing else []
    for picture in pictures:
        title = TITLES[Path(picture).stem]
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n![{title}]({picture})\n")
    for table in made.values():
        parts.append(f"## {table.title[0].upper()}{table.title[1:]}\n\n{markdown_table(table)}")
    return "\n".join(parts)
