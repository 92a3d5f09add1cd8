"""Functions that a program calls inside captured code. Outside of capture they are harmless."""

from __future__ import annotations


def graph_break() -> None:
    """End the graph here. Does nothing in plain Python."""


def is_compiling() -> bool:
    """True inside captured code (the trace sees a constant), False in plain Python."""
    return False
