"""Caches keyed by the identity of an object.

Code objects compare by value, so two functions on different lines, or of different modules, can be equal: a
dict keyed by code would mix them up. These caches compare identity and hold their keys weakly; an entry goes
when its key dies.
"""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class _Row(weakref.ref[object]):
    """A weak reference to a key, with its number and its value."""

    __slots__ = ("number", "value")
    number: int
    value: Any


class IdentityCache(Generic[V]):
    """id(key) -> row. A value must not reference its key strongly, or neither ever dies."""

    __slots__ = ("_gone", "_rows")

    def __init__(self) -> None:
        rows: dict[int, _Row] = {}

        def gone(row: Any) -> None:  # a _Row
            number = row.number
            if rows.get(number) is row:  # the number may belong to a younger object by now
                del rows[number]

        self._rows, self._gone = rows, gone

    def get(self, key: object) -> V | None:
        """The value for exactly this object, or None."""
        row = self._rows.get(id(key))
        return row.value if row is not None and row() is key else None

    def set(self, key: object, value: V) -> V:
        """Store and return `value`. `key` must support weak references."""
        row = _Row(key, self._gone)
        row.number, row.value = id(key), value
        self._rows[row.number] = row
        return value

    def drop(self, key: object) -> None:
        """Forget exactly this object, if it is known."""
        row = self._rows.get(id(key))
        if row is not None and row() is key:
            del self._rows[row.number]

    def clear(self) -> None:
        """Forget every key."""
        self._rows.clear()

    def __len__(self) -> int:
        return len(self._rows)
