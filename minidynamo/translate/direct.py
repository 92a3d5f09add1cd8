"""Direct entries (decision 15): a frame that is its graph and nothing else is run by C without any bytecode.

C calls the graph on the frame's arguments, or on what its guards have loaded from them, and builds the result from a
recipe: nested tuples ("output", i), ("argument", flat index), ("constant", value), ("tuple", recipes), ("list", recipes).
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from .. import config
from ..guards.check_fn import flat_names
from ..guards.lower import loadable
from ..sources import LocalSource, Source
from ..variables.base import VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.lazy import LazyVariable
from ..variables.numbers import NumberVariable
from ..variables.sequences import ListVariable, TupleVariable
from ..variables.tensor import TensorVariable
from .capture import Capture, Return

Recipe = tuple[str, Any]
CONTAINERS: dict[type[VariableTracker], str] = {TupleVariable: "tuple", ListVariable: "list"}


def direct_plan(
    capture: Capture, code: types.CodeType
) -> tuple[tuple[int, ...] | tuple[Source, ...], Recipe] | None:
    """(inputs in graph order, recipe of the result), or None for a frame that needs code. Inputs are flat argument indexes,
    or, where one of them is no argument, sources: then the guards load them."""
    graph = capture.graph
    if graph is None or graph.mutates or graph.draws_random or capture.effects or capture.unguarded:
        return None
    if not isinstance(capture.exit, Return) or code.co_cellvars:
        return None
    if any(given.convert for given in graph.inputs):
        return None
    names = flat_names(code)
    inputs = [_argument(graph_input.source, names) for graph_input in graph.inputs]
    recipe = _recipe(capture.exit.value, capture, names)
    if recipe is None:
        return None
    if None not in inputs:
        return tuple(i for i in inputs if i is not None), recipe
    sources = tuple(given.source for given in graph.inputs)
    return (sources, recipe) if all(map(loadable(names), sources)) else None


def loaded_inputs(capture: Capture, code: types.CodeType) -> tuple[int, ...]:
    """Which inputs of the graph the guards load for code that calls it. They have been there already; the code would walk to each
    one again. Arguments lie in the frame, and die there."""
    graph = capture.graph
    if graph is None or config.guards == "text":
        return ()
    plan, names = direct_plan(capture, code), flat_names(code)
    if plan is not None and any(isinstance(given, Source) for given in plan[0]):
        return tuple(range(len(graph.inputs)))
    is_loadable = loadable(names)
    return tuple(
        number
        for number, given in enumerate(graph.inputs)
        if not given.convert and not isinstance(given.source, LocalSource) and is_loadable(given.source)
    )


def _argument(source: Source | None, names: Sequence[str]) -> int | None:
    return names.index(source.local) if isinstance(source, LocalSource) and source.local in names else None


def _recipe(tracker: VariableTracker, capture: Capture, names: Sequence[str]) -> Recipe | None:
    while isinstance(tracker, LazyVariable) and tracker.real is not None:
        tracker = tracker.real
    if tracker.source is not None:
        argument = _argument(tracker.source, names)
        return None if argument is None else ("argument", argument)
    if isinstance(tracker, (TensorVariable, NumberVariable)) and tracker.is_output():
        assert capture.graph is not None
        return "output", capture.graph.outputs[tracker.proxy.node]
    if isinstance(tracker, ConstantVariable):
        return "constant", tracker.value
    kind = CONTAINERS.get(type(tracker))
    if kind is None or capture.uses.get(id(tracker), 2) > 1:  # one object in two places: code builds it once
        return None
    items = [_recipe(item, capture, names) for item in tracker.children()]
    return None if None in items else (kind, tuple(items))
