"""Which tracker wraps a real value: a table keyed by exact type, then a short ordered list of predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..sources import Source
from .base import Tracing, VariableTracker

Wrapper = Callable[[Tracing, Any, Source], VariableTracker]
BY_TYPE: dict[type, Wrapper] = {}
# Containers that a call folded on constants gives: made of (items, None, provenance).
FROM_PYTHON: dict[type, Callable[..., VariableTracker]] = {}
# Trackers of what an entry of the cache may name without a source, by its exact type: made of the value.
WITHOUT_SOURCE: dict[type, Callable[[Any], VariableTracker]] = {}
BY_PREDICATE: list[tuple[str, Callable[[Any], bool], Wrapper]] = []


def wraps(*types: type) -> Callable[[Wrapper], Wrapper]:
    """Row of the table: values whose exact type is one of `types`. A duplicate row fails at import."""

    def register(wrapper: Wrapper) -> Wrapper:
        for tp in types:
            if tp in BY_TYPE:
                raise ValueError(f"two wrappers for {tp.__name__}")
            BY_TYPE[tp] = wrapper
        return wrapper

    return register


def wraps_if(name: str, predicate: Callable[[Any], bool]) -> Callable[[Wrapper], Wrapper]:
    """Row of the ordered list that is asked when no exact type matched. `predicate` looks at the value's class only, and runs no user
    code: the answer is kept for other values of the class."""

    def register(wrapper: Wrapper) -> Wrapper:
        BY_PREDICATE.append((name, predicate, wrapper))
        return wrapper

    return register


def wrapper_for(value: Any) -> Wrapper | None:
    """The wrapper of a value, or None when nothing follows values of its kind."""
    found = BY_TYPE.get(type(value))
    if found is not None:
        return found
    for _, predicate, wrapper in BY_PREDICATE:
        if predicate(value):
            return wrapper
    return None
