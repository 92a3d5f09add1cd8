"""The backend "aot_eager": AOTAutograd's graphs, run as they are."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

import minidynamo
from tests.eager import T, check, watching


def test_forward_and_backward_are_aotautograds():
    @minidynamo.optimize("aot_eager", nopython=True)
    def f(x, w):
        return torch.relu(x @ w).sum()

    w = T(3, 2, requires_grad=True)
    loss = f(T(4, 3), w)
    assert type(loss.grad_fn).__name__ == "CompiledFunctionBackward"
    loss.backward()
    plain = T(3, 2, requires_grad=True)
    torch.relu(T(4, 3) @ plain).sum().backward()
    assert torch.equal(w.grad, plain.grad)


def test_nothing_of_the_backward_pass_is_captured_again():
    """The program calls backward() where frames are candidates."""

    @minidynamo.optimize("aot_eager")
    def step(x, w):
        loss = torch.relu(x @ w).sum()
        loss.backward()
        return loss * 2

    with watching() as seen:
        for _ in range(2):
            w = T(3, 2, requires_grad=True)
            step(T(4, 3), w)
    functions = {event.where.function for event in seen.compiled}
    assert functions == {"test_nothing_of_the_backward_pass_is_captured_again.<locals>.step"}
    assert w.grad.shape == (3, 2)


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("return x.view(-1), x.t(), x", "T(2, 3)"),
        ("x.mul_(2); return x, x[0]", "T(2, 3)"),
        ("y = x.t(); y.add_(1); return y", "T(2, 3)"),
        ("x[0] = 5; return x.sum()", "T(2, 3)"),
        ("y = x + 1; return y, y", "T(2, 3)"),
        ("return x.to(torch.float64), x.expand(2, 2, 3), torch.zeros(2)", "T(2, 3)"),
        ("return torch.cat([x, x]), x.split(1), x.sum(0, keepdim=True), x.max(1)", "T(2, 3)"),
        ("a, b = x.chunk(2); return a.sin_(), b", "T(2, 3)"),
    ],
)
def test_programs_agree_with_eager(body, arguments):
    source = f"def f(x):\n    {body.replace('; ', chr(10) + '    ')}\n"
    seen = check(source, f"f({arguments})", f"f({arguments})", backend="aot_eager")
    assert seen.graphs > 0


@pytest.mark.parametrize(
    "body",
    [
        "y = x + 1; return y, y[0], y.t()",
        "return x.detach(), x * 2",
        "x = x * 1; x.mul_(2); x[0].add_(1); return x",
        "with torch.no_grad(): y = x * 2\n    return y * x, y",
        "return x, x.view(-1)",
        "y = x.exp(); return y.detach(), y",
    ],
)
def test_gradients_agree_with_eager(body):
    names: dict[str, object] = {"torch": torch}
    exec(f"def f(x):\n    {body.replace('; ', chr(10) + '    ')}\n", names)
    plain = names["f"]
    captured = minidynamo.optimize("aot_eager", nopython=True)(plain)
    results = []
    for fn in (plain, captured):
        x = T(2, 3, requires_grad=True)
        out = fn(x)
        out = out if isinstance(out, tuple) else (out,)
        sum((t * t).sum() for t in out if t.requires_grad).backward()
        same = [t is x for t in out]
        shared = [t.untyped_storage()._cdata == x.untyped_storage()._cdata for t in out]
        results.append((out, x.grad, [t.requires_grad for t in out], same, shared))
    (out, grad, *facts), (out2, grad2, *facts2) = results
    assert facts == facts2
    torch.testing.assert_close(out2, out)
    torch.testing.assert_close(grad2, grad)


def test_modules():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    plain = deepcopy(module)
    captured = minidynamo.optimize("aot_eager", nopython=True)(module)
    for _ in range(3):
        for each in (captured, plain):
            each(T(5, 3)).sum().backward()
    for (name, mine), other in zip(module.named_parameters(), plain.parameters()):
        assert torch.allclose(mine.grad, other.grad, atol=1e-6), name
    for (name, mine), other in zip(module.named_buffers(), plain.buffers()):
        assert torch.allclose(mine, other), name
