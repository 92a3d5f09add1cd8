"""The order in which guards are checked."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from minidynamo.guards.rows import KINDS, GuardRow
from minidynamo.sources import Source


class _Paths:
    """Numbers for paths, each hashed once: the depth of each, the number of its parent, and the rows on it alone."""

    def __init__(self) -> None:
        self._numbers: dict[Source, int] = {}
        self.parents: list[int] = []  # -1 for a root
        self.depths: list[int] = []

    def number(self, path: Source) -> int:
        known = self._numbers.get(path)
        if known is None:
            parent = path.parent()
            above = -1 if parent is None else self._numbers.get(parent, -1)
            if parent is not None and above < 0:
                above = self.number(parent)
            known = self._numbers[path] = len(self.parents)
            self.parents.append(above)
            self.depths.append(0 if above < 0 else self.depths[above] + 1)
        return known


def order(rows: Iterable[GuardRow]) -> list[GuardRow]:
    """Every row follows the rows on proper prefixes of its paths; among the ready ones the cheap kind goes
    first, then the shorter path, then the one that was made earlier.

    Nothing waits for a row that relates several paths (two of them could wait for each other).
    """
    rows = list(rows)
    paths = _Paths()
    own = [
        [paths.number(path) for path in (row.paths() if KINDS[row.kind].relates else (row.path,))]
        for row in rows
    ]
    unplaced = [0] * len(paths.parents)  # path -> rows on it alone that are not placed yet
    for numbers in own:
        if len(numbers) == 1:
            unplaced[numbers[0]] += 1
    # Path -> the next prefix that has rows, -1 for none. Its rows follow those of the prefixes above it, so to wait for them is
    # to wait for all. (A parent has a smaller number.)
    above = [-1] * len(unplaced)
    for number, parent in enumerate(paths.parents):
        above[number] = parent if parent < 0 or unplaced[parent] else above[parent]
    waiting: list[list[int]] = [[] for _ in unplaced]  # path -> rows that wait for it
    blockers = [0] * len(rows)
    ranks = [
        (KINDS[row.kind].cost, paths.depths[numbers[0]], i) for i, (row, numbers) in enumerate(zip(rows, own))
    ]
    ready: list[tuple[int, int, int]] = []
    for row, numbers in enumerate(own):
        for prefix in {above[number] for number in numbers}:
            if prefix >= 0:
                blockers[row] += 1
                waiting[prefix].append(row)
        if not blockers[row]:
            ready.append(ranks[row])
    heapq.heapify(ready)
    placed: list[GuardRow] = []
    while ready:
        row = heapq.heappop(ready)[2]
        placed.append(rows[row])
        if len(own[row]) > 1:
            continue
        path = own[row][0]
        unplaced[path] -= 1
        if not unplaced[path]:
            for blocked in waiting[path]:
                blockers[blocked] -= 1
                if not blockers[blocked]:
                    heapq.heappush(ready, ranks[blocked])
    return placed
