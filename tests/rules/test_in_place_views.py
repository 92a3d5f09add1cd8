"""Methods that change a tensor's own metadata: captured on tensors that the graph makes, on all others plain Python runs them."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from tests.eager import check

VIEWS = {
    "t_": "y = x[0] * 2\n    y.t_()",
    "transpose_": "y = x * 2\n    y.transpose_(0, 2)",
    "swapaxes_": "y = x * 2\n    y.swapaxes_(0, 1)",
    "swapdims_": "y = x * 2\n    y.swapdims_(1, 2)",
    "squeeze_": "y = x.sum(1, True)\n    y.squeeze_()",
    "squeeze_ of a dimension": "y = x.sum(1, True)\n    y.squeeze_(1)",
    "unsqueeze_": "y = x * 2\n    y.unsqueeze_(0)",
    "unsqueeze_ by keyword": "y = x * 2\n    y.unsqueeze_(dim=-1)",
    "as_strided_": "y = x * 2\n    y.as_strided_((2, 2), (1, 2))",
    "the function": "y = x * 2\n    torch.as_strided_(y, (3,), (1,))",
    "the method of the class": "y = x * 2\n    torch.Tensor.transpose_(y, 0, 1)",
    "detach_": "y = x * 2\n    y.detach_()",
    "several": "y = x * 2\n    y.unsqueeze_(0).transpose_(0, 1).squeeze_().add_(1)",
    "a view of what the graph made": "z = x * 2\n    y = z.transpose(0, 1)\n    y.unsqueeze_(0)",
    "views keep their own": "y = x * 2\n    z = y.view(-1)\n    y.unsqueeze_(0)\n    x = x + z.sum() + z.dim()",
    "written afterwards": "y = x * 2\n    y.transpose_(0, 2)\n    y[0] = 7",
    "in a list": "a = [x * 2]\n    a[0].unsqueeze_(0)\n    y = a[0]",
    "in a call": "def g(v):\n        v.transpose_(0, 1)\n    y = x * 2\n    g(y)",
}
AS_IT_IS = {
    "resize_": "y = x.detach() * 2\n    y.resize_(2, 3)",
    "resize_ to more": "y = x.detach() * 2\n    y.resize_(50).fill_(1)",
    "resize_as_": "y = x.detach() * 2\n    y.resize_as_(torch.empty(2))",
    "requires_grad_": "y = x.detach() * 2\n    y.requires_grad_()",
    "set_": "y = x.detach() * 2\n    y.set_(torch.ones(2, 2))",
    "set_ of the same sizes": "y = x.detach() * 2\n    z = x.detach() + 1\n    y.set_(z)\n    z.add_(1)",
}
OTHERS = {
    "an argument": "y = x\n    y.unsqueeze_(0)",
    "perhaps an argument": "y = x.contiguous()\n    y.unsqueeze_(0)",
    "known by another name": "y = x * 2\n    z = y.contiguous()\n    y.unsqueeze_(0)\n    x = x + z.dim()",
    "set_ of an argument": "y = x\n    y.set_(torch.ones(2, 3, 2))",
    "resize_ of an argument": "y = x\n    y.resize_(2)",
    "data": "y = x * 2\n    y.data = torch.ones(2)",
}
RESULT = "return y * 3, y.shape, y.stride(), y.requires_grad, y.dim(), x + 1, y"


def program(body: str) -> str:
    return f"def f(x):\n    {body}\n    {RESULT}\n"


@pytest.mark.parametrize("body", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize(("backend", "grad"), [("eager", False), ("eager", True), ("aot_eager", False)])
def test_views(backend, body, grad):
    call = f"f(T(2, 3, 2, requires_grad={grad}))"
    seen = check(program(body), call, call, backend=backend)
    assert not seen.breaks and seen.graphs == 1


@pytest.mark.slow
@pytest.mark.parametrize("body", VIEWS.values(), ids=VIEWS)
def test_views_with_inductor(body):
    call = "f(T(2, 3, 2))"
    assert not check(program(body), call, call, backend="inductor").breaks


@pytest.mark.parametrize("body", AS_IT_IS.values(), ids=AS_IT_IS)
def test_what_only_a_graph_that_runs_as_it_is_can_do(body):
    seen = check(program(body), "f(T(2, 3, 2))", "f(T(2, 3, 2))")
    assert not seen.breaks and seen.graphs == 1
    scope = {"torch": torch}
    exec(program(body), scope)
    with pytest.raises(minidynamo.exc.Unsupported, match="MD20[56]"):
        minidynamo.optimize("aot_eager", nopython=True)(scope["f"])(torch.ones(2, 3, 2))


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_of_what_may_be_another_tensor_plain_python_does_it(body):
    seen = check(f"V = T(2, 3, 2)\n{program(body)}", "f(V)", "f(V)", "f(T(2, 3, 2))", "V")
    assert seen.breaks and {row.code for row in seen.breaks} <= {"MD205", "MD206", "MD233"}


def test_gradients_flow():
    def f(x):
        y = (x * x).transpose_(0, 1).unsqueeze_(0)
        return y * torch.arange(6.0).view(1, 3, 2)

    for backend in ("eager", "aot_eager"):
        ours, theirs = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
        minidynamo.optimize(backend, nopython=True)(f)(ours).sum().backward()
        f(theirs).sum().backward()
        assert torch.equal(ours.grad, theirs.grad)


def test_the_programs_own_error():
    check("def f(x):\n    y = x * 2\n    y.t_()\n    return y", "f(T(2, 3, 2))")
    check(
        "def f(x):\n    y = x * 2\n    try:\n        y.squeeze_(7)\n    except IndexError:\n        return y\n",
        "f(T(2))",
    )
