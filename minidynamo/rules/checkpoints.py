"""`torch.utils.checkpoint.checkpoint(fn, *args, use_reentrant=False)`: `fn` is executed symbolically, and what it adds to the graph becomes
the inner graph of one node, which calls `checkpoint` itself.

Autograd runs the inner graph once more, where plain Python would run `fn` again. So `fn` may do nothing but compute with tensors: what it
changes besides, state of torch's (but the grad mode) that would stay changed where the second run ends early, and numbers read from
tensors are left to plain Python, and so is all of it for backends that compile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import torch
import torch.utils.checkpoint

from ..graph.memory import may_be_input
from ..graph.regions import Region
from ..graph.state_keys import GRAD_MODE
from ..reasons import UNSUPPORTED_CALL
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.dicts import DictVariable
from ..variables.functions import BoundMethodVariable, CellVariable, FunctionVariable
from ..variables.lazy import LazyVariable
from ..variables.methods import UserMethodVariable
from ..variables.partials import PartialVariable
from ..variables.raising import ObservedException
from ..variables.sequences import SequenceVariable
from ..variables.tensor import TensorVariable
from .autograd_functions import ApplyFunction, state_of
from .builtins import Args, rule
from .tensor_ops import kind_of

#: Options that are handed on, with the values that are followed.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "preserve_rng_state": (True, False),
    "determinism_check": ("default", "none"),
    "debug": (False,),
    "early_stop": (True, False),
}
#: What is made in the trace and can be seen to be as it was.
PLAIN = (
    ConstantVariable,
    TensorVariable,
    SequenceVariable,
    DictVariable,
    FunctionVariable,
    CellVariable,
    UserMethodVariable,
    BoundMethodVariable,
    PartialVariable,
)


def refuse(tx: Tracing, why: str) -> NoReturn:
    tx.unsupported(UNSUPPORTED_CALL, name=f"torch.utils.checkpoint ({why})")


@rule(torch.utils.checkpoint.checkpoint)
def _checkpoint(tx: Tracing, args: Args, kwargs: dict[str, VariableTracker]) -> VariableTracker:
    trace, graph = tx.trace, tx.graph
    kwargs = {name: value.realize(tx) for name, value in kwargs.items()}
    reentrant = kwargs.pop("use_reentrant", None)
    if reentrant is None or not reentrant.is_python_constant() or reentrant.as_python_constant() is not False:
        refuse(tx, "with reentry")
    if trace.for_compiler:
        refuse(tx, "for a backend that compiles")
    if not args or "context_fn" in kwargs:
        refuse(tx, "with contexts")
    options = options_of(tx, kwargs)
    tx.guard_global_state()
    reached = shapes(tx, [*args, *kwargs.values(), *stored(trace)])
    known, written, before = len(graph.graph.nodes), set(graph.written), changes(tx)
    inputs, regions = len(graph.inputs), len(graph.regions)
    try:
        result = tx.call(args[0], list(args[1:]), kwargs)
    except ObservedException:
        refuse(tx, "fn raises")
    added = known + len(graph.inputs) - inputs
    nodes = tuple(list(graph.graph.nodes)[added:])
    if len(graph.regions) > regions:
        refuse(tx, "one inside another")
    if before != changes(tx) or not as_before(reached):
        refuse(tx, "fn changes something")
    check_nodes(tx, nodes, [node for node in graph.written if node not in written])
    if graph.draws_random and not graph.draws_on_the_cpu():
        refuse(tx, "random numbers are drawn elsewhere than on the CPU")
    if nodes:
        graph.regions.append(Region(nodes, options))
    return result


def options_of(tx: Tracing, kwargs: dict[str, VariableTracker]) -> dict[str, Any]:
    """Take the options out of the keywords."""
    found = {}
    for name, followed in OPTIONS.items():
        value = kwargs.pop(name, None)
        if value is None:
            continue
        if not value.is_python_constant() or value.as_python_constant() not in followed:
            refuse(tx, f"{name}=")
        found[name] = value.as_python_constant()
    return found


def changes(tx: Tracing) -> tuple[Any, ...]:
    """`state_of` without the count of the graph's inputs (fn may be the first to look at a tensor), and the grad mode by its value: where
    the second run ends early autograd records, and `checkpoint` puts back what was before."""
    effects, names, mutated, states, opened, _inputs, cells = state_of(tx.trace)
    return effects, names, mutated, states - (GRAD_MODE in tx.trace.states), opened, cells, tx.grad_mode


def stored(trace: Any) -> Iterator[VariableTracker]:
    """What the trace has put somewhere outside, where fn may find it."""
    for effect in trace.effects:
        yield from effect.operands
    yield from trace.globals_written.values()
    yield from (cell.written for cell in trace.outside_cells if cell.written is not None)


def shapes(tx: Tracing, roots: Iterable[VariableTracker]) -> list[tuple[VariableTracker, tuple[Any, ...]]]:
    """What fn can reach that is made in the trace, each with its parts now."""
    found: dict[int, tuple[VariableTracker, tuple[Any, ...]]] = {}
    left = list(roots)
    while left:
        each = left.pop()
        each = each.realize(tx) if isinstance(each, LazyVariable) and each.real is not None else each
        if id(each) in found or each.source is not None or isinstance(each, LazyVariable):
            continue
        if not isinstance(each, PLAIN):
            refuse(tx, f"fn may change a {each.type_name()}")
        parts = each.children()
        found[id(each)] = each, parts
        left += parts
    return list(found.values())


def as_before(reached: list[tuple[VariableTracker, tuple[Any, ...]]]) -> bool:
    for each, parts in reached:
        now = each.children()
        if len(now) != len(parts) or not all(map(is_same, now, parts)):
            return False
    return True


def is_same(now: VariableTracker, before: VariableTracker) -> bool:
    """The same value, which somebody may have looked at in the meantime."""
    return now is before or isinstance(before, LazyVariable) and now is before.real


def check_nodes(tx: Tracing, nodes: tuple[torch.fx.Node, ...], written: list[torch.fx.Node]) -> None:
    """All are operators on tensors, which write at most into what is their own."""
    for node in nodes:
        if node.target in ("item", torch.Tensor.item):
            refuse(tx, "fn reads a number of a tensor")
        if node.op == "call_function" and not is_operator(node.target):
            refuse(tx, "fn changes torch's state")
    inside = set(nodes)
    known = {each: True for node in nodes for each in node.all_input_nodes if each not in inside}
    if any(node not in inside or may_be_input(node, known) for node in written):
        refuse(tx, "fn writes into a tensor that it is given")


def is_operator(target: Any) -> bool:
    if isinstance(target, ApplyFunction) or target is torch._C._set_grad_enabled:
        return True
    kind = kind_of(target)
    return kind is not None and kind.in_graph
