"""The promises of `infer`: what it answers, what it raises, and that it leaves no trace."""

from __future__ import annotations

import operator
import subprocess
import sys
import warnings

import pytest
import torch
import torch.nn.functional as F

from minidynamo import config
from minidynamo.exc import InternalError
from minidynamo.graph import fake, meta
from minidynamo.graph.meta_rules import RULES
from minidynamo.graph.meta_value import TensorMeta
from tests.ids import stable

IMPORTS = """
import operator, sys, torch, torch.nn.functional as F
before = set(sys.modules)
from minidynamo.graph import meta
x = meta.TensorMeta.of(torch.ones(2, 3, 4))
calls = [
    (operator.add, (x, 1)), (torch.sum, (x, 1)), (F.linear, (x, meta.TensorMeta.of(torch.ones(5, 4)))),
    (operator.matmul, (x, meta.TensorMeta.of(torch.ones(4, 2)))), (("method", "view"), (x, 6, 4)),
    (operator.getitem, (x, 0)), (torch.cat, ([x, x],)), (F.softmax, (x, -1)), (torch.arange, (5,)),
    (("method", "to"), (x, torch.float64)), (F.layer_norm, (x, (4,))), (F.dropout, (x,)),
]
for op, args in calls:
    assert meta._tier1(op, args, {}, True) is not NotImplemented, op
heavy = ("sympy", "torch._dynamo", "torch._subclasses", "torch._meta_registrations", "torch._refs")
print([name for name in heavy if name in set(sys.modules) - before])
"""


@pytest.mark.slow
def test_tier_one_imports_nothing_heavy():
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


X = TensorMeta.of(torch.ones(2, 3))
ONE = TensorMeta.of(torch.ones(()))
LEAF = TensorMeta.of(torch.ones(2, 3, requires_grad=True))
NON_LEAF = TensorMeta.of(torch.ones(2, 3, requires_grad=True) * 2)


@pytest.mark.parametrize(
    ("op", "args", "error"),
    [
        (("method", "item"), (ONE,), meta.NeedsData),
        (torch.allclose, (X, X), meta.NeedsData),
        (bool, (ONE,), meta.NeedsData),
        (("method", "t_"), (X,), meta.MutatesMeta),
        (("method", "resize_"), (X, 7), meta.MutatesMeta),
        (("method", "requires_grad_"), (X,), meta.MutatesMeta),
        (("method", "detach_"), (NON_LEAF,), meta.MutatesMeta),
        (("method", "numpy"), (X,), meta.Unknown),
    ],
    ids=stable,
)
def test_what_metadata_cannot_answer(op, args, error):
    for _ in range(2):  # worked out, then from the cache
        with pytest.raises(error):
            meta.infer(op, args, {}, True)


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (torch.add, (X, TensorMeta.of(torch.ones(4))), {}),
        (torch.sum, (X,), {"dim": 5}),
        (("method", "view"), (X, 4), {}),
        (operator.matmul, (X, X), {}),
        (("method", "add_"), (LEAF, 1), {}),
        (("method", "no_such_method"), (X,), {}),
        (torch.add, (X,), {}),
    ],
    ids=stable,
)
def test_failing_operators_fail_as_in_eager(op, args, kwargs):
    with pytest.raises(Exception) as eager:
        fake.call(
            op,
            fake.rebuild(args, lambda value: value.make_empty() if isinstance(value, TensorMeta) else value),
            kwargs,
        )
    with pytest.raises(meta.OpFailed) as ours:
        meta.infer(op, args, kwargs, True)
    assert (type(ours.value.exception), str(ours.value.exception)) == (eager.type, str(eager.value))


def test_history_written_into_a_tensor():
    with pytest.raises(meta.MutatesMeta) as caught:
        meta.infer(operator.setitem, (X, 0, TensorMeta.of(torch.ones(3, requires_grad=True))), {}, True)
    assert caught.value.history_only
    assert [after.requires_grad for _, after in caught.value.after] == [True]
    assert meta.infer(operator.setitem, (X, 0, 1.0), {}, True) is None
    with pytest.raises(meta.MutatesMeta) as caught:
        meta.infer(("method", "t_"), (X,), {}, True)
    assert not caught.value.history_only


@pytest.mark.parametrize(
    "op", [("method", "contiguous"), ("method", "float"), torch.positive, ("method", "add_")], ids=stable
)
def test_an_operator_that_returns_its_argument_returns_its_metadata_object(op):
    given = TensorMeta.of(torch.ones(2, 3))
    assert meta.infer(op, (given, 1) if op == ("method", "add_") else (given,), {}, True) is given


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (torch.randperm, (5,), {}),
        (F.rrelu, (X,), {"training": True}),
        (F.fractional_max_pool2d, (TensorMeta.of(torch.ones(1, 1, 4, 4)), 2), {"output_size": 2}),
        (torch.normal, (X, 1.0), {}),
        (torch.multinomial, (X, 9), {}),
    ],
    ids=stable,
)
def test_fake_runs_leave_no_trace(op, args, kwargs):
    fake._cache.clear()
    state, grad = torch.get_rng_state(), torch.is_grad_enabled()
    with warnings.catch_warnings(record=True) as shown:
        try:
            meta.infer(op, args, kwargs, not grad)
        except meta.MetaError as error:
            assert isinstance(error, meta.OpFailed)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.is_grad_enabled() == grad
    assert not shown
    assert not torch._C._len_torch_dispatch_stack()


def test_fake_results_are_cached_within_bounds(monkeypatch):
    monkeypatch.setattr(fake, "_CACHE_SIZE", 3)
    fake._cache.clear()
    for size in range(2, 8):
        given = TensorMeta.of(torch.ones(size, size))
        for _ in range(2):
            assert meta.infer(torch.trace, (given,), {}, True).shape == ()
    assert len(fake._cache) == 3
    one, real, true = (fake._frozen(value) for value in (1, 1.0, True))
    assert len({one, real, true, fake._frozen(0.0), fake._frozen(-0.0)}) == 5


def test_verify_names_operator_and_difference(monkeypatch):
    monkeypatch.setitem(RULES, torch.trace, lambda grad_mode, input: input)
    with pytest.raises(InternalError, match=r"torch\.trace.*shape is \(2, 3\) by rule, \(\) by fake"):
        meta.verify(torch.trace, (X,), {})
    with config.patch(verify=True), pytest.raises(InternalError, match="trace"):
        meta.infer(torch.trace, (X,), {}, True)


def test_one_rule_for_an_operator():
    with pytest.raises(InternalError, match="two metadata rules"):
        meta.meta_rule(torch.add)(lambda grad_mode, *args: None)


def test_autocast_is_left_to_fake_tensors():
    square = TensorMeta.of(torch.ones(3, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert meta.infer(torch.mm, (square, square), {}, True).dtype is torch.bfloat16
    assert meta.infer(torch.mm, (square, square), {}, True).dtype is torch.float32
