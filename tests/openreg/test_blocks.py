"""Graphs in try blocks that draw random numbers on the device: the states of all generators are put back when one raises."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.openreg.comparing import check, x0

D = "openreg"


def dropout(x, index):
    try:
        y = F.dropout(x, 0.5)
        return y, y.cpu()[index]
    except IndexError:
        return x + torch.rand_like(x)


def both_devices(x, index):
    try:
        y = torch.randn(4, device="openreg:1").cpu() + torch.randn(4) + torch.randn(4, device=D).cpu()
        return y[index]
    except IndexError:
        return torch.randn(4, device="openreg:1"), torch.randn(4, device=D), torch.randn(4)


def writes(x, index):
    y = x * 1
    try:
        x.add_(torch.rand_like(x))
        return x, y.cpu()[index]
    except IndexError:
        return x, y


@pytest.mark.slow
@pytest.mark.parametrize("fn", [dropout, both_devices, writes])
def test_random_states_after_a_graph_that_raised(fn):
    good, bad = (lambda: (x0(), torch.tensor([1]))), (lambda: (x0(), torch.tensor([9])))
    counter = check(fn, good, bad, good)
    assert counter.frame_count == 1
