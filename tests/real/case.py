"""What a real program is, and its phases: evaluation, training, and what a program adds itself.

A phase runs the program once and gives everything that a caller can see: outputs, losses, gradients, parameters, buffers.
It is given `optimize`, which captures a callable or hands it back as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Optimize = Callable[[Any], Any]
Batch = tuple[Any, ...]
STEPS = 4
TRAINING_STEPS = 30


@dataclass(frozen=True)
class Case:
    """One program.

    build: the model, with parameters drawn from torch's generator
    batch: the arguments of one call of the model, the number of the batch given
    loss: a number to train on, from the model, a batch and its target
    target: what the model is to learn about the batch of a number
    phases: name -> phase; `eval` and `train` where a program says nothing else
    """

    name: str
    build: Callable[[], torch.nn.Module]
    batch: Callable[[int], Batch]
    loss: Callable[[torch.nn.Module, Batch, Any], torch.Tensor]
    target: Callable[[int], Any] = lambda number: None
    phases: dict[str, Callable[[Case, Optimize], Any]] = field(default_factory=lambda: dict(PHASES))
    rate: float = 0.05

    def model(self) -> torch.nn.Module:
        torch.manual_seed(0)
        return self.build()

    def run(self, phase: str, optimize: Optimize) -> Any:
        """One phase from the same beginning each time."""
        torch.manual_seed(1)
        return self.phases[phase](self, optimize)


def state_of(model: torch.nn.Module) -> dict[str, Any]:
    """Parameters, their gradients and buffers, by name."""
    named = dict(model.named_parameters())
    return {
        "parameters": {name: value.detach().clone() for name, value in named.items()},
        "gradients": {
            name: None if value.grad is None else value.grad.clone() for name, value in named.items()
        },
        "buffers": {name: value.clone() for name, value in model.named_buffers()},
    }


def evaluate(case: Case, optimize: Optimize) -> Any:
    """A few calls of the model in evaluation mode, with and without autograd."""
    model = case.model().eval()
    captured = optimize(model)
    with torch.no_grad():
        outputs = [captured(*case.batch(number)) for number in range(3)]
    return outputs, state_of(model)


def train(case: Case, optimize: Optimize) -> Any:
    """A few steps of gradient descent; the loss is computed by the captured function."""
    model = case.model().train()
    return descend(case, model, optimize(case.loss), STEPS), state_of(model)


def descend(case: Case, model: torch.nn.Module, loss: Callable[..., torch.Tensor], steps: int) -> list[Any]:
    """The losses of gradient descent, each on a batch of its own."""
    optimizer = torch.optim.SGD(model.parameters(), lr=case.rate, momentum=0.9)
    seen = []
    for number in range(steps):
        optimizer.zero_grad()
        value = loss(model, case.batch(number), case.target(number))
        value.backward()
        optimizer.step()
        seen.append(value.detach())
    return seen


def forward_backward(case: Case, optimize: Optimize) -> Any:
    """One call of the captured module in training mode, and the gradients of all that it returns."""
    model = case.model().train()
    captured = optimize(model)
    outputs = captured(*case.batch(0))
    total = sum(value.float().square().mean() for value in tensors(outputs) if value.requires_grad)
    total.backward()
    return outputs, state_of(model)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers and model outputs."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [found for item in value for found in tensors(item)]


PHASES = {"eval": evaluate, "train": train, "module": forward_backward}


def floats(number: int, *shape: int) -> torch.Tensor:
    """Random numbers that depend on `number` only."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(100 + number))


def integers(number: int, limit: int, *shape: int) -> torch.Tensor:
    """Random integers below `limit` that depend on `number` only."""
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(200 + number))
