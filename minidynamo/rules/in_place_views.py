"""Methods that change the sizes, strides or history of a tensor itself: `t_`, `unsqueeze_`, `resize_`, `set_`.

They are captured on tensors that are certainly made in the graph and that nothing else in it may be: what the trace knows of that one
tensor changes. A tensor from outside is guarded by its metadata in each call; the graph ends before it changes.
"""

from __future__ import annotations

from typing import Any

import torch

from ..graph.meta import MutatesMeta, TensorMeta
from ..reasons import METADATA_MUTATION, TENSOR_STATE
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import INPLACE
from ..variables.tensor import TensorVariable
from . import new_tensors, torch_functions

#: What compilers can do as well.
VIEWS = frozenset("t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ detach_".split())
#: What only a graph that runs as it is can do.
AS_IT_IS = frozenset("resize_ resize_as_ requires_grad_ set_".split())
#: What gives a tensor other memory, perhaps of the same sizes.
OTHER_MEMORY = frozenset({"set_"})


def name_of(target: Any) -> str:
    """The name of a method, or of the function of that name."""
    return target if isinstance(target, str) else getattr(target, "__name__", "")


def refuse(tx: Tracing, name: str, target: Any, args: list[VariableTracker]) -> None:
    """Break the graph at a call whose effect metadata does not show, where it is not captured."""
    if name_of(target) in OTHER_MEMORY and not (args and may_change(tx, target, args[0])):
        tx.unsupported(TENSOR_STATE, name=name)


def changed(
    tx: Tracing, name: str, target: Any, args: list[VariableTracker], change: MutatesMeta
) -> TensorMeta:
    """What the first argument is after the call. Breaks the graph where the call is not captured."""
    if len(change.after) == 1 and args and may_change(tx, target, args[0]):
        before, after = change.after[0]
        if before == args[0].as_meta():
            return after
    tx.unsupported(METADATA_MUTATION, name=name)


def may_change(tx: Tracing, target: Any, tensor: VariableTracker) -> bool:
    """Whether the graph may change the metadata of this tensor by `target`."""
    if type(tensor) is not TensorVariable or tensor.source is not None or type(tensor.meta) is not TensorMeta:
        return False
    known = name_of(target) in VIEWS or name_of(target) in AS_IT_IS and not tx.trace.for_compiler
    return known and is_alone(tx, tensor.proxy.node)


def is_alone(tx: Tracing, node: torch.fx.Node) -> bool:
    """Whether the node's tensor is a new one, and no other node's."""
    others = (other for other in tx.graph.graph.nodes if other is not node and not gives_first(other))
    return new_tensors.may_be(node) == {node} and not any(node in new_tensors.may_be(one) for one in others)


def gives_first(node: torch.fx.Node) -> bool:
    """Whether the node is an operator in place: what it gives is known as its first operand."""
    if node.op not in ("call_function", "call_method"):
        return False
    if node.target in INPLACE.values():
        return True
    find = torch_functions.tensor_method if isinstance(node.target, str) else torch_functions.classify
    kind = find(node.target)  # type: ignore[operator]
    return kind is not None and kind.returns_self
