"""ResNet-18 with narrow layers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..case import Batch, Case, floats, integers

CLASSES = 5


class BasicBlock(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample: nn.Module | None = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.inside = width
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._layer(width, 1)
        self.layer2 = self._layer(2 * width, 2)
        self.layer3 = self._layer(4 * width, 2)
        self.layer4 = self._layer(8 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def _layer(self, outside: int, stride: int) -> nn.Sequential:
        first = BasicBlock(self.inside, outside, stride)
        self.inside = outside
        return nn.Sequential(first, BasicBlock(outside, outside, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def batch(number: int) -> Batch:
    return (floats(number, 2, 3, 32, 32),)


def target(number: int) -> torch.Tensor:
    return integers(number, CLASSES, 2)


def loss(model: nn.Module, given: Batch, wanted: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(*given), wanted)


CASES = [Case("resnet18", ResNet18, batch, loss, target, rate=0.01)]
