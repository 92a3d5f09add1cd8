"""The order in which guards are checked."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable

from minidynamo.guards.rows import KINDS, GuardRow
from minidynamo.sources import Source


def order(rows: Iterable[GuardRow]) -> list[GuardRow]:
    """Every row follows the rows on proper prefixes of its paths; among the ready ones the cheap kind goes
    first, then the shorter path, then the one that was made earlier.

    Nothing waits for a row that relates several paths (two of them could wait for each other).
    """
    rows = list(rows)
    open_rows: dict[Source, int] = defaultdict(int)  # path -> rows on it alone that are not placed yet
    for row in rows:
        if len(row.paths()) == 1:
            open_rows[row.path] += 1
    waiting: dict[Source, list[int]] = defaultdict(list)  # path -> rows that wait for it
    blockers: list[int] = []
    ready: list[tuple[int, int, int]] = []

    def push(number: int) -> None:
        row = rows[number]
        heapq.heappush(ready, (KINDS[row.kind].cost, row.path.depth(), number))

    for number, row in enumerate(rows):
        prefixes = {p for path in row.paths() for p in path.prefixes() if p in open_rows}
        blockers.append(len(prefixes))
        for prefix in prefixes:
            waiting[prefix].append(number)
        if not prefixes:
            push(number)
    placed: list[GuardRow] = []
    while ready:
        row = rows[heapq.heappop(ready)[2]]
        placed.append(row)
        if len(row.paths()) > 1:
            continue
        open_rows[row.path] -= 1
        if open_rows[row.path] == 0:
            for number in waiting[row.path]:
                blockers[number] -= 1
                if blockers[number] == 0:
                    push(number)
    return placed
