"""Which results of operators are new tensor objects, and so differ by identity from every tensor that there was before.

Operators may hand back what they are given (`contiguous`, `to`, `dropout` outside of training); only those in the table never do.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.nn import functional as F

_NAMES = """
add sub mul div true_divide floor_divide remainder pow matmul mm bmm neg abs exp log sqrt rsqrt sin cos tanh sigmoid
eq ne lt le gt ge logical_and logical_or logical_not sum mean amax amin argmax argmin cumsum softmax log_softmax
masked_fill where clone empty_like zeros_like ones_like rand_like randn_like zeros ones full arange rand randn
cat stack view transpose permute unsqueeze select index_select gather relu squeeze expand narrow t new_zeros new_ones
new_empty new_full empty tensor scalar_tensor eye linspace
""".split()
_OPERATORS = "add sub mul truediv floordiv mod pow matmul neg eq ne lt le gt ge".split()
_FUNCTIONS = (
    *(F.linear, F.embedding, F.layer_norm, F.softmax, F.log_softmax, F.gelu, F.conv1d, F.conv2d, F.conv3d),
    *(F.scaled_dot_product_attention, F.cross_entropy, F.mse_loss),
)
NEW: frozenset[Any] = frozenset(
    [
        *_NAMES,
        *(getattr(torch, name) for name in _NAMES if hasattr(torch, name)),
        *(getattr(operator, name) for name in _OPERATORS),
        *_FUNCTIONS,
        torch.ops.aten.alias.default,
        torch._C._autograd._get_data_attr,  # type: ignore[attr-defined]
    ]
)


def may_be(node: torch.fx.Node) -> set[torch.fx.Node]:
    """The nodes that could stand for the very object that `node` does: itself, and what its operator could have handed back."""
    found: set[torch.fx.Node] = set()
    stack = [node]
    while stack:
        one = stack.pop()
        if one in found:
            continue
        found.add(one)
        if one.op != "placeholder" and one.target not in NEW:
            stack += one.all_input_nodes
    return found


def are_different(left: torch.fx.Node, right: torch.fx.Node) -> bool:
    """Whether the two tensors of one graph are certainly two objects."""
    return may_be(left).isdisjoint(may_be(right))
