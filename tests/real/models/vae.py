"""A variational autoencoder: random numbers in the graph, a loss of two parts."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from ..case import PHASES, Batch, Case, Optimize, floats


class Output(NamedTuple):
    image: torch.Tensor
    mean: torch.Tensor
    log_variance: torch.Tensor


class VAE(nn.Module):
    def __init__(self, size: int = 20, width: int = 12, latent: int = 3) -> None:
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(size, width), nn.BatchNorm1d(width), nn.LeakyReLU(0.1))
        self.mean = nn.Linear(width, latent)
        self.log_variance = nn.Linear(width, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.ELU(), nn.Linear(width, size), nn.Sigmoid())

    def reparameterize(self, mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return mean
        deviation = torch.exp(0.5 * log_variance)
        return torch.randn_like(deviation).mul(deviation).add_(mean)

    def forward(self, image: torch.Tensor) -> Output:
        hidden = self.encoder(image)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden).clamp(-5, 5)
        return Output(self.decoder(self.reparameterize(mean, log_variance)), mean, log_variance)

    def sample(self, count: int) -> torch.Tensor:
        return self.decoder(torch.randn(count, self.latent))


def batch(number: int) -> Batch:
    return (torch.sigmoid(floats(number, 8, 20)),)


def loss(model: nn.Module, given: Batch, _: None) -> torch.Tensor:
    (image,) = given
    made = model(image)
    rebuilt = F.mse_loss(made.image, image, reduction="sum")
    divergence = -0.5 * torch.sum(1 + made.log_variance - made.mean.pow(2) - made.log_variance.exp())
    return (rebuilt + 0.1 * divergence) / image.shape[0]


def sample(case: Case, optimize: Optimize) -> object:
    """Drawing from the decoder alone, by a bound method."""
    model = case.model().eval()
    draw = optimize(model.sample)
    return [draw(3), draw(3)]


CASES = [Case("vae", VAE, batch, loss, phases={**PHASES, "sample": sample})]
