"""A vision transformer: once with attention of its own, once with torch's encoder layers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..case import Batch, Case, floats, integers

CLASSES, PATCH, SIDE = 4, 4, 16


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, tokens, width = x.shape
        qkv = self.qkv(x).reshape(count, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        weights = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(count, tokens, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, layers: nn.Module, width: int = 16) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, PATCH, PATCH)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, (SIDE // PATCH) ** 2 + 1, width) * 0.02)
        self.layers = layers
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


def own() -> ViT:
    return ViT(nn.Sequential(*[Block(16, 2) for _ in range(2)]))


def encoder() -> ViT:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, activation="gelu", batch_first=True)
    return ViT(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))


def batch(number: int) -> Batch:
    return (floats(number, 2, 3, SIDE, SIDE),)


def target(number: int) -> torch.Tensor:
    return integers(number, CLASSES, 2)


def loss(model: nn.Module, given: Batch, wanted: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(*given), wanted, label_smoothing=0.1)


CASES = [Case("vit", own, batch, loss, target), Case("vit_encoder", encoder, batch, loss, target)]
