"""Training steps wholly inside a captured function: eager's losses, gradients, parameters and optimizer state, bit for bit, over several
steps; each piece is compiled once, whatever the counters of the optimizer say and whether gradients are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import minidynamo
from tests.eager import watching


def simple(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def kept_gradients(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=False)
    loss = (model(x) - y).pow(2).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


def clipped(model, optimizer, x, y):
    loss = (model(x) - y).pow(2).sum()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    return loss, norm


def accumulated(model, optimizer, x, y):
    for start in range(2):
        loss = (model(x[start:]) - y[start:]).pow(2).sum()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def by_hand(model, optimizer, x, y):
    loss = (model(x) - y).pow(2).sum()
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients):
            parameter -= 0.01 * gradient
    return loss


def penalized(model, optimizer, x, y):
    loss = (model(x) - y).pow(2).sum()
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = sum(gradient.pow(2).sum() for gradient in gradients) + loss
    total.backward()
    optimizer.step()
    optimizer.zero_grad()
    return total


def with_closure(model, optimizer, x, y):
    def closure():
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).sum()
        loss.backward()
        return loss

    return optimizer.step(closure)


def hooked(model, optimizer, x, y):
    optimizer.zero_grad()
    hidden = model(x)
    hidden.register_hook(lambda gradient: gradient * 2)
    loss = (hidden - y).pow(2).sum()
    loss.backward()
    norm = sum(parameter.grad.norm() for parameter in model.parameters())
    optimizer.step()
    return loss, norm


# Step -> how often its graph breaks.
STEPS: dict[Callable[..., Any], int] = {
    simple: 3,
    kept_gradients: 4,
    clipped: 5,
    accumulated: 6,
    by_hand: 1,
    penalized: 4,
    with_closure: 3,
    hooked: 9,
}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
    "AdamW, foreach": lambda p: torch.optim.AdamW(p, 0.01, foreach=True, amsgrad=True),
}


def listed(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return list(map(listed, value)) if isinstance(value, (tuple, list)) else value


def trained(step: Callable[..., Any], make: Callable[[Any], torch.optim.Optimizer]) -> list[Any]:
    """Everything that four steps leave behind."""
    torch.manual_seed(0)
    layers = (torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    model = torch.nn.Sequential(*layers)
    optimizer = make(model.parameters())
    seen = [listed(step(model, optimizer, torch.randn(5, 4), torch.randn(5, 2))) for _ in range(4)]
    parameters = list(model.parameters())
    state = [listed(list(each.values())) for each in optimizer.state.values()]
    return [seen, listed(parameters), listed([p.grad for p in parameters]), state, torch.rand(1).item()]


CASES = [(simple, name) for name in OPTIMIZERS] + [(step, "AdamW") for step in STEPS if step is not simple]


@pytest.mark.parametrize(("step", "name"), CASES, ids=[f"{step.__name__}-{name}" for step, name in CASES])
def test_as_eager_and_compiled_once(step, name):
    with watching() as seen:
        captured = trained(minidynamo.optimize("eager")(step), OPTIMIZERS[name])
    assert captured == trained(step, OPTIMIZERS[name])
    assert seen.graphs and not seen.recompiles
    assert len(seen.breaks) <= STEPS[step], seen.reasons
