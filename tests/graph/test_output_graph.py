"""Graphs as torch.fx takes them."""

from __future__ import annotations

import torch

import minidynamo


def captured(program, *args):
    found = []

    def keep(gm, _inputs):
        found.append(gm)
        return gm.forward

    minidynamo.optimize(keep)(program)(*args)
    return found[-1]


def test_inputs_have_names_that_python_takes():
    def program(lambda_, getattr):
        device = lambda_ + 1
        return torch.add(device, getattr, alpha=2)

    x, y = torch.rand(3), torch.rand(3)
    gm = captured(program, x, y)
    names = [node.target for node in gm.graph.nodes if node.op == "placeholder"]
    assert names == ["lambda_", "getattr"] and torch.equal(gm(x, y)[0], program(x, y))


def test_inputs_come_before_operators_without_inputs():
    def program(x, y):
        made = torch.zeros(2, 3)
        return made + torch.cat([x, y])

    gm = captured(program, torch.rand(1, 3), torch.rand(1, 3))
    assert [node.op for node in gm.graph.nodes][:3] == ["placeholder", "placeholder", "call_function"]
