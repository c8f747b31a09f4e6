"""The shapes that are measured, with the same random weights in Loupe and in transformers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from torch import Tensor

from engine.checkpoints import Checkpoint, load
from engine.model.config import MLP, Attention, Embedding, Encoder, Experts, ModelConfig, Norm, OutputHead, Positions
from engine.model.transformer import Transformer, initialise


@dataclass(frozen=True)
class Shape:
    name: str
    config: ModelConfig
    tokens: int  # a text's length in these measurements

    @property
    def ids(self) -> Tensor:
        return torch.randint(self.config.vocab_size, (1, self.tokens), generator=torch.Generator().manual_seed(0))

    @property
    def target(self) -> Tensor | None:
        """Input of the decoder of an encoder-decoder, as long as the text."""
        return None if self.config.encoder is None else self.ids.flip(1)


def bert(vocab: int, d_model: int, layers: int, heads: int) -> ModelConfig:
    return ModelConfig(
        vocab,
        512,
        d_model,
        layers,
        Attention(heads, mask="full"),
        MLP(4 * d_model, activation="gelu"),
        norm=Norm(place="after", eps=1e-12),
        embedding=Embedding(segments=2, norm=True),
        head=OutputHead("masked", bias=True, pooler=True, next_sentence=True),
    )


def t5(vocab: int, d_model: int, layers: int, heads: int) -> ModelConfig:
    attention = {"bias": False, "out_bias": False, "scale": 1.0}
    mlp = MLP(4 * d_model, activation="relu", bias=False)
    return ModelConfig(
        vocab,
        512,
        d_model,
        layers,
        Attention(heads, **attention),  # type: ignore[arg-type]
        mlp,
        positions=Positions("relative"),
        norm=Norm("rms", eps=1e-6),
        head=OutputHead(scale=d_model**-0.5),
        encoder=Encoder(layers, Attention(heads, mask="full", **attention), mlp),  # type: ignore[arg-type]
    )


def llama(vocab: int, d_model: int, layers: int, heads: int, kv_heads: int, d_mlp: int) -> ModelConfig:
    return ModelConfig(
        vocab,
        1024,
        d_model,
        layers,
        Attention(heads, kv_heads=kv_heads, bias=False, out_bias=False),
        MLP(d_mlp, activation="silu", gated=True, bias=False),
        positions=Positions("rotary"),
        norm=Norm("rms"),
        tied=False,
    )


def mixtral(vocab: int, d_model: int, layers: int, heads: int, experts: int, d_mlp: int) -> ModelConfig:
    plain = llama(vocab, d_model, layers, heads, heads, d_mlp)
    assert plain.mlp is not None
    return replace(plain, mlp=replace(plain.mlp, experts=Experts(experts, 2)))


GPT2_SMALL = Shape("GPT-2 small, T=64", ModelConfig(50257, 1024, 768, 12, Attention(12), MLP(3072)), 64)
LITTLE = Shape("4 x 4 x 128, T=32", ModelConfig(1000, 256, 128, 4, Attention(4), MLP(512)), 32)
BERT_BASE = Shape("BERT-base, T=64", bert(30522, 768, 12, 12), 64)
T5_SMALL = Shape("T5-small, T=64 + 64", t5(32128, 512, 6, 8), 64)
LLAMA = Shape("Llama 12 x 12/4 x 768, T=64", llama(32000, 768, 12, 12, 4, 2048), 64)
LITTLE_BERT = Shape("BERT 4 x 4 x 128, T=32", bert(1000, 128, 4, 4), 32)
LITTLE_T5 = Shape("T5 4 + 4 x 4 x 128, T=32 + 32", t5(1000, 128, 4, 4), 32)
LITTLE_LLAMA = Shape("Llama 4 x 4/2 x 128, T=32", llama(1000, 128, 4, 4, 2, 384), 32)
LITTLE_MIXTRAL = Shape("Mixtral 4 x 4 x 128 of 8 experts, T=32", mixtral(1000, 128, 4, 4, 8, 256), 32)


def both(shape: Shape, attention: str = "eager") -> tuple[Checkpoint, Any]:
    """Written by Loupe, read by both."""
    with TemporaryDirectory() as folder:
        Checkpoint(initialise(Transformer(shape.config), seed=0)).save(folder)
        read = transformers.AutoConfig.from_pretrained(folder).architectures[0]
        theirs = getattr(transformers, read).from_pretrained(folder, attn_implementation=attention).eval()
        ours = load(folder)
        ours.model.load_state_dict({name: tensor.clone() for name, tensor in ours.model.state_dict().items()})
    return ours, theirs
