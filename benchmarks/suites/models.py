"""Small models written by hand. Sizes are tiny: what is measured is the front end."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.workloads import Case, add, workload


def mlp(depth: int) -> Case:
    layers = [layer for _ in range(depth) for layer in (nn.Linear(16, 16), nn.ReLU())]
    return Case(
        nn.Sequential(*layers).eval(),
        (torch.randn(2, 16),),
        peer_options={"dynamic": False},
        again=lambda k: (torch.ones(k + 2, 16),),
    )


add("models", "MLP, 20 layers", lambda: mlp(20))
add("models", "MLP, 100 layers", lambda: mlp(100), quick=False)


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
    def __init__(self, blocks: tuple[int, ...] = (2, 2, 2, 2), width: int = 4, kind: Any = Block) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        stages, channels = [], width
        for index, count in enumerate(blocks):
            for position in range(count):
                out = width * 2**index
                stages.append(kind(channels, out, 2 if position == 0 and index else 1))
                channels = out
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(channels, 10)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        inner = max(1, out // 4)
        self.conv1, self.bn1 = nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out)
        self.shortcut = None
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def resnet(blocks: tuple[int, ...], kind: type[nn.Module]) -> Case:
    return Case(ResNet(blocks, kind=kind).eval(), (torch.randn(1, 3, 16, 16),))


add("models", "ResNet-18", lambda: resnet((2, 2, 2, 2), Block))
add("models", "ResNet-50", lambda: resnet((3, 4, 6, 3), Bottleneck), quick=False)


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


@workload("models", "GPT")
def gpt() -> Case:
    return Case(
        GPT().eval(),
        (torch.randint(0, 50, (2, 8)),),
        peer_options={"dynamic": False},
        again=lambda k: (torch.ones(2, k + 4, dtype=torch.long),),
    )


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


@workload("models", "ViT", quick=False)
def vit() -> Case:
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


@workload("models", "UNet", quick=False)
def unet() -> Case:
    return Case(UNet().eval(), (torch.randn(1, 3, 16, 16),))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(50, 8), nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, 5)

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids))[0])


@workload("models", "LSTM", quick=False)
def lstm() -> Case:
    return Case(Tagger().eval(), (torch.randint(0, 50, (2, 6)),))


# --- transformers, when they are installed: random weights, tiny -------------------------------------------------------------
WORDS = 50
IDS = (1, 8)  # batch, length
COMMON: dict[str, object] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
TEXT = COMMON | {"vocab_size": WORDS, "intermediate_size": 32, "max_position_embeddings": 32}
GROUPED = TEXT | {
    "num_key_value_heads": 2,
    "use_cache": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
IMAGE = COMMON | {"intermediate_size": 32, "image_size": 16, "patch_size": 4}
GPT2 = {"vocab_size": WORDS, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "use_cache": False}
T5 = {"vocab_size": WORDS, "d_model": 16, "d_ff": 32, "d_kv": 8, "num_layers": 2, "num_heads": 2}
WHISPER = {
    "vocab_size": WORDS, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_mel_bins": 8,
    "max_source_positions": 16, "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
}  # fmt: skip
MAMBA = {"vocab_size": WORDS, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4, "use_cache": False}


def words() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(3, WORDS, IDS)}


def two_texts() -> dict[str, Any]:
    return words() | {"decoder_input_ids": torch.randint(3, WORDS, (1, 5)), "use_cache": False}


def image() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(1, 3, 16, 16)}


def speech() -> dict[str, Any]:
    return {
        "input_features": torch.randn(1, 8, 32),
        "decoder_input_ids": torch.randint(3, WORDS, (1, 5)),
        "use_cache": False,
    }


# name -> configuration and model in transformers, options of the configuration, what the model is called with
TINY: dict[str, tuple[str, str, dict[str, Any], Any]] = {
    "BERT": ("BertConfig", "BertModel", TEXT, words),
    "GPT-2": ("GPT2Config", "GPT2Model", GPT2, words),
    "Llama": ("LlamaConfig", "LlamaModel", GROUPED, words),
    "Mistral": ("MistralConfig", "MistralModel", GROUPED, words),
    "T5": ("T5Config", "T5Model", T5, two_texts),
    "ViT of transformers": ("ViTConfig", "ViTModel", IMAGE, image),
    "Whisper": ("WhisperConfig", "WhisperModel", WHISPER, speech),
    "Mamba": ("MambaConfig", "MambaModel", MAMBA, words),
}


def tiny(config: str, model: str, options: dict[str, Any], inputs: Any) -> Case:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read at import: nothing is asked of a network
    import transformers

    made = getattr(transformers, model)(getattr(transformers, config)(**options)).eval()
    return Case(made, (), inputs())


for name, (config, model, options, inputs) in TINY.items():
    add(
        "models",
        name,
        lambda c=config, m=model, o=options, i=inputs: tiny(c, m, o, i),
        quick=name == "BERT",
        needs="transformers",
    )
