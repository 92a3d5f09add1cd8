"""Symbols of operators and the special methods that they ask for."""

from __future__ import annotations

FORWARD = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "**": "__pow__",
    "@": "__matmul__",
    "<<": "__lshift__",
    ">>": "__rshift__",
    "&": "__and__",
    "|": "__or__",
    "^": "__xor__",
}
COMPARE = {"<": "__lt__", "<=": "__le__", "==": "__eq__", "!=": "__ne__", ">": "__gt__", ">=": "__ge__"}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}


def reflected(symbol: str) -> str:
    """The special method of the right operand."""
    return f"__r{FORWARD[symbol.rstrip('=')][2:]}"
