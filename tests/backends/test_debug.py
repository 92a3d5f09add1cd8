"""The printing backend."""

import torch

import minidynamo


def test_it_prints_one_table_per_graph_and_runs_it(capsys):
    f = minidynamo.optimize("debug")(lambda x: torch.abs(x) + 1)
    assert torch.equal(f(-torch.ones(3)), torch.full((3,), 2.0))
    first = capsys.readouterr().out
    f(-torch.ones(3))
    assert capsys.readouterr().out == ""
    assert "(3,) float32" in first and "call_function" in first and "abs" in first
