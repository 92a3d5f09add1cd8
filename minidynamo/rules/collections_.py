"""Making deques, ordered dicts and default dicts."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

from ..reasons import UNSUPPORTED_CALL
from ..static_access import type_lookup
from ..variables.base import Tracing, VariableTracker
from ..variables.deques import DequeVariable
from ..variables.dict_kinds import DefaultDictVariable, OrderedDictVariable
from ..variables.sequences import NONE
from .builtins import Args, items_of, rule

Kwargs = dict[str, VariableTracker]


@rule(deque)
def _deque(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    """CPython: deque_init."""
    named = dict(zip(("iterable", "maxlen"), args))
    if len(args) > 2 or not kwargs.keys() <= {"iterable", "maxlen"} - named.keys():
        tx.unsupported(UNSUPPORTED_CALL, name="deque with these arguments")
    named.update(kwargs)
    limit = named.get("maxlen", NONE).realize(tx)
    longest = limit.as_python_constant() if limit.is_python_constant() else limit
    if longest is not None and (type(longest) is not int or longest < 0):
        tx.unsupported(UNSUPPORTED_CALL, name="deque with this maxlen")
    items = items_of(tx, "deque", named["iterable"]) if "iterable" in named else []
    made = DequeVariable([], longest, guards=VariableTracker.propagate(*named.values()))
    made.items.extend(made.cut(items))
    tx.trace.holds(made)
    return made


@rule(OrderedDict)
def _ordered_dict(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    if len(args) > 1:
        tx.unsupported(UNSUPPORTED_CALL, name="OrderedDict with these arguments")
    made = OrderedDictVariable({}, guards=VariableTracker.propagate(*args))
    made.call_method(tx, "update", list(args), kwargs)
    return made


@rule(defaultdict)
def _default_dict(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    """CPython: defdict_init."""
    factory = args[0].realize(tx) if args else NONE
    callable_ = (
        factory.python_type() is type(None) or type_lookup(factory.python_type(), "__call__") is not None
    )
    if len(args) > 2 or not callable_:
        tx.unsupported(UNSUPPORTED_CALL, name="defaultdict with these arguments")
    made = DefaultDictVariable({}, factory, guards=VariableTracker.propagate(*args))
    made.call_method(tx, "update", list(args[1:]), kwargs)
    return made
