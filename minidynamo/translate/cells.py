"""Cells that exist outside of the trace."""

from __future__ import annotations

import types
from typing import Any

from ..reasons import OPERATOR_FAILS, STORE
from ..sources import Source
from ..variables.base import VariableTracker
from ..variables.functions import Cell
from ..variables.opaque import OpaqueVariable


class OutsideCell(Cell):
    """Reading it is guarded by the value read; writing it is a side effect, which breaks the graph."""

    __slots__ = ("cell", "source", "holder", "written")

    def __init__(self, name: str, cell: types.CellType, source: Source, holder: Source | None = None) -> None:
        """`source` reaches the content, `holder` the cell object itself (None: a free variable of the frame)."""
        super().__init__(name)
        self.cell = cell
        self.source = source
        self.holder = holder
        self.written: VariableTracker | None = None

    def forget(self) -> None:
        self.written = None

    def content_to_rebuild(self) -> VariableTracker | None:
        """Nothing: the cell exists."""
        return None

    def write(self, tx: Any, value: VariableTracker) -> None:
        """An effect."""
        for other in tx.trace.outside_cells:
            self.differs(tx, other)
        if self.holder is None:
            tx.effect("STORE_DEREF", self.name, value)
        else:
            tx.effect("STORE_ATTR", "cell_contents", value, OpaqueVariable(self.cell, self.holder))
        self.written = value

    def differs(self, tx: Any, other: OutsideCell) -> None:
        """Guard that another cell, which goes by the same name, is not this one. Breaks the graph when that cannot be told."""
        if other is self or other.name != self.name:
            return
        if other.cell is self.cell or other.holder is None or self.holder is None:
            tx.unsupported(
                STORE, operation="assignment", what=f"the outer variable {self.name!r}, known in two ways"
            )
        tx.guard_distinct(self.holder, other.holder)

    def read(self, tx: Any) -> VariableTracker:
        """The content now, as the trace left it. Breaks the graph when the cell is empty: plain Python raises the NameError."""
        if self.written is not None:
            return self.written
        try:
            value = self.cell.cell_contents
        except ValueError:
            tx.unsupported(OPERATOR_FAILS, name=f"variable {self.name!r}", error="NameError")
        return tx.lazily(value, self.source)
