"""The order in which guards are checked."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from minidynamo.guards.rows import KINDS, GuardRow
from minidynamo.sources import Source


class _Paths:
    """Numbers for paths: the depth of each, and the number of its parent."""

    def __init__(self) -> None:
        self.numbers: dict[Source, int] = {}
        self.parents: list[int] = []  # -1 for a root
        self.depths: list[int] = []

    def number(self, path: Source) -> int:
        numbers = self.numbers
        if path in numbers:
            return numbers[path]
        parent = path.parent()
        above = -1
        if parent is not None:
            above = numbers[parent] if parent in numbers else self.number(parent)
        known = numbers[path] = len(numbers)
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
    numbers = paths.numbers
    several: dict[int, set[int]] = {}  # a row that relates several paths -> these
    for index, row in enumerate(rows):
        if KINDS[row.kind].relates:
            several[index] = {paths.number(path) for path in row.paths()}
        elif row.path not in numbers:
            paths.number(row.path)
    # row -> its path, -1 for one that relates several
    own = [-1 if index in several else numbers[row.path] for index, row in enumerate(rows)]
    unplaced = [0] * len(paths.parents)  # path -> rows on it alone that are not placed yet
    for number in own:
        if number >= 0:
            unplaced[number] += 1
    # Path -> the next prefix that has rows, -1 for none. Its rows follow those of the prefixes above it, so to wait for them is
    # to wait for all. (A parent has a smaller number.)
    above = [-1] * len(unplaced)
    for number, parent in enumerate(paths.parents):
        above[number] = parent if parent < 0 or unplaced[parent] else above[parent]
    waiting: list[list[int]] = [[] for _ in unplaced]  # path -> rows that wait for it
    blockers = [0] * len(rows)
    depths = paths.depths
    ranks = [(KINDS[row.kind].cost, depths[numbers[row.path]], index) for index, row in enumerate(rows)]
    ready: list[tuple[int, int, int]] = []
    for index, number in enumerate(own):
        if number < 0:
            prefixes = {above[each] for each in several[index]} - {-1}
            blockers[index] = len(prefixes)
            for prefix in prefixes:
                waiting[prefix].append(index)
        elif above[number] >= 0:
            blockers[index] = 1
            waiting[above[number]].append(index)
        if not blockers[index]:
            ready.append(ranks[index])
    heapq.heapify(ready)
    placed: list[GuardRow] = []
    while ready:
        index = heapq.heappop(ready)[2]
        placed.append(rows[index])
        number = own[index]
        if number < 0:
            continue
        unplaced[number] -= 1
        if not unplaced[number]:
            for blocked in waiting[number]:
                blockers[blocked] -= 1
                if not blockers[blocked]:
                    heapq.heappush(ready, ranks[blocked])
    return placed
