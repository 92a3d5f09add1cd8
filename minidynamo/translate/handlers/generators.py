"""Generators consumed in the frame: the frame of an inlined generator stops at each yield."""

from __future__ import annotations

from typing import Any

from ...pycode.instruction import Instruction
from ...variables.constant import ConstantVariable
from .table import handles


@handles("RETURN_GENERATOR")
def return_generator(tx: Any, inst: Instruction) -> None:
    """The generator exists already when its frame is executed: the first value sent is None."""
    tx.push(ConstantVariable(None))


@handles("YIELD_VALUE")
def yield_value(tx: Any, inst: Instruction) -> None:
    tx.yielded = tx.pop()
    tx.push(ConstantVariable(None))
