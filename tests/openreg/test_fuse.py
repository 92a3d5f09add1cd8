"""Backend openreg_fuse: what it fuses, what it leaves alone, and that results are eager's."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

D = "openreg"
EDGES = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5, -2.5, 3e38, 1e-40]


@pytest.fixture(autouse=True)
def backend():
    import minidynamo.openreg.fuse as fuse

    return fuse


def compiled(fn, *args):
    """(result, number of fused calls, operators left) of `fn` under the backend."""
    import minidynamo

    graphs = []

    def keep(gm, inputs):
        call = minidynamo.lookup_backend("openreg_fuse").compiler_fn(gm, inputs)
        graphs.append([n.target for n in gm.graph.nodes if n.op.startswith("call_")])
        return call

    result = minidynamo.optimize(keep, nopython=True)(fn)(*args)
    (targets,) = graphs
    fused = sum(target is torch.ops.openreg.pointwise.default for target in targets)
    return result, fused, len(targets) - fused


def equal(x, y):
    return (
        torch.equal(torch.nan_to_num(x.cpu(), 7.5), torch.nan_to_num(y.cpu(), 7.5))
        and x.stride() == y.stride()
    )


def pair():
    return torch.randn(3, 1000, device=D), torch.tensor(EDGES, device=D).repeat(3, 1000)[
        :, :1000
    ].contiguous()


FUSED = {
    "chain": (lambda x, y: torch.relu(x * 0.5 + y) * (x - y) / 3, 1, 0),
    "methods": (lambda x, y: x.add(y).mul(2).relu().neg().abs(), 1, 0),
    "functions": (
        lambda x, y: torch.maximum(F.relu(x), torch.abs(y)) - torch.minimum(x, y),
        1,
        0,
    ),
    "numbers": (lambda x, y: 1 - (2 * x + 0.1) / 3 - y, 1, 0),
    "shared": (lambda x, y: (x + y) * (x + y).neg() * x, 1, 0),
    "around": (lambda x, y: (x + y).neg().sin() * 2 + 1, 1, 3),
}
LEFT_ALONE = {
    "one operator": lambda x, y: x + y,
    "reciprocal": lambda x, y: 2.0 / (3 / x),
    "type": lambda x, y: (x.double() + 1) * 2,
    "broadcast": lambda x, y: (x[:1] + y[:1]) * 2,
    "in place": lambda x, y: ((x + 1) * 2).add_(y) * 2,
    "alpha": lambda x, y: torch.add(x, y, alpha=2) * y,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUSED)
def test_chains_become_one_operator(name):
    fn, calls, others = FUSED[name]
    x, y = pair()
    result, fused, left = compiled(fn, x, y)
    assert equal(result, fn(x, y))
    assert (fused, left) == (calls, others)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEFT_ALONE)
def test_the_rest_is_left_alone(name):
    x, y = pair()
    result, fused, _ = compiled(LEFT_ALONE[name], x.clone(), y)
    assert fused == 0 and equal(result, LEFT_ALONE[name](x.clone(), y))


@pytest.mark.parametrize(
    "change", [lambda t: t.t(), lambda t: t.half(), lambda t: t.cpu(), lambda t: t.requires_grad_()]
)
def test_inputs_that_it_cannot_take(change):
    x, y = (change(t) for t in pair())
    fn = FUSED["chain"][0]
    result, fused, _ = compiled(fn, x, y)
    assert fused == 0 and equal(result.detach(), fn(x, y).detach())


def test_gradients_that_nobody_waits_for():
    x, y = (t.requires_grad_() for t in pair())
    with torch.no_grad():
        result, fused, _ = compiled(FUSED["chain"][0], x, y)
    assert fused == 1 and not result.requires_grad


def test_two_results():
    x, y = pair()
    (a, b), fused, left = compiled(lambda x, y: ((x + y) * 2, (x + y) * 2 - x), x, y)
    assert equal(a, (x + y) * 2) and equal(b, (x + y) * 2 - x) and fused + left <= 4


def test_the_operator_refuses_what_it_cannot_do():
    op = torch.ops.openreg.pointwise
    x = torch.ones(4, device=D)
    for inputs, program in [
        ([], [0, 0, 0]),
        ([x], []),
        ([x], [0, 0]),
        ([x], [99, 0, 0]),
        ([x], [-1, 0, 0]),
        ([x], [0, 1, 0]),
        ([x], [0, 0, -1]),
        ([x, x[:2]], [0, 0, 1]),
        ([x.double()], [6, 0, 0]),
        ([x[::2]], [6, 0, 0]),
        ([x, x.to("openreg:1")], [0, 0, 1]),
    ]:
        with pytest.raises((RuntimeError, NotImplementedError)):
            op(inputs, program, [])
    assert op([x], [0, 0, 1], [2.0]).tolist() == [3, 3, 3, 3]
    assert op([x[:0]], [6, 0, 0], []).shape == (0,)
