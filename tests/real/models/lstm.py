"""Classifiers of sequences: torch's LSTM, and one cell stepped by a Python loop."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..case import Batch, Case, integers

WORDS, CLASSES = 20, 3


class LSTMClassifier(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.leave = nn.Linear(2 * width, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        states, (last, _) = self.lstm(self.embed(words))
        mask = (words != 0).unsqueeze(-1)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.leave(mean + torch.cat([last[-2], last[-1]], dim=-1))


class CellClassifier(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.cell = nn.LSTMCell(width, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.leave = nn.Linear(width, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        embedded = self.embed(words)
        hidden = torch.zeros(words.shape[0], embedded.shape[-1])
        memory = torch.zeros_like(hidden)
        outputs = []
        for step in range(words.shape[1]):
            hidden, memory = self.cell(embedded[:, step], (hidden, memory))
            outputs.append(hidden)
        states, _ = self.gru(torch.stack(outputs, dim=1))
        return self.leave(states[:, -1])


def batch(number: int) -> Batch:
    return (integers(number, WORDS, 4, 6),)


def loss(model: nn.Module, given: Batch, _: None) -> torch.Tensor:
    (words,) = given
    return F.cross_entropy(model(words), words.sum(1) % CLASSES)


CASES = [Case("lstm", LSTMClassifier, batch, loss), Case("lstm_cell", CellClassifier, batch, loss)]
