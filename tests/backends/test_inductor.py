"""The backend "inductor" on the CPU, and torch's caches in a second process. Slow: a C++ compiler runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import torch

import minidynamo
from tests.eager import T

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


def test_it_is_the_default():
    f = minidynamo.compile(lambda x: torch.relu(x) * 2 + 1)
    assert torch.allclose(f(T(8) - 4), torch.relu(T(8) - 4) * 2 + 1)
    (entry,) = minidynamo.cache_entries(f)
    assert entry.guarded.backend == "inductor"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max-autotune-no-cudagraphs"},
        {"mode": "reduce-overhead"},
        {"options": {"cpp.threads": 1}},
    ],
)
def test_training_a_module(options):
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1)
    )
    plain = deepcopy(module)
    captured = minidynamo.compile(module, fullgraph=True, **options)
    x = torch.randn(5, 6)
    optimizers = [torch.optim.AdamW(m.parameters(), 1e-2) for m in (module, plain)]
    for _ in range(3):
        for each, optimizer in zip((captured, plain), optimizers):
            each(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    for (name, mine), other in zip(module.named_parameters(), plain.parameters()):
        assert torch.allclose(mine, other, atol=1e-5), name


def test_in_place_operations_and_aliases():
    def f(x, y):
        x.add_(1)
        x[0].mul_(3)
        return x, y.t(), x.view(-1)[2:], y

    captured = minidynamo.compile(f, fullgraph=True)
    x, y, x2, y2 = T(2, 3), T(2, 3), T(2, 3), T(2, 3)
    got, want = captured(x, y), f(x2, y2)
    assert all(torch.equal(a, b) for a, b in zip(got, want)) and torch.equal(x, x2)
    assert got[0] is x and got[3] is y
    assert got[1].data_ptr() == y.data_ptr() and got[2].data_ptr() == x[0, 2:].data_ptr()


PROGRAM = """
import json, sys
import torch, minidynamo
from torch._dynamo.utils import counters

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x):
        x = torch.nn.functional.relu(self.first(x)).view(-1, 8).contiguous()
        return (self.second(x) * self.scale).sum()

scale = torch.ones(())

def free(x, y):
    return x.sin() * y + scale

torch.manual_seed(0)
net = minidynamo.compile(Net(), fullgraph=True)
loss = net(torch.ones(3, 4))
loss.backward()
minidynamo.compile(free)(torch.ones(3), torch.ones(3))
print(json.dumps({
    "fx": [counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"]],
    "aot": [counters["aot_autograd"]["autograd_cache_hit"], counters["aot_autograd"]["autograd_cache_miss"],
            counters["aot_autograd"]["autograd_cache_bypass"]],
    "loss": loss.item(),
    "text": [e.guarded.graph_text for f in (net, free) for _, e in minidynamo.compiled_frames(f)],
}))
"""


def run(tmp_path, seed):
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": str(seed),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "MINIDYNAMO_VERIFY": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(600)
def test_torchs_caches_hit_in_a_second_process(tmp_path):
    first, second = run(tmp_path, 1), run(tmp_path, 2)
    assert first["text"] == second["text"] and first["loss"] == pytest.approx(second["loss"])
    assert first["aot"] == [0, 2, 0], first
    assert second["aot"] == [2, 0, 0], second
