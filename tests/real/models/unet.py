"""UNet: convolutions down and up, joined by skip connections."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..case import Batch, Case, floats


class DoubleConv(nn.Sequential):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(
            nn.Conv2d(inside, outside, 3, padding=1),
            nn.GroupNorm(2, outside),
            nn.SiLU(),
            nn.Conv2d(outside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
        )


class Up(nn.Module):
    def __init__(self, inside: int, outside: int, learned: bool) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inside, outside, 2, 2) if learned else nn.Conv2d(inside, outside, 1)
        self.learned = learned
        self.conv = DoubleConv(2 * outside, outside)

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        x = self.up(x)
        if not self.learned:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        dy, dx = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
        if dx or dy:
            x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, channels: tuple[int, ...] = (4, 8, 16)) -> None:
        super().__init__()
        self.enter = DoubleConv(1, channels[0])
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip(channels, channels[1:]))
        pairs = list(zip(channels, channels[1:]))[::-1]
        self.up = nn.ModuleList(Up(b, a, learned=bool(i % 2)) for i, (a, b) in enumerate(pairs))
        self.leave = nn.Conv2d(channels[0], 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = [self.enter(x)]
        for layer in self.down:
            skips.append(layer(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for layer in self.up:
            x = layer(x, skips.pop())
        return torch.sigmoid(self.leave(x))


def batch(number: int) -> Batch:
    return (floats(number, 2, 1, 18, 22),)


def loss(model: nn.Module, given: Batch, _: None) -> torch.Tensor:
    (image,) = given
    return F.binary_cross_entropy(model(image), (image > 0).to(image.dtype))


CASES = [Case("unet", UNet, batch, loss)]
