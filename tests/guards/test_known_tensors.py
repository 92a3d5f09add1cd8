"""Tensors that a snapshot knows are checked in one go, each as if it were alone."""

from __future__ import annotations

import pytest
import torch

import minidynamo

LAYERS = 7


@pytest.fixture
def settled():
    """(modules, function, entry), after enough calls for a snapshot."""
    layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(LAYERS))

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    fn = minidynamo.optimize("eager")(f)
    for _ in range(6):
        fn(torch.ones(2, 3))
    (entry,) = minidynamo.cache_entries(fn)
    assert entry.check_fn.snapshot["tensors"] == 2 * LAYERS
    return layers, fn, entry


def in_place(name, *args):
    def change(p):
        with torch.no_grad():
            getattr(p, name)(*args)

    return change


def other_class(p):
    p.__class__ = Mine


def swapped(make):
    """`torch.utils.swap_tensors`, after which what was the parameter's tensor dies."""
    return lambda p: torch.utils.swap_tensors(p, make(p))


def no_leaf(p):
    with torch.no_grad():
        p.requires_grad_(False)
    p.mul_(torch.ones(3, requires_grad=True))  # requires a gradient again, by its history
    p.detach_()


class Mine(torch.nn.Parameter):
    pass


CHANGES = {
    "a transposed view": lambda p: setattr(p, "data", p.data.t()),
    "another dtype": lambda p: setattr(p, "data", p.data.double()),
    "a dtype of the same size": lambda p: setattr(p, "data", p.data.to(torch.float16).to(torch.bfloat16)),
    "another size": lambda p: setattr(p, "data", torch.ones(4, 4)),
    "no gradient": lambda p: p.requires_grad_(False),
    "no gradient, by its flag": lambda p: setattr(p, "requires_grad", False),
    "no leaf any more": no_leaf,
    "more dimensions": lambda p: setattr(p, "data", torch.ones(1, 1, 1, 3, 3, 3, 3)),
    "fewer dimensions": lambda p: setattr(p, "data", torch.ones(3)),
    "no dimensions": lambda p: setattr(p, "data", torch.ones(())),
    "another device": swapped(lambda p: torch.nn.Parameter(torch.empty(3, 3, device="meta"))),
    "another layout": swapped(lambda p: torch.nn.Parameter(torch.eye(3).to_sparse())),
    "negated lazily": lambda p: setattr(p, "data", torch._neg_view(p.data)),
    "set_": in_place("set_", torch.ones(2, 2)),
    "set_ with strides": lambda p: in_place("set_", p.data.untyped_storage(), 0, (3, 3), (1, 3))(p),
    "t_": in_place("t_"),
    "transpose_": in_place("transpose_", 0, 1),
    "unsqueeze_": in_place("unsqueeze_", 0),
    "as_strided_": in_place("as_strided_", (3, 3), (0, 1)),
    "expanded": lambda p: setattr(p, "data", torch.ones(1, 3).expand(3, 3)),
    "another class": other_class,
    "swapped with another dtype": swapped(lambda p: torch.nn.Parameter(torch.ones(3, 3).double())),
    "swapped with a transposed one": swapped(lambda p: torch.nn.Parameter(torch.ones(3, 3).t())),
    "swapped with one without gradient": swapped(
        lambda p: torch.nn.Parameter(torch.ones(3, 3), requires_grad=False)
    ),
    "swapped with another size": swapped(lambda p: torch.nn.Parameter(torch.ones(3, 4))),
    "swapped with another class": swapped(lambda p: torch.ones(3, 3, requires_grad=True)),
}

SAME = {
    "data of the same kind": lambda p: setattr(p, "data", torch.zeros(3, 3)),
    "data of the same kind, elsewhere": lambda p: setattr(p, "data", torch.zeros(4, 3)[1:]),
    "swapped with its like": swapped(lambda p: torch.nn.Parameter(torch.zeros(3, 3))),
    "written": in_place("fill_", 0.5),
    "a gradient": lambda p: p.sum().backward(),
    "a hook": lambda p: p.register_hook(lambda grad: None),
    "a hook after accumulation": lambda p: p.register_post_accumulate_grad_hook(lambda p: None),
    "an attribute": lambda p: setattr(p, "tag", 1),
    "its flag off and on": lambda p: p.requires_grad_(False).requires_grad_(True),
}


