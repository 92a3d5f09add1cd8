"""Backend "openreg_fuse": an example of a compiler for the device, complete and small.

It looks in a captured graph for chains of elementwise float32 operators and replaces each by one call of the device's own operator
`openreg::pointwise` (native/openreg/pointwise.cpp); everything else stays as it is. The result is the very one of eager. Whatever
is not certain from the graph and its example inputs, which minidynamo guards, is left alone: other types, strides and devices,
inputs that need a gradient, graphs that write to a tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F

from ..backends.registry import register_backend
from .load import NAME

# The numbering of native/openreg/pointwise.cpp.
ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, NEG, ABS, RELU = range(9)
OPERATIONS: dict[Any, int] = {
    **dict.fromkeys((operator.add, torch.add, "add", "__add__"), ADD),
    **dict.fromkeys((operator.sub, torch.sub, "sub", "__sub__"), SUB),
    **dict.fromkeys((operator.mul, torch.mul, "mul", "__mul__"), MUL),
    **dict.fromkeys((operator.truediv, torch.div, "div", "__truediv__"), DIV),
    **dict.fromkeys((torch.maximum, "maximum"), MAXIMUM),
    **dict.fromkeys((torch.minimum, "minimum"), MINIMUM),
    **dict.fromkeys((operator.neg, torch.neg, "neg", "__neg__"), NEG),
    **dict.fromkeys((operator.abs, torch.abs, "abs", "__abs__"), ABS),
    **dict.fromkeys((torch.relu, F.relu, "relu"), RELU),
}
IN_PLACE = [f for name, f in vars(operator).items() if name[0] == "i" and f"__{name}__" in vars(operator)]
UNARY = (NEG, ABS, RELU)
Shapes = dict[torch.fx.Node, torch.Size]


def is_simple(tensor: Any) -> bool:
    """What openreg::pointwise takes: dense float32 on the device, and nobody waits for a gradient."""
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.device.type == NAME
        and tensor.dtype == torch.float32
        and tensor.is_contiguous()
        and not (tensor.requires_grad and torch.is_grad_enabled())
    )


def writes(node: torch.fx.Node) -> bool:
    """True for a node that may change a tensor: then the moment at which another node reads it matters."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if node.op not in ("call_function", "call_method"):
        return node.op in ("call_module", "get_attr")
    in_place = name.endswith("_") and not name.endswith("__") or name in ("setitem", "__setitem__")
    return (
        in_place
        or node.target in IN_PLACE
        or name.startswith("__i")
        or "out" in node.kwargs
        or bool(node.kwargs.get("inplace"))
    )


def fusable(node: torch.fx.Node, shapes: Shapes) -> torch.Size | None:
    """The shape of the result if `node` is one of OPERATIONS on simple tensors of one shape and numbers."""
    code = OPERATIONS.get(node.target) if node.op in ("call_function", "call_method") else None
    if code is None or node.kwargs or len(node.args) != (1 if code in UNARY else 2):
        return None
    tensors = [a for a in node.args if isinstance(a, torch.fx.Node)]
    numbers = [a for a in node.args if not isinstance(a, torch.fx.Node)]
    if not tensors or any(a not in shapes for a in tensors) or len({shapes[a] for a in tensors}) != 1:
        return None
    if any(type(a) not in (int, float) for a in numbers) or (code in (MAXIMUM, MINIMUM) and numbers):
        return None
    if code == DIV and node.args[0] in numbers:  # torch multiplies by the reciprocal, which rounds twice
        return None
    return shapes[tensors[0]]


def groups_of(graph: torch.fx.Graph, shapes: Shapes) -> list[list[torch.fx.Node]]:
    """Sets of nodes to fuse, each in order and with its result last. A node joins its users when all of them are in one group."""
    fused: dict[torch.fx.Node, torch.Size] = {}
    for node in graph.nodes:
        shape = fusable(node, shapes)
        if shape is not None:
            shapes[node] = fused[node] = shape
    root: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in reversed(list(fused)):
        roots = {root.get(user) for user in node.users}
        only = roots.pop() if len(roots) == 1 else None
        root[node] = node if only is None else only
    groups: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node in fused:
        groups.setdefault(root[node], []).append(node)
    return [group for group in groups.values() if len(group) > 1]


def fuse(graph: torch.fx.Graph, group: list[torch.fx.Node]) -> None:
    """Replace the nodes of `group` by one call."""
    inputs: list[torch.fx.Node] = []
    constants: list[float] = []
    for node in group:
        for argument in node.args:
            if not isinstance(argument, torch.fx.Node):
                constants.append(float(argument))  # type: ignore[arg-type]
            elif argument not in group and argument not in inputs:
                inputs.append(argument)
    number = {node: index for index, node in enumerate(inputs)}
    next_constant = len(inputs)
    program: list[int] = []
    for index, node in enumerate(group):
        operands = []
        for argument in node.args:
            if isinstance(argument, torch.fx.Node):
                operands.append(number[argument])
            else:
                operands.append(next_constant)
                next_constant += 1
        program += [OPERATIONS[node.target], operands[0], operands[-1]]
        number[node] = len(inputs) + len(constants) + index
    result = group[-1]
    with graph.inserting_before(result):
        call = graph.call_function(torch.ops.openreg.pointwise.default, (inputs, program, constants))
    result.replace_all_uses_with(call)
    for node in reversed(group):
        graph.erase_node(node)


@register_backend(name="openreg_fuse", needs_meta=False)
def openreg_fuse(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """Compile for the device: chains of elementwise operators become one operator."""
    if not any(writes(node) for node in gm.graph.nodes):
        placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        shapes = {node: x.shape for node, x in zip(placeholders, example_inputs) if is_simple(x)}
        for group in groups_of(gm.graph, shapes):
            fuse(gm.graph, group)
        gm.recompile()
    return gm.forward
