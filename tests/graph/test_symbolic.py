"""Tensors whose sizes depend on data: what is captured, where the graph breaks, and that all backends agree with eager."""

from __future__ import annotations

import operator

import pytest
import torch

import minidynamo
from minidynamo.graph import meta
from minidynamo.graph.meta import SymbolicMeta, TensorMeta
from tests.eager import T, check
from tests.ids import stable

X = TensorMeta.of(torch.ones(2, 3))
MASK = TensorMeta.of(torch.ones(2, 3, dtype=torch.bool))
VECTOR = TensorMeta.of(torch.ones(3))
CALLS = ("T(3, 4)", "T(3, 4) - 5", "T(3, 4) - 100", "T(3, 4) - 11")


def masked() -> SymbolicMeta:
    found = meta.infer(operator.getitem, (X, MASK), {}, True)
    assert type(found) is SymbolicMeta
    return found


# --- metadata -----------------------------------------------------------------------------------------------------


def test_what_is_known_is_known_and_the_rest_is_shown():
    rows = meta.infer(torch.nonzero, (X,), {}, True)
    assert (rows.ndim, rows.dtype, rows.shape_text) == (2, torch.int64, "(?, 2)")
    assert masked().shape_text == "(?,)"


def test_a_result_without_unknown_sizes_is_an_ordinary_one():
    assert meta.infer(torch.sum, (masked(),), {}, True) == TensorMeta.of(torch.ones(()))


def test_a_size_that_is_known_is_a_constant():
    rows = meta.infer(torch.nonzero, (X,), {}, True)
    assert meta.infer(("method", "size"), (rows, 1), {}, True) == 2


def test_results_of_one_operator_share_their_size():
    first, second = meta.infer(torch.where, (MASK,), {}, True)
    assert type(meta.infer(torch.add, (first, second), {}, True)) is SymbolicMeta


def test_sizes_of_two_operators_are_not_taken_to_be_equal():
    with pytest.raises(meta.NeedsData):
        meta.infer(torch.add, (masked(), masked()), {}, True)


def test_an_operator_in_place_gives_its_operand():
    value = masked()
    assert meta.infer(("method", "add_"), (value, 1), {}, True) is value


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (getattr, ("shape",)),
        (getattr, ("nbytes",)),
        (len, ()),
        (("method", "size"), ()),
        (("method", "size"), (0,)),
        (("method", "stride"), ()),
        (("method", "numel"), ()),
        (torch.numel, ()),
        (("method", "is_contiguous"), ()),
        (("method", "is_same_size"), (VECTOR,)),
        (torch.is_nonzero, ()),
        (("method", "item"), ()),
        (torch.add, (VECTOR,)),
        (torch.max, ()),
        (("method", "view"), (3, 1)),
        (("method", "squeeze"), ()),
        (("method", "unbind"), ()),
        (("method", "split"), (1000,)),
        (("method", "split"), (5000,)),
        (("method", "chunk"), (2,)),
        (("method", "tolist"), ()),
        (("method", "narrow"), (0, 0, 1)),
        (("method", "expand"), (3,)),
        (operator.getitem, (0,)),
    ],
    ids=stable,
)
def test_what_would_look_at_an_unknown_size_needs_data(op, args):
    with pytest.raises(meta.NeedsData):
        meta.infer(op, (masked(), *args), {}, True)


# --- programs -----------------------------------------------------------------------------------------------------

CAPTURED = {
    "sum of a selection": "return x[x > 0].sum()",
    "a selection": "return x[x > 0] * 2 + 1",
    "nonzero, then index": "i = torch.nonzero(x > 0, as_tuple=True)\n    return x[i] * 2",
    "columns of nonzero": "i = (x > 0).nonzero()\n    return i, x[i[:, 0], i[:, 1]].cos()",
    "columns by iteration": "a, b = (x > 0).nonzero().T\n    return a + b",
    "argwhere": "return torch.argwhere(x > 2) + 1",
    "where of one argument": "a, b = torch.where(x > 0)\n    return a * b",
    "masked_select": "return torch.masked_select(x, x > 2).exp()",
    "rows": "return x[x[:, 0] > 0].mean(1), x[:, x[0] > 2] + 1",
    "unique": "return torch.unique(x, return_counts=True, return_inverse=True)",
    "unique of a selection": "return x[x > 2].unique()",
    "bincount": "return torch.bincount(x.abs().long().flatten()) + 1",
    "repeat_interleave": "return x[0].repeat_interleave(x[0].abs().long())",
    "joined": "return torch.cat([x[x > 3], x[x < 2]]).sort()",
    "in a loop": "for _ in range(3):\n        x = x[x > -1] - 2\n    return x",
    "in place": "y = x[x > 1]\n    y += 1\n    y.mul_(2)\n    return y",
    "known facts": "y = x[x > 0]\n    return y + y.dim() if y.dtype is torch.float32 and y.ndim == 1 else x",
    "like another": "y = x[x > 0]\n    return torch.zeros_like(y) + y",
    "a known size": "i = x.nonzero()\n    return i * i.shape[1] if False else i * i.size(1)",
    "split at indices": "a, b, c = x.tensor_split(torch.tensor([1, 2]), 1)\n    return a * 2, b.sum(), c.cos()",
    "split at what is computed": "return torch.tensor_split(x, (x[0] > 2).nonzero().flatten()[:0] + 1)[0] * 2",
    "combinations": "return torch.combinations(x[0], 2) * 2, torch.combinations(x[0], 3, True).sum()",
    "narrow from a tensor": "return x.narrow(0, x[:, 0].argmax() // 2, 2) + 1, torch.narrow(x, 1, x[0].argmin(), 1)",
    "written back": "m = x > 2\n    y = x * 1\n    y[m] = x[m] * 10\n    return y",
}


