"""Making operator.itemgetter, attrgetter and methodcaller."""

from __future__ import annotations

import operator
from typing import Any

from ..reasons import UNSUPPORTED_CALL
from ..variables.base import Tracing, VariableTracker
from ..variables.getters import GETTERS, GetterVariable, text
from .builtins import Args, Rule, rule


def _make(cls: Any) -> Rule:
    def build(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
        if not args or kwargs and cls is not operator.methodcaller:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{cls.__name__} with these arguments")
        for name in {operator.attrgetter: args, operator.methodcaller: args[:1]}.get(cls, ()):
            text(tx, name)
        return GetterVariable(cls, list(args), dict(kwargs))

    build.__qualname__ = f"make_{cls.__name__}"
    return build


for _cls in GETTERS:
    rule(_cls)(_make(_cls))
