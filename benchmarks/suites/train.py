"""Forward, backward, optimizer: what is timed is one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.suites.models import GPT, ResNet
from benchmarks.workloads import Case, workload


def training(model: nn.Module, args: tuple[Any, ...], loss: Callable[[Any], torch.Tensor]) -> Case:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step(fn: Any) -> Callable[[], Any]:
        def one() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss(fn(*args)).backward()
            optimizer.step()

        return one

    return Case(model, args, step=step)


@workload("train", "MLP step")
def mlp_step() -> Case:
    model = nn.Sequential(*(layer for _ in range(5) for layer in (nn.Linear(16, 16), nn.ReLU())))
    return training(model, (torch.randn(8, 16),), lambda y: y.square().mean())


@workload("train", "ResNet-18 step", quick=False)
def resnet_18_step() -> Case:
    target = torch.tensor([3, 4])
    return training(ResNet().train(), (torch.randn(2, 3, 16, 16),), lambda y: F.cross_entropy(y, target))


@workload("train", "GPT step", quick=False)
def gpt_step() -> Case:
    ids = torch.randint(0, 50, (2, 8))
    return training(GPT().train(), (ids,), lambda y: F.cross_entropy(y.flatten(0, 1), ids.flatten()))
