"""functools.partial objects: calling one is calling its function with more arguments."""

from __future__ import annotations

import functools
from typing import Any

from ..guards.builder import GuardBuilder
from ..pycode import expr as E
from ..reasons import CALL_ARGUMENTS
from ..sources import AttrSource, Source
from .base import Emitting, Tracing, VariableTracker
from .dicts import DictVariable
from .opaque import wrap_opaque
from .registry import wraps
from .sequences import TupleVariable
from .user_objects import FROM_PARTS

PARTS = ("func", "args", "keywords")
PLACEHOLDER = getattr(
    functools, "Placeholder", PARTS
)  # an argument that stands for a later one, where Python has it


class PartialVariable(VariableTracker):
    """The three parts are trackers: of a callable, a tuple and a dict. One from outside is rebuilt from its source."""

    __slots__ = PARTS
    mutable = True

    def __init__(
        self,
        func: VariableTracker,
        args: VariableTracker,
        keywords: VariableTracker,
        source: Source | None = None,
    ) -> None:
        super().__init__(source, VariableTracker.propagate(func, args, keywords))
        self.func = func
        self.args = args
        self.keywords = keywords

    def python_type(self) -> type:
        return functools.partial

    def children(self) -> tuple[VariableTracker, ...]:
        return () if self.source is not None else (self.func, self.args, self.keywords)

    def slot_truth(self, tx: Tracing) -> bool:
        return True

    def getattr(self, tx: Tracing, name: str) -> VariableTracker:
        if name in PARTS:
            found: VariableTracker = getattr(self, name)
            return found
        return super().getattr(tx, name)

    def parts(self, tx: Tracing) -> tuple[list[VariableTracker], dict[str, VariableTracker]]:
        """What is bound: positional and named arguments."""
        args, keywords = self.args.realize(tx), self.keywords.realize(tx)
        if not isinstance(args, TupleVariable) or not isinstance(keywords, DictVariable):
            tx.unsupported(CALL_ARGUMENTS, name="a partial function", detail="bound arguments")
        names = keywords.all_keys(tx)
        if not all(type(name.value) is str for name in names):
            tx.unsupported(CALL_ARGUMENTS, name="a partial function", detail="keywords that are no strings")
        return list(args.items), {name.value: keywords.items[name] for name in names}

    def call_function(
        self, tx: Tracing, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """CPython: partial_call."""
        bound, named = self.parts(tx)
        return tx.call(self.func, [*bound, *args], {**named, **kwargs})

    def reconstruct(self, emit: Emitting) -> E.Expr:
        if self.source is not None:
            return emit.load(self.source)
        return E.CallEx(
            E.Const(functools.partial),
            E.Tuple((emit.value(self.func), *map(emit.value, self.args.children()))),
            emit.value(self.keywords),
        )


FROM_PARTS["partial"] = PartialVariable


@wraps(functools.partial)
def wrap_partial(tx: Tracing, value: Any, source: Source) -> VariableTracker:
    if any(argument is PLACEHOLDER for argument in value.args):
        return wrap_opaque(tx, value, source)
    func, args, keywords = (tx.lazily(getattr(value, name), AttrSource(source, name)) for name in PARTS)
    made = PartialVariable(func, args, keywords, source)
    made.make_guards(tx, GuardBuilder.TYPE_MATCH)
    return made
