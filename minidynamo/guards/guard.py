"""`Guard`: a promise made while tracing, turned into rows when the check_fn is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minidynamo.guards.rows import KINDS
from minidynamo.sources import GuardSource, Source

# Rank of builder methods whose rows have another kind's name.
_METHOD_COST = {
    "LIST_LENGTH": 3,
    "TUPLE_LENGTH": 3,
    "DICT_LENGTH": 3,
    "MODULE_MATCH": 1,
    "BUILTIN_MATCH": 1,
    "NN_MODULE": 1,
}
_DEFAULT_COST = 5


class ById:
    """An argument of a guard that is compared by identity: its own `==` and hash are not asked."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and other.value is self.value


@dataclass(frozen=True, slots=True)
class Guard:
    """`create_fn` is a GuardBuilder method; `args` its parameters; `user` the (filename, line) that made it
    necessary.

    Equal guards made at different lines are one guard; the first line is told.
    """

    name: str = field(compare=False)  # follows from the origin
    source: GuardSource = field(hash=False)
    create_fn: Callable[[Any, Guard], None]
    origin: Source
    user: tuple[str, int] | None = field(default=None, compare=False)
    args: tuple[Any, ...] = ()

    def create(self, local_builder: Any, global_builder: Any) -> None:
        """Adds this guard's rows through the builder of its scope."""
        self.create_fn(local_builder if self.source.is_local() else global_builder, self)

    def needed_by(self, user: tuple[str, int]) -> Guard:
        """The same guard, made necessary by that line unless a line is known."""
        if self.user is not None:
            return self
        return Guard(self.name, self.source, self.create_fn, self.origin, user, self.args)

    def is_nn_module(self) -> bool:
        return self.source.is_nn_module()

    def sort_key(self) -> tuple[int, int]:
        """Cheap and likely-to-fail kinds first, then short paths; a stable sort keeps the tracing order."""
        method = self.create_fn.__name__
        cost = KINDS[method].cost if method in KINDS else _METHOD_COST.get(method, _DEFAULT_COST)
        return cost, self.origin.depth()


def make_guard(
    source: Source,
    create_fn: Callable[[Any, Guard], None],
    *args: Any,
    user: tuple[str, int] | None = None,
    nn_module: bool = False,
) -> Guard:
    """A guard on `source`; `nn_module=True` marks one that `config.guard_nn_modules = False` drops."""
    scope = source.guard_source()
    return Guard(source.name(), scope.nn_module() if nn_module else scope, create_fn, source, user, args)
