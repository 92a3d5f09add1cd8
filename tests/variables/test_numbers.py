"""Numbers that are read from tensors: what is captured with them, where they end the graph, and that all backends agree with eager."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from minidynamo import testing
from tests.eager import check

CALLS = ("torch.tensor([.5, 1., -2., 4.])", "torch.tensor([3., 1., -2., 0.])")

CAPTURED = [
    *(f"x {symbol} x.sum().item()" for symbol in ("+", "-", "*", "/", ">", "<=", "==")),
    *(f"x.sum().item() {symbol} x" for symbol in ("+", "-", "*", "/", "<", "!=")),
    "x.add(x.sum().item())",
    "torch.mul(x, x.sum().item())",
    "torch.full_like(x, x.sum().item()) * x",
    "x * int(x.argmax())",
    "x * float(x.sum())",
    "x * (3 - x.argmax().item() * 2)",
    "(x, x.argmax().item() + 1, x.sum().item(), (x.sum() > 0).item())",
    "x.argmax() + x.sum().item()",
    "[x.argmax().item()] * 2",
    "(x.sum().item() is None, isinstance(x.sum().item(), float), type(x.argmax().item()))",
    "{'loss': x.sum().item()}",
    "x.half() * x.sum().item()",
    "sum([x.argmax().item(), 1, 2])",
    "x.double().sum().item()",
]

BREAKING = [
    "-x.sum().item() * x",
    "x.sum().item() + 1.5",
    "x.sum().item() + x.sum().item()",
    "1 - x.sum().item()",
    "x.argmax().item() + True",
    "x[x.argmax().item()]",
    "x[: x.argmax().item()]",
    "[0] * x.argmax().item()",
    "[1, 2, 3, 4][x.argmax().item()]",
    "'%d' % x.argmax().item()",
    "f'{x.sum().item():.2f}'",
    "x.argmax().item() == 3",
    "3 > x.argmax().item()",
    "max(x.argmax().item(), 3)",
    "divmod(x.argmax().item(), 2)",
    "round(x.sum().item())",
    "{x.argmax().item(): 1}",
    "x.argmax().item() in (0, 1)",
    "not x.argmax().item()",
    "x.argmax().item() and x",
    "x * 2 if x.argmax().item() else x * 3",
    "[i for i in range(x.argmax().item())]",
    "int(x.sum())",
    "float(x.argmax())",
    "int(x.sum().item())",
    "str(x.argmax().item())",
    "x.sum().item().is_integer()",
    "torch.zeros(x.argmax().item())",
    "torch.tensor(x.sum().item())",
    "x.clamp(min=x.min().item())",
    "x * (x.sum() > 0).item()",
    "x.to(torch.complex64)[0].item()",
]


def program(expression: str) -> str:
    return f"def f(x):\n    x = x + 0\n    y = {expression}\n    return y, x * 2\n"


@pytest.mark.parametrize("expression", CAPTURED)
def test_captured(expression):
    seen = check(program(expression), *(f"f({call})" for call in CALLS))
    assert not seen.breaks and seen.graphs == 1


@pytest.mark.slow
@pytest.mark.parametrize("expression", BREAKING)
def test_what_must_know_the_number_breaks(expression):
    assert check(program(expression), *(f"f({call})" for call in CALLS)).breaks


def test_in_place():
    source = "def f(x):\n    x = x * 1\n    x += x.sum().item()\n    x.mul_(x.max().item()).fill_(x.sum().item())\n    return x"
    seen = check(source, *(f"f({call})" for call in CALLS))
    assert not seen.breaks and seen.graphs == 1


def test_a_number_is_read_when_the_program_reads_it():
    """Not when it is used: the tensor changes in between."""
    source = "def f(x):\n    y = x * 1\n    n = y.sum().item()\n    y.mul_(10)\n    return y + n, n"
    seen = check(source, *(f"f({call})" for call in CALLS))
    assert not seen.breaks and seen.graphs == 1


def test_what_cannot_be_a_number_is_the_programs_error():
    check("def f(x):\n    return (x * 2).item()", "f(T(3))", "f(T(1))")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("grad", [False, True])
def test_compilers(backend, grad):
    def f(x):
        total, at = x.sum().item(), x.argmax().item()
        return x * total + at * 2, x / total, x.argmax() + at, total, at, (x.sum() > 0).item()

    counter = testing.CompileCounterWithBackend(backend)
    fast = minidynamo.optimize(counter, nopython=True)(f)
    for values in ([0.5, 1.0, -2.0, 4.0], [3.0, 1.0, -2.0, 0.0]):
        x = torch.tensor(values, requires_grad=grad)
        want, got = f(x), fast(x)
        assert want[3:] == pytest.approx(got[3:]) and list(map(type, want)) == list(map(type, got))
        torch.testing.assert_close(got[:3], want[:3])
        if grad:
            torch.testing.assert_close(
                torch.autograd.grad(got[0].sum() + got[1].sum(), x),
                torch.autograd.grad(want[0].sum() + want[1].sum(), x),
            )
    assert counter.frame_count == 1
