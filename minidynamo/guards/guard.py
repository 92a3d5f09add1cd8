"""`Guard`: a promise made while tracing, turned into rows when the check_fn is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidynamo.cache import Keyed
from minidynamo.guards.rows import KINDS
from minidynamo.sources import GuardSource, Source

# Rank of builder methods; of some the rows have another kind's name.
_COSTS = {name: kind.cost for name, kind in KINDS.items()} | {
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


class Guard(Keyed):
    """`create_fn` is a GuardBuilder method on the place `origin`; `args` its parameters; `user` the (filename, line) that made it
    necessary; `nn_module` marks one that `config.guard_nn_modules = False` drops.

    Equal guards made at different lines are one guard; the first line is told.
    """

    __slots__ = ("args", "create_fn", "nn_module", "origin", "user")
    _compared = ("create_fn", "origin", "args", "nn_module")

    def __init__(
        self,
        create_fn: Callable[[Any, Guard], None],
        origin: Source,
        user: tuple[str, int] | None = None,
        args: tuple[Any, ...] = (),
        nn_module: bool = False,
    ) -> None:
        self.create_fn = create_fn
        self.origin = origin
        self.user = user
        self.args = args
        self.nn_module = nn_module

    @property
    def name(self) -> str:
        """The guard text of the place."""
        return self.origin.name()

    @property
    def source(self) -> GuardSource:
        """Which scope the place is in."""
        scope = self.origin.guard_source()
        return scope.nn_module() if self.nn_module else scope

    def create(self, local_builder: Any, global_builder: Any) -> None:
        """Adds this guard's rows through the builder of its scope."""
        is_local = self.origin.place()[1] is GuardSource.LOCAL
        self.create_fn(local_builder if is_local else global_builder, self)

    def needed_by(self, user: tuple[str, int]) -> Guard:
        """The same guard, made necessary by that line unless a line is known."""
        if self.user is None:
            self.user = user
        return self

    def is_nn_module(self) -> bool:
        return self.nn_module and self.source.is_nn_module()

    def sort_key(self) -> tuple[int, int]:
        """Cheap and likely-to-fail kinds first, then short paths; a stable sort keeps the tracing order."""
        return _COSTS.get(self.create_fn.__name__, _DEFAULT_COST), self.origin.place()[0]

    def __repr__(self) -> str:
        return f"<Guard {self.create_fn.__name__} on {self.name}>"


def make_guard(
    source: Source,
    create_fn: Callable[[Any, Guard], None],
    *args: Any,
    user: tuple[str, int] | None = None,
    nn_module: bool = False,
) -> Guard:
    """A guard on `source`; `nn_module=True` marks one that `config.guard_nn_modules = False` drops."""
    return Guard(create_fn, source, user, args, nn_module)
