"""Builtins of Python on what is known and on tensors."""

from __future__ import annotations

import pytest

from tests.eager import programs

PROGRAMS = programs(
    r"""
# sum, max, min, sorted:
#   f(T(1))
def f(x):
    return sum([x, x, 1]), sum([0.1] * 10), sum([0.1] * 10 + [x]), max(1, 2), min([3, 4]), sorted([3, 1])

# sorted with a key:
#   f(T(1))
def f(x):
    return x + 1, sorted([3, 1, 2], key=lambda v: -v)

# not and and on a tensor:
#   f(T(1))
def f(x):
    y = x + 1
    return not y, y and 1

# getattr of tensors and modules:
#   f(T(1))
def f(x):
    return getattr(x, "shape"), getattr(torch, "abs")(x), x.__class__, x.T, x.mT if x.dim() > 1 else 0, x.data.shape if False else 0

# is_grad_enabled with too many arguments:
#   f(T(1))
def f(x):
    y = x + 1
    return torch.is_grad_enabled(), y, torch.is_grad_enabled(1)
"""
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_builtins_give_what_plain_python_gives(program):
    program.check()