@pytest.mark.parametrize("layer", [0, 1, LAYERS // 2, LAYERS - 1])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_any_of_them_is_seen(settled, layer, change):
    layers, _, entry = settled
    values = (torch.ones(2, 3), *_scope(settled))
    assert entry.check_fn(*values)
    weight = layers[layer].weight
    if weight.dim() == 1:
        pytest.skip("matrices only")
    assert entry.check_fn(*values)
    change(weight)
    assert not entry.check_fn(*values)
    assert not entry.check_fn(*values)
    layers[layer].weight = torch.nn.Parameter(torch.ones(3, 3))
    assert entry.check_fn(*values)


@pytest.mark.parametrize("layer", [0, LAYERS - 1])
@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_what_is_no_change_of_metadata(settled, layer, change):
    layers, fn, entry = settled
    x = torch.ones(2, 3)
    change(layers[layer].weight)
    for _ in range(3):
        assert torch.equal(fn(x), fn.__wrapped__(x))
    assert minidynamo.cache_entries(fn) == [entry]
    assert entry.check_fn.snapshot["tensors"] == 2 * LAYERS
    layers[layer].weight.data = torch.ones(3, 3).t()
    assert not entry.check_fn(x, *_scope(settled))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_one_of_two_instances_is_seen(change):
    """Each instance has a snapshot of its own; what is changed in one is seen in that one only."""
    models = [torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3))) for _ in range(2)]

    @minidynamo.optimize("eager")
    def fn(model, x):
        return model(x)

    x = torch.ones(2, 3)
    for _ in range(8):
        for model in models:
            fn(model, x)
    (entry,) = minidynamo.cache_entries(fn)
    values = [(model, x, fn.__wrapped__.__globals__, None) for model in models]
    assert [snapshot["tensors"] for snapshot in entry.check_fn.snapshots] == [6, 6]
    for i, model in enumerate(models):
        change(model[1].weight)
        assert [entry.check_fn(*each) for each in values] == [each != i for each in range(2)]
        model[1].weight = torch.nn.Parameter(torch.ones(3, 3))
        assert all(entry.check_fn(*each) for each in values)


def test_kinds_of_tensors_of_one_program():
    """Ranks up to seven, types, with and without gradient, all of them twice."""

    class Kinds(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for rank in range(8):
                for copy in "ab":
                    setattr(self, f"p{rank}{copy}", torch.nn.Parameter(torch.ones([2] * rank)))
                    self.register_buffer(f"b{rank}{copy}", torch.ones([2] * rank))
            self.mine = Mine(torch.ones(2))
            self.whole = torch.nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False)

        def forward(self, x):
            for value in (*self.parameters(), *self.buffers()):
                x = x + value.sum()
            return x

    model, x = Kinds(), torch.ones(2)

    @minidynamo.optimize("eager")
    def fn(model, x):
        return model(x)

    for _ in range(8):
        fn(model, x)
    (entry,) = minidynamo.cache_entries(fn)
    names = [*dict(model.named_parameters()), *dict(model.named_buffers())]
    assert entry.check_fn.snapshot["tensors"] == len(names) == 34
    scope = fn.__wrapped__.__globals__, None
    for name in names:
        tensor = getattr(model, name)
        before = tensor.data
        for other in (
            torch.ones(3, 5, dtype=before.dtype),
            before.new_ones(before.shape, dtype=torch.float64),
        ):
            assert entry.check_fn(model, x, *scope)
            if other.dtype.is_floating_point >= tensor.requires_grad:
                tensor.data = other
                assert not entry.check_fn(model, x, *scope), name
            tensor.data = before


def test_values_may_change(settled):
    layers, fn, entry = settled
    for layer in layers:
        with torch.no_grad():
            layer.weight.fill_(0.5)
    x = torch.ones(2, 3)
    assert torch.equal(fn(x), fn.__wrapped__(x))
    assert minidynamo.cache_entries(fn) == [entry]


@pytest.mark.parametrize("layer", [0, LAYERS - 1])
def test_a_parameter_that_is_replaced_and_dies(settled, layer):
    layers, fn, entry = settled
    layers[layer].weight = torch.nn.Parameter(torch.ones(3, 3, dtype=torch.float32))
    x = torch.ones(2, 3)
    assert torch.equal(fn(x), fn.__wrapped__(x))
    layers[layer].weight = torch.nn.Parameter(torch.ones(3, 3, dtype=torch.float64).t())
    assert not entry.check_fn(x, *_scope(settled))


def test_grad_mode_is_asked_for_once_and_holds_for_all(settled):
    _, _, entry = settled
    values = (torch.ones(2, 3), *_scope(settled))
    with torch.no_grad():
        assert not entry.check_fn(*values)
    assert entry.check_fn(*values)


def _scope(settled):
    fn = settled[1].__wrapped__
    return fn.__globals__, fn.__closure__
