"""Inputs that share memory, under compilers that make in-place graphs functional (decisions 1 and 6)."""

from __future__ import annotations

import pytest
import torch
import torch._guards as theirs

import minidynamo
from tests.eager import T, watching

COMPILERS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


def same_as_eager(f, captured, make):
    """`make()` gives the arguments, and the tensor to look at afterwards."""
    (*wanted, seen), (*given, seen_too) = make(), make()
    expected, got = f(*wanted), captured(*given)
    assert torch.equal(expected, got) and torch.equal(seen, seen_too)


def views(first, second, size=10, base=lambda size: torch.arange(float(size))):
    def make():
        whole = base(size)
        return whole[first : first + 4], whole[second : second + 4], whole

    return make


def write(a, b):
    a.mul_(2)
    return b + 1


def write_a_view(a, b):
    a.view(2, 2)[0].add_(1)
    return a * b


@pytest.mark.parametrize("f", [write, write_a_view])
@pytest.mark.parametrize("backend", COMPILERS)
def test_overlapping_views_of_which_one_is_written(backend, f):
    captured = minidynamo.optimize(backend)(f)
    for first, second in ((0, 2), (0, 5), (1, 3), (3, 1), (0, 2), (2, 2)):
        same_as_eager(f, captured, views(first, second))
    same_as_eager(f, captured, views(0, 2, size=12))
    same_as_eager(f, captured, views(0, 2, base=lambda n: torch.arange(2.0 * n)[::2]))
    same_as_eager(f, captured, lambda: (T(4), T(4) + 1, T(1)))
    same_as_eager(f, captured, lambda: (T(4), T(4) + 2, T(1)))
    texts = [entry.guarded.check.source_text for entry in minidynamo.cache_entries(f)]
    assert len(texts) == 8
    assert all("___check_storages((a, b,), " in text for text in texts)
    assert sum("___check_places((a, b,), " in text for text in texts) == 7


@pytest.mark.parametrize("backend", COMPILERS)
def test_views_that_begin_elsewhere(backend):
    """No input is written: the entry serves every place, and outputs alias the right input."""

    def f(x):
        return x[1:], x * 2

    captured = minidynamo.optimize(backend)(f)
    whole = T(10)
    for start in (0, 3, 5):
        x = whole[start : start + 4]
        tail, _ = captured(x)
        assert tail.data_ptr() == x[1:].data_ptr() and torch.equal(tail, x[1:])
    assert len(minidynamo.cache_entries(f)) == 1


@pytest.mark.parametrize("backend", ["eager", *COMPILERS])
def test_one_tensor_twice_then_two(backend):
    captured = minidynamo.optimize(backend)(write)

    def once():
        x = T(4)
        return x, x, x

    for make in (once, lambda: (T(4), T(4) + 1, T(1)), once, lambda: (T(4), T(4), T(1))):
        same_as_eager(write, captured, make)
    assert len(minidynamo.cache_entries(write)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_when_a_tensor_is_passed_twice(backend):
    def f(a, b):
        return (a * b).sum()

    captured = minidynamo.optimize(backend)(f)
    for same in (True, False, True):
        grads = []
        for fn in (f, captured):
            a = T(3, requires_grad=True)
            b = a if same else (T(3) + 1).requires_grad_()
            fn(a, b).backward()
            grads.append((a.grad, b.grad))
        assert all(torch.equal(x, y) for x, y in zip(*grads))


def test_a_backend_that_runs_graphs_as_they_are_needs_no_such_guards():
    f = minidynamo.optimize("eager")(write)
    for first, second in ((0, 2), (0, 5), (1, 3)):
        same_as_eager(write, f, views(first, second))
    assert len(minidynamo.cache_entries(f)) == 1


def test_graphs_that_write_only_what_they_made():
    def f(x, w, b):
        y = torch.nn.functional.linear(x, w, b)
        y.relu_()
        z = (y + 1).view(-1)
        z.add_(1)
        return z

    captured = minidynamo.optimize(lambda gm, inputs: gm.forward)(f)
    captured(T(2, 3), T(4, 3), T(4))
    (entry,) = minidynamo.cache_entries(captured)
    assert "___check_storages" not in entry.guarded.check.source_text


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x.view(-1),
        lambda x: x.reshape(2, 2),
        lambda x: x[1:],
        lambda x: x.contiguous(),
        lambda x: x.to(torch.float32),
        lambda x: torch.nn.functional.dropout(x, 0.5, False),
        lambda x: torch.broadcast_tensors(x, x)[0],
        lambda x: torch.einsum("i->i", x),
        lambda x: x.type_as(x),
        lambda x: x.detach(),
        lambda x: x.unbind()[0],
        lambda x: torch.split(x, 2)[1],
    ],
)
def test_writes_of_views_of_inputs_are_seen(make):
    def f(x, y):
        v = make(x)
        v.mul_(2)
        return y + 1

    captured = minidynamo.optimize(lambda gm, inputs: gm.forward)(f)
    captured(T(4), T(4))
    texts = [entry.guarded.check.source_text for entry in minidynamo.cache_entries(captured)]
    assert any("___check_storages" in text for text in texts)


def test_guards_that_a_backend_leaves_become_rows():
    """AOTAutograd's two kinds, left by a backend."""

    def backend(gm, inputs):
        a, b, c = (n._dynamo_source for n in gm.graph.find_nodes(op="placeholder"))
        asked = theirs.TracingContext.get().guards_context.aotautograd_guards
        asked.append(theirs.StorageOverlap([a, b], [c]))
        return gm.forward

    def f(a, b, c):
        return a + b + c

    captured = minidynamo.optimize(backend)(f)
    whole = T(10)
    with watching() as seen:
        captured(whole[:4], whole[2:6], T(4))
        captured(whole[1:5], whole[3:7], T(4))
        captured(whole[:4], whole[4:8], T(4))
    texts = [entry.guarded.check.source_text for entry in minidynamo.cache_entries(f)]
    assert len(texts) == 2 and "___check_storages((a, b, c,), ((0, 0), (0, 8), (1, 0)))" in texts[0]
    assert len(seen.recompiles) == 1


def test_a_guard_for_duplicates_that_a_backend_leaves():
    def backend(gm, inputs):
        a, b = (n._dynamo_source for n in gm.graph.find_nodes(op="placeholder"))
        theirs.TracingContext.get().guards_context.aotautograd_guards.append(theirs.DuplicateInputs(a, b))
        return gm.forward

    f = minidynamo.optimize(backend)(lambda a, b: a + b)
    with pytest.raises(minidynamo.exc.InternalError, match="guard `b is a`.* does not hold"):
        f(T(3), T(3))


def test_a_guard_of_an_unknown_kind_is_refused():
    def backend(gm, inputs):
        theirs.TracingContext.get().guards_context.aotautograd_guards.append(theirs.GuardEnvExpr())
        return gm.forward

    f = minidynamo.optimize(backend)(lambda a: a + 1)
    with pytest.raises(minidynamo.exc.InternalError, match="a kind that is not known: GuardEnvExpr"):
        f(T(3))
