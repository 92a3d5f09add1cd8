"""A GPT of our own, with a cache of keys and values and a loop that generates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from ..case import PHASES, Batch, Case, Optimize, integers


@dataclass
class Config:
    vocabulary: int = 17
    context: int = 16
    layers: int = 2
    heads: int = 2
    width: int = 16
    dropout: float = 0.1
    tied: bool = True


class KVCache:
    """Keys and values of every layer, in place; `length` positions are filled."""

    def __init__(self, config: Config, count: int) -> None:
        shape = (count, config.heads, config.context, config.width // config.heads)
        self.keys = [torch.zeros(shape) for _ in range(config.layers)]
        self.values = [torch.zeros(shape) for _ in range(config.layers)]

    def update(
        self, layer: int, at: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys[layer].index_copy_(2, at, k)
        self.values[layer].index_copy_(2, at, v)
        return self.keys[layer], self.values[layer]


class CausalAttention(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        self.config, self.layer = config, layer
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor, at: torch.Tensor, cache: KVCache | None) -> torch.Tensor:
        count, tokens, width = x.size()
        heads = self.config.heads
        q, k, v = (
            part.view(count, tokens, heads, width // heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        if cache is not None:
            k, v = cache.update(self.layer, at, k, v)
        mask = torch.arange(k.size(2))[None, :] <= at[:, None]
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(~mask, float("-inf"))
        out = self.dropout(F.softmax(scores, dim=-1)) @ v
        return self.c_proj(out.transpose(1, 2).contiguous().view(count, tokens, width))


class Block(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = CausalAttention(config, layer)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(config.width, 4 * config.width),
                "act": nn.GELU(approximate="tanh"),
                "c_proj": nn.Linear(4 * config.width, config.width),
                "dropout": nn.Dropout(config.dropout),
            }
        )
        m = self.mlp
        self.mlpf = lambda x: m.dropout(m.c_proj(m.act(m.c_fc(x))))

    def forward(self, x: torch.Tensor, at: torch.Tensor, cache: KVCache | None) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x), at, cache)
        return x + self.mlpf(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        self.config = config = config or Config()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocabulary, config.width),
                "wpe": nn.Embedding(config.context, config.width),
                "drop": nn.Dropout(config.dropout),
                "h": nn.ModuleList([Block(config, layer) for layer in range(config.layers)]),
                "ln_f": nn.LayerNorm(config.width),
            }
        )
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.lm_head.weight = self.transformer["wte"].weight

    def forward(
        self,
        words: torch.Tensor,
        targets: torch.Tensor | None = None,
        *,
        at: torch.Tensor | None = None,
        cache: KVCache | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        assert words.size(1) <= self.config.context, f"at most {self.config.context} words"
        if at is None:
            at = torch.arange(words.size(1), device=words.device)
        x = self.transformer.drop(self.transformer.wte(words) + self.transformer.wpe(at))
        for block in self.transformer.h:
            x = block(x, at, cache)
        logits = self.lm_head(self.transformer.ln_f(x))
        if targets is None:
            return logits[:, [-1]], None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(
        self, words: torch.Tensor, count: int, step: object, temperature: float = 0.8
    ) -> torch.Tensor:
        """`count` more words, each drawn from the five best."""
        cache = KVCache(self.config, words.size(0))
        at = torch.arange(words.size(1))
        given = words
        for _ in range(count):
            logits, _ = step(given, at=at, cache=cache)  # type: ignore[operator]
            logits = logits[:, -1] / temperature
            best, _ = torch.topk(logits, 5)
            logits[logits < best[:, [-1]]] = -float("inf")
            given = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            words = torch.cat([words, given], dim=1)
            at = at[-1:] + 1
        return words


def batch(number: int) -> Batch:
    words = integers(number, 17, 3, 9)
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


def loss(model: nn.Module, given: Batch, _: None) -> torch.Tensor:
    return model(*given)[1]


def generate(case: Case, optimize: Optimize) -> object:
    """The model is captured; the loop around it is plain Python."""
    model = case.model().eval()
    return model.generate(integers(5, 17, 2, 4), 8, optimize(model))


def generate_captured(case: Case, optimize: Optimize) -> object:
    """The loop is captured too."""
    model = case.model().eval()
    return optimize(model.generate)(integers(5, 17, 2, 4), 5, model)


CASES = [
    Case("gpt", GPT, batch, loss, phases={**PHASES, "generate": generate, "generate_loop": generate_captured})
]
