"""Cells that exist outside of the trace."""

from __future__ import annotations

import types
from typing import Any

from ..reasons import OPERATOR_FAILS
from ..sources import Source
from ..variables.base import VariableTracker
from ..variables.functions import Cell


class OutsideCell(Cell):
    """Reading it is guarded by the value read; writing it is a side effect, which breaks the graph."""

    __slots__ = ("cell", "source", "holder")

    def __init__(self, name: str, cell: types.CellType, source: Source, holder: Source | None = None) -> None:
        """`source` reaches the content, `holder` the cell object itself (None: a free variable of the frame)."""
        super().__init__(name)
        self.cell = cell
        self.source = source
        self.holder = holder

    def content_to_rebuild(self) -> VariableTracker | None:
        """Nothing: the cell exists."""
        return None

    def read(self, tx: Any) -> VariableTracker:
        """The content now. Breaks the graph when the cell is empty: plain Python raises the NameError."""
        try:
            value = self.cell.cell_contents
        except ValueError:
            tx.unsupported(OPERATOR_FAILS, name=f"variable {self.name!r}", error="NameError")
        return tx.lazily(value, self.source)
