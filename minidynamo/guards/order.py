"""The order in which guards are checked."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable

from minidynamo.guards.rows import KINDS, GuardRow
from minidynamo.sources import Source


class _Paths:
    """Numbers for paths, each hashed once; `prefixes[n]` are the numbers of its proper prefixes."""

    def __init__(self) -> None:
        self._numbers: dict[Source, int] = {}
        self.prefixes: list[tuple[int, ...]] = []

    def number(self, path: Source) -> int:
        known = self._numbers.get(path)
        if known is None:
            parent = path.parent()
            above: tuple[int, ...] = ()
            if parent is not None:
                base = self.number(parent)
                above = (*self.prefixes[base], base)
            known = self._numbers[path] = len(self.prefixes)
            self.prefixes.append(above)
        return known


def order(rows: Iterable[GuardRow]) -> list[GuardRow]:
    """Every row follows the rows on proper prefixes of its paths; among the ready ones the cheap kind goes
    first, then the shorter path, then the one that was made earlier.

    Nothing waits for a row that relates several paths (two of them could wait for each other).
    """
    rows = list(rows)
    paths = _Paths()
    own = [[paths.number(path) for path in row.paths()] for row in rows]
    unplaced: dict[int, int] = defaultdict(int)  # path -> rows on it alone that are not placed yet
    for numbers in own:
        if len(numbers) == 1:
            unplaced[numbers[0]] += 1
    waiting: dict[int, list[int]] = defaultdict(list)  # path -> rows that wait for it
    blockers: list[int] = []
    ready: list[tuple[int, int, int]] = []

    def push(row: int) -> None:
        heapq.heappush(ready, (KINDS[rows[row].kind].cost, len(paths.prefixes[own[row][0]]), row))

    for row, numbers in enumerate(own):
        above = {prefix for number in numbers for prefix in paths.prefixes[number] if unplaced.get(prefix)}
        blockers.append(len(above))
        for prefix in above:
            waiting[prefix].append(row)
        if not above:
            push(row)
    placed: list[GuardRow] = []
    while ready:
        row = heapq.heappop(ready)[2]
        placed.append(rows[row])
        if len(own[row]) > 1:
            continue
        path = own[row][0]
        unplaced[path] -= 1
        if unplaced[path] == 0:
            for blocked in waiting[path]:
                blockers[blocked] -= 1
                if blockers[blocked] == 0:
                    push(blocked)
    return placed
