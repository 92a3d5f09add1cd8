"""What code of the user's finds outside of its arguments when it runs: names of modules, cells, members of classes.

It was found when the code was looked at (`graph/dispatch_code.py`); the guard DISPATCH_CODE says that it is still so. Nothing of the
user's is held strongly: what died is not what it was.
"""

from __future__ import annotations

import itertools
import types
import weakref
from collections.abc import Callable
from typing import Any

from minidynamo.literals import is_immutable, is_literal, same
from minidynamo.static_access import type_lookup

MISSING = object()
Matches = Callable[[Any], bool]
BINDING = (classmethod, staticmethod)


def like(value: Any) -> Matches:
    """A test whether another value is this one: constants bit for bit, methods and properties by their functions, the rest by identity.
    Raises TypeError for an object without weak references."""
    kind = type(value)
    if value is MISSING:
        return lambda other: other is MISSING
    if kind in BINDING:
        inner = like(value.__func__)
        return lambda other: type(other) is kind and inner(other.__func__)
    if kind is property:
        parts = like(value.fget)
        return lambda other: type(other) is property and parts(other.fget)
    if is_literal(value):
        return lambda other: same(other, value)
    if kind is tuple:
        items = [like(item) for item in value]
        return lambda other: type(other) is tuple and _all(items, other)
    if kind is dict:
        keys, values = [like(key) for key in value], [like(item) for item in value.values()]
        return lambda other: type(other) is dict and _all(keys, other) and _all(values, other.values())
    if is_immutable(value):
        return lambda other: other is value
    found: Callable[[], Any] = weakref.ref(value)
    if kind is not types.FunctionType:
        return lambda other: found() is other
    code, defaults, named = weakref.ref(value.__code__), like(value.__defaults__), like(value.__kwdefaults__)

    def unchanged(other: Any) -> bool:
        if type(other) is not types.FunctionType or found() is not other or other.__code__ is not code():
            return False
        return defaults(other.__defaults__) and named(other.__kwdefaults__)

    return unchanged


def _all(tests: list[Matches], values: Any) -> bool:
    return len(tests) == len(values) and all(test(value) for test, value in zip(tests, values))


class CodeReads:
    """The places that the code of one class reads, and what was there. names: the names of globals and attributes among them, `cell x`
    for the variable x of a function around; containers: some of it can be changed without a name."""

    def __init__(self, cls: type) -> None:
        self.cls = weakref.ref(cls, self._forget)
        self.serial = next(_serials)
        self.names: set[str] = set()
        self.containers = False
        self._places: dict[tuple[int, str], tuple[Callable[[], Any], Matches]] = {}

    def _forget(self, _: object) -> None:
        RECORDS.pop(self.serial, None)

    def add(self, owner: Any, name: str, read: Callable[[Any], Any]) -> None:
        """One place: `read` of the owner (a function, class or module), and a name that tells it from others of the owner."""
        if (id(owner), name) in self._places:
            return
        self.names.add(name)
        alive = weakref.ref(owner)
        self._places[id(owner), name] = (lambda: read(alive())), like(read(owner))

    @property
    def cells(self) -> bool:
        """Whether it reads variables of functions around."""
        return any(name.startswith("cell ") for name in self.names)

    def hold(self) -> bool:
        """Whether everything is as it was."""
        try:
            return all(matches(read()) for read, matches in self._places.values())
        except (AttributeError, KeyError, TypeError, ValueError):  # an owner died, a cell was emptied
            return False


_serials = itertools.count()
RECORDS: dict[int, CodeReads] = {}


def read_global(name: str) -> Callable[[Any], Any]:
    """The reader of a global, else builtin, of a function."""
    return lambda fn: fn.__globals__[name] if name in fn.__globals__ else fn.__builtins__[name]


def read_cell(index: int) -> Callable[[Any], Any]:
    """The reader of a closure cell of a function."""
    return lambda fn: fn.__closure__[index].cell_contents


def read_member(name: str) -> Callable[[Any], Any]:
    """The reader of what a class has under a name."""
    return lambda cls: type_lookup(cls, name, MISSING)


def read_in_module(name: str) -> Callable[[Any], Any]:
    """The reader of a module's name."""
    return lambda module: vars(module)[name]


def check_dispatch_code(cls: Any, serial: int) -> bool:
    """The class is the one of that record, and its code reads what it read then."""
    record = RECORDS.get(serial)
    return record is not None and record.cls() is cls and record.hold()
