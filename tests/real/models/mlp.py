"""A classifier on points of the plane."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..case import PHASES, TRAINING_STEPS, Batch, Case, Optimize, descend, floats, state_of


class Block(nn.Module):
    def __init__(self, width: int, drop: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.outer(F.gelu(self.inner(self.norm(x)))))


class MLP(nn.Module):
    def __init__(self, width: int = 16, depth: int = 2, classes: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(2, width)
        self.blocks = nn.ModuleList(Block(width, 0.1) for _ in range(depth))
        self.leave = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.enter(x))
        for block in self.blocks:
            x = block(x)
        return self.leave(x)


def batch(number: int) -> Batch:
    return (floats(number, 32, 2),)


def loss(model: nn.Module, given: Batch, _: None) -> torch.Tensor:
    (points,) = given
    wanted = (points[:, 0] > 0).long() + (points[:, 1] > 0).long()
    return F.cross_entropy(model(points), wanted)


def fit(case: Case, optimize: Optimize) -> object:
    """Training until the loss has fallen."""
    model = case.model().train()
    losses = descend(case, model, optimize(case.loss), TRAINING_STEPS)
    assert losses[-1] < losses[0] / 2, losses
    return losses, state_of(model)


CASES = [Case("mlp", MLP, batch, loss, phases={**PHASES, "fit": fit}, rate=0.1)]
