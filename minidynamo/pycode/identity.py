"""Caches keyed by the identity of an object.

Code objects compare by value, so two functions on different lines, or of different modules, can be equal: a
dict keyed by code would mix them up. These caches compare identity and hold their keys weakly; an entry goes
when its key dies.
"""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

V = TypeVar("V")


class IdentityCache(Generic[V]):
    """id(key) -> (weak reference to key, value). A value must not reference its key strongly, or neither ever
    dies."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[int, tuple[weakref.ref[object], V]] = {}

    def get(self, key: object) -> V | None:
        """The value for exactly this object, or None."""
        row = self._rows.get(id(key))
        return row[1] if row is not None and row[0]() is key else None

    def set(self, key: object, value: V) -> V:
        """Store and return `value`. `key` must support weak references."""
        number, rows = id(key), self._rows

        def gone(ref: weakref.ref[object]) -> None:
            row = rows.get(number)
            if row is not None and row[0] is ref:  # the number may belong to a younger object by now
                del rows[number]

        rows[number] = (weakref.ref(key, gone), value)
        return value

    def clear(self) -> None:
        """Forget every key."""
        self._rows.clear()

    def __len__(self) -> int:
        return len(self._rows)
