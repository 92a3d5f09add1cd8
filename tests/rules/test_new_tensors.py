"""The operators of the table never hand back an argument; identity of tensors that are made in a graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from minidynamo.rules.new_tensors import NEW
from tests.eager import check
from tests.ids import stable

X, SQUARE, ONE, LONG = torch.ones(2, 2), torch.eye(3), torch.ones(()), torch.zeros(1, dtype=torch.long)
LIKE = [(X,), (ONE,), (torch.ones(0),)]
PAIRS = [(X, X), (X, 1), (X, 0), (ONE, 1), (X, ONE)]
SIZES = [(2,), ((2, 3),)]
# What the table's operators are called with: arguments for which a copy would be needless too.
CALLS: dict[str, list[tuple[Any, ...]]] = {
    **dict.fromkeys("neg abs exp log sqrt rsqrt sin cos tanh sigmoid logical_not clone gelu".split(), LIKE),
    **dict.fromkeys("empty_like zeros_like ones_like rand_like randn_like".split(), LIKE),
    **dict.fromkeys("sum mean amax amin argmax argmin".split(), [(X,), (ONE,), (torch.ones(1), 0)]),
    **dict.fromkeys("cumsum softmax log_softmax".split(), [(X, 0), (ONE, 0), (torch.ones(1), 0)]),
    **dict.fromkeys("mm matmul".split(), [(SQUARE, SQUARE)]),
    **dict.fromkeys(("logical_and", "logical_or"), [(X, X), (ONE, X)]),
    "bmm": [(SQUARE[None], SQUARE[None])],
    "masked_fill": [(X, X > 5, 0.0)],
    "where": [(X > 0, X, X)],
    "Tensor.where": [(X, X > 0, X)],
    **dict.fromkeys("zeros ones rand randn".split(), SIZES),
    "full": [((2,), 1.0)],
    "arange": [(3,), (0,)],
    **dict.fromkeys("cat stack".split(), [((X,),), ([X, X],)]),
    **dict.fromkeys(("alias.default", "get_data_attr"), [(X,)]),
    "view": [(X, 2, 2), (X, X.dtype)],
    "transpose": [(X, 0, 1), (X, 0, 0), (torch.ones(1), 0, 0)],
    "permute": [(X, (0, 1))],
    "unsqueeze": [(X, 0)],
    "select": [(X, 0, 0)],
    "index_select": [(torch.ones(1), 0, LONG)],
    "gather": [(torch.ones(1), 0, LONG)],
    "relu": LIKE,
    "squeeze": [(X,), (X, 0), (ONE,)],
    "expand": [(X, 2, 2), (ONE, ())],
    "narrow": [(X, 0, 0, 2)],
    "t": [(X,), (ONE,), (torch.ones(1),)],
    **dict.fromkeys("new_zeros new_ones new_empty".split(), [(X, (2, 2)), (ONE, ())]),
    "new_full": [(X, (2, 2), 1.0)],
    "empty": SIZES,
    "tensor": [(1.0,), (X,)],
    "scalar_tensor": [(1.0,)],
    "eye": [(2,)],
    "linspace": [(0, 1, 3)],
    "linear": [(SQUARE, SQUARE)],
    "embedding": [(LONG, X)],
    "layer_norm": [(X, (2,))],
    **{f"conv{n}d": [(torch.ones([1] * (n + 2)), torch.ones([1] * (n + 2)))] for n in (1, 2, 3)},
    "scaled_dot_product_attention": [(SQUARE[None], SQUARE[None], SQUARE[None])],
    "cross_entropy": [(X, torch.zeros(2, dtype=torch.long))],
    "mse_loss": [(X, X)],
}


def callable_of(target: Any) -> Any:
    """What to call for a row, or None for a name that only the function of torch has."""
    return getattr(torch.Tensor, target, None) if isinstance(target, str) else target


@pytest.mark.parametrize("target", sorted(NEW, key=stable), ids=stable)
def test_a_result_is_a_new_object(target):
    fn = callable_of(target)
    name = target if isinstance(target, str) else target.__name__.strip("_")
    calls = CALLS.get(f"Tensor.{target}", CALLS.get(name, PAIRS))
    for args in calls if fn is not None else ():
        result = fn(*args)
        flat = [item for arg in args for item in (arg if isinstance(arg, (list, tuple)) else (arg,))]
        assert isinstance(result, torch.Tensor) and not any(result is item for item in flat)


@pytest.mark.parametrize(
    ("made", "graphs"),
    [("x * 2 is x", 1), ("x * 2 is x * 2", 1), ("F.linear(x, x) is not x", 1), ("x.contiguous() is x", None)],
)
def test_identity_of_what_a_graph_makes(made, graphs):
    seen = check(f"def f(x):\n    y = {made}\n    return x + 1, y", "f(T(2, 2))", "f(T(2, 2).t())")
    assert graphs is None or (seen.reasons == [] and seen.graphs == 2), seen.reasons


def test_arguments_that_an_operator_may_hand_back():
    """`b` could be `x`: that is left to plain Python; `c` cannot."""
    source = """
        def f(x):
            b = F.dropout(x, 0.5, training=False)
            c = b * 1
            return (c is x, c is b), b is x
    """
    assert check(source, "f(T(3))").reasons == ["MD230"]