@pytest.mark.slow
@pytest.mark.parametrize("body", CAPTURED.values(), ids=CAPTURED)
def test_captured(body):
    check(f"def f(x):\n    {body}\n", *CALLS)
    scope = {"torch": torch}
    exec(f"def f(x):\n    {body}\n", scope)
    minidynamo.optimize("eager", nopython=True)(scope["f"])(T(3, 4))


BREAKS = {
    "shape": "y = x[x > 0] + 1\n    return y * y.shape[0]",
    "len": "y = torch.unique(x) + 1\n    return y * len(y)",
    "numel": "y = x[x > 0] + 1\n    return y.sum() / max(y.numel(), 1)",
    "new tensor": "y = x[x > 0] + 1\n    return x.new_zeros(y.shape) + y",
    "iteration": "y = x[x > 0] + 1\n    return sum([v for v in y], x.sum())",
    "fails when empty": "y = x[x > 0] + 1\n    try:\n        return y.max()\n    except RuntimeError:\n        return x",
    "sizes that may differ": "y = x[x > 0]\n    return y + x[x > 0].cos()",
    "rank": "y = x[x > 8] + 1\n    return y.squeeze() * y.squeeze().dim()",
    "how many parts": "return x.tensor_split(torch.tensor(2))[0] * 2",
    "truth": "y = x[x > 10]\n    return x + 1 if y.sum() > 0 else x - 1",
}


@pytest.mark.parametrize("body", BREAKS.values(), ids=BREAKS)
def test_breaks(body):
    check(f"def f(x):\n    {body}\n", *CALLS)
    scope = {"torch": torch}
    exec(f"def f(x):\n    {body}\n", scope)
    with pytest.raises(minidynamo.exc.Unsupported, match=r"MD20[1-3]"):
        minidynamo.optimize("eager", nopython=True)(scope["f"])(T(3, 4))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.unique(x) * 2,
        lambda x: x.tensor_split(torch.tensor([1]))[0] * 2,
        lambda x: torch.narrow(x, 0, torch.tensor(1), 2) * 2,
    ],
    ids=["unique", "tensor_split", "narrow"],
)
def test_what_compilers_make_no_derivative_of_is_for_others_only(f):
    """A compiler would refuse the graph, or its backward pass; as it is it runs."""
    x = T(3, requires_grad=True)
    with pytest.raises(minidynamo.exc.Unsupported, match="MD203"):
        minidynamo.optimize("aot_eager", nopython=True)(f)(x)
    assert torch.equal(minidynamo.optimize("aot_eager")(f)(x), f(x))
    assert torch.equal(minidynamo.optimize("eager", nopython=True)(f)(x), f(x))
    assert torch.equal(minidynamo.optimize("aot_eager", nopython=True)(f)(x.detach()), f(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "program",
    [
        lambda x: x[x > 0] * 2,
        lambda x: torch.masked_select(x, x > 0).exp().sum(),
        lambda x: x[torch.nonzero(x > 0, as_tuple=True)].cos(),
        lambda x: x[(x > 0).nonzero()[:, 0]] + 1,
    ],
    ids=["mask", "masked_select", "nonzero", "rows"],
)
def test_results_and_gradients_with_every_backend(backend, program):
    captured = minidynamo.optimize(backend, nopython=True)(program)
    for shift in (0.0, 5.0, 100.0, 11.0):
        ours, theirs = ((T(3, 4) - shift).requires_grad_() for _ in range(2))
        got, wanted = captured(ours), program(theirs)
        torch.testing.assert_close(got, wanted)
        got.sum().backward()
        wanted.sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
