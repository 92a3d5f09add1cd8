"""torch's Transformer, encoder and decoder with masks, and its attention layer by itself."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from ..case import Batch, Case, integers

WORDS, WIDTH = 12, 16


class Positions(nn.Module):
    def __init__(self, width: int, limit: int = 32) -> None:
        super().__init__()
        position = torch.arange(limit).unsqueeze(1)
        scale = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(limit, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * scale), torch.cos(position * scale)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table[: x.size(1)]


class Seq2Seq(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.position = Positions(WIDTH)
        self.transformer = nn.Transformer(WIDTH, 2, 1, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
        self.leave = nn.Linear(WIDTH, WORDS)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        padding = source == 0
        made = self.transformer(
            self.position(self.embed(source) * math.sqrt(WIDTH)),
            self.position(self.embed(target) * math.sqrt(WIDTH)),
            tgt_mask=mask,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.leave(made)


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, dropout=0.1, batch_first=True, add_bias_kv=True)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keys = self.embed(source)
        return self.attention(self.embed(target), keys, keys, average_attn_weights=False)


def batch(number: int) -> Batch:
    return integers(number, WORDS, 2, 6), integers(number + 50, WORDS, 2, 5)


def loss(model: nn.Module, given: Batch, _: None) -> torch.Tensor:
    source, target = given
    return F.cross_entropy(model(source, target[:, :-1]).transpose(1, 2), target[:, 1:])


def loss_of_attention(model: nn.Module, given: Batch, _: None) -> torch.Tensor:
    out, weights = model(*given)
    return out.square().mean() + weights.square().sum()


CASES = [
    Case("seq2seq", Seq2Seq, batch, loss),
    Case("multihead_attention", Attends, batch, loss_of_attention),
]
