"""Small models written by hand. Sizes are tiny: what is measured is the front end."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.workloads import Case, add, workload


@workload("models")
def mlp() -> Case:
    torch.manual_seed(0)
    layers = [layer for _ in range(20) for layer in (nn.Linear(16, 16), nn.ReLU())]
    return Case(nn.Sequential(*layers).eval(), (torch.randn(2, 16),))


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = None
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    def __init__(self, blocks: tuple[int, ...] = (2, 2, 2, 2), width: int = 4) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        stages, channels = [], width
        for index, count in enumerate(blocks):
            for position in range(count):
                out = width * 2**index
                stages.append(Block(channels, out, 2 if position == 0 and index else 1))
                channels = out
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(channels, 10)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


@workload("models")
def resnet_18() -> Case:
    torch.manual_seed(0)
    return Case(ResNet().eval(), (torch.randn(1, 3, 16, 16),))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, width: int = 16, heads: int = 2, depth: int = 4, words: int = 50) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(32, width)
        self.layers = nn.ModuleList(Layer(width, heads, causal=True) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


@workload("models")
def gpt() -> Case:
    torch.manual_seed(0)
    return Case(GPT().eval(), (torch.randint(0, 50, (2, 8)),))


class ViT(nn.Module):
    def __init__(self, width: int = 16, depth: int = 4) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 17, width))
        self.layers = nn.Sequential(*(Layer(width, 2, causal=False) for _ in range(depth)))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.head(self.layers(x)[:, 0])


@workload("models", quick=False)
def vit() -> Case:
    torch.manual_seed(0)
    return Case(ViT().eval(), (torch.randn(1, 3, 16, 16),))


class UNet(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            nn.Conv2d(3 if i == 0 else width * i, width * (i + 1), 3, 1, 1) for i in range(3)
        )
        self.up = nn.ModuleList(
            nn.Conv2d(width * (2 * i + 3), width * (i + 1), 3, 1, 1) for i in reversed(range(2))
        )
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        seen = []
        for index, conv in enumerate(self.down):
            x = F.relu(conv(x))
            if index < 2:
                seen.append(x)
                x = F.max_pool2d(x, 2)
        for conv in self.up:
            x = F.interpolate(x, scale_factor=2.0)
            x = F.relu(conv(torch.cat([x, seen.pop()], dim=1)))
        return self.out(x)


@workload("models", quick=False)
def unet() -> Case:
    torch.manual_seed(0)
    return Case(UNet().eval(), (torch.randn(1, 3, 16, 16),))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(50, 8), nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, 5)

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids))[0])


@workload("models", quick=False)
def lstm() -> Case:
    torch.manual_seed(0)
    return Case(Tagger().eval(), (torch.randint(0, 50, (2, 6)),))


# --- transformers, when they are installed: random weights, tiny -------------------------------------------------------------

COMMON = {"vocab_size": 50}
SMALL = COMMON | {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
GPT2 = COMMON | {"n_embd": 16, "n_layer": 2, "n_head": 2, "use_cache": False}
T5 = COMMON | {
    "d_model": 16,
    "d_ff": 32,
    "d_kv": 8,
    "num_layers": 2,
    "num_heads": 2,
    "is_encoder_decoder": False,
}
TINY: dict[str, tuple[str, str, dict[str, object]]] = {
    "BERT": ("BertConfig", "BertModel", SMALL),
    "GPT-2": ("GPT2Config", "GPT2Model", GPT2),
    "Llama": ("LlamaConfig", "LlamaModel", SMALL | {"num_key_value_heads": 2, "use_cache": False}),
    "T5 encoder": ("T5Config", "T5EncoderModel", T5),
}


def tiny(config: str, model: str, options: dict[str, object]) -> Case:
    import transformers

    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**options)).eval()
    return Case(lambda ids: made(ids)[0], (torch.randint(0, 50, (1, 8)),), accuracy=False)


for name, (config, model, options) in TINY.items():
    add("models", name, lambda c=config, m=model, o=options: tiny(c, m, o), quick=False, needs="transformers")
