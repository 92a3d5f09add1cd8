"""Models of the transformers library, tiny and with random parameters: of text, of pictures and of speech."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

# Read when the library is imported: nothing is asked of a network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from torch import nn

from ..case import Batch, Case, Optimize, evaluate, floats, forward_backward, integers, train

WORDS = 40


def bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        num_labels=3,
    )
    return transformers.BertForSequenceClassification(config)


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(vocab_size=WORDS, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    return transformers.GPT2LMHeadModel(config)


def llama() -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=WORDS,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.LlamaForCausalLM(config)


def t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=WORDS,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config)


def distilbert() -> nn.Module:
    config = transformers.DistilBertConfig(
        vocab_size=WORDS, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=16
    )
    return transformers.DistilBertForMaskedLM(config)


def roberta() -> nn.Module:
    config = transformers.RobertaConfig(
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        pad_token_id=1,
        num_labels=3,
    )
    return transformers.RobertaForTokenClassification(config)


def decoder(family: str, **more: Any) -> nn.Module:
    """A decoder of the family of Llama: `family` is the beginning of the names of its classes."""
    config = getattr(transformers, f"{family}Config")(
        vocab_size=WORDS,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        **more,
    )
    return getattr(transformers, f"{family}ForCausalLM")(config)


def vit_library() -> nn.Module:
    config = transformers.ViTConfig(
        image_size=8,
        patch_size=4,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=3,
    )
    return transformers.ViTForImageClassification(config)


def whisper() -> nn.Module:
    config = transformers.WhisperConfig(
        vocab_size=WORDS,
        num_mel_bins=8,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_source_positions=10,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    return transformers.WhisperForConditionalGeneration(config)


def pictures(number: int) -> Batch:
    return (floats(number, 2, 3, 8, 8),)


def speech(number: int) -> Batch:
    """Spectra, and the words that the decoder has so far."""
    return floats(number, 2, 8, 20), None, integers(number + 50, WORDS, 2, 5)


def words(number: int) -> Batch:
    return (integers(number, WORDS - 3, 2, 7) + 3,)


def masked(number: int) -> Batch:
    """Words, and which of them there are: the second sequence is shorter."""
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    return *words(number), mask


def sequences(number: int) -> Batch:
    """Words, their mask, and the words that the decoder has so far."""
    return *masked(number), integers(number + 50, WORDS, 2, 5)


def label(number: int) -> torch.Tensor:
    return integers(number, 3, 2)


def following(number: int) -> torch.Tensor:
    return words(number)[0]


def answer(number: int) -> torch.Tensor:
    return integers(number + 60, WORDS, 2, 5)


def loss(model: nn.Module, given: Batch, labels: torch.Tensor) -> torch.Tensor:
    return model(*given, labels=labels).loss


def label_of_each(number: int) -> torch.Tensor:
    return integers(number, 3, 2, 7)


def loss_of_answer(model: nn.Module, given: Batch, labels: torch.Tensor) -> torch.Tensor:
    return model(input_ids=given[0], attention_mask=given[1], labels=labels).loss


def loss_of_speech(model: nn.Module, given: Batch, labels: torch.Tensor) -> torch.Tensor:
    return model(input_features=given[0], labels=labels).loss


def decode(case: Case, optimize: Optimize) -> Any:
    """Three words, one at a time, with the library's own cache of keys and values."""
    model = case.model().eval()
    captured = optimize(model)
    given, cache, seen = words(0)[0], None, []
    with torch.no_grad():
        for _ in range(3):
            made = captured(input_ids=given, past_key_values=cache, use_cache=True)
            cache = made.past_key_values
            given = made.logits[:, -1:].argmax(-1)
            seen += [made.logits, given]
    return seen


PHASES = {"eval": evaluate, "train": train, "module": forward_backward}
CASES = [
    Case("bert", bert, masked, loss, label, PHASES),
    Case("gpt2", gpt2, words, loss, following, {**PHASES, "decode": decode}),
    Case("llama", llama, masked, loss, following, {**PHASES, "decode": decode}),
    Case("t5", t5, sequences, loss_of_answer, answer, PHASES),
    Case("distilbert", distilbert, masked, loss, following, PHASES),
    Case("roberta", roberta, masked, loss, label_of_each, PHASES),
    Case("qwen2", partial(decoder, "Qwen2"), masked, loss, following, {**PHASES, "decode": decode}),
    Case(
        "mistral",
        partial(decoder, "Mistral", sliding_window=4),
        masked,
        loss,
        following,
        {**PHASES, "decode": decode},
    ),
    Case("gemma", partial(decoder, "Gemma", head_dim=4), masked, loss, following, PHASES),
    Case("vit_library", vit_library, pictures, loss, label, PHASES),
    Case("whisper", whisper, speech, loss_of_speech, answer, PHASES),
]
