"""The two shapes that are measured, with the same random weights in Loupe and in transformers."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

from engine.checkpoints import Checkpoint, load
from engine.config import MLP, Attention, ModelConfig
from engine.model import Transformer, initialise


@dataclass(frozen=True)
class Shape:
    name: str
    config: ModelConfig
    tokens: int  # a text's length in these measurements

    @property
    def ids(self) -> Tensor:
        return torch.randint(self.config.vocab_size, (1, self.tokens), generator=torch.Generator().manual_seed(0))


GPT2_SMALL = Shape("GPT-2 small, T=64", ModelConfig(50257, 1024, 768, 12, Attention(12), MLP(3072)), 64)
LITTLE = Shape("4 x 4 x 128, T=32", ModelConfig(1000, 256, 128, 4, Attention(4), MLP(512)), 32)


def both(shape: Shape, attention: str = "eager") -> tuple[Checkpoint, GPT2LMHeadModel]:
    """Written by Loupe, read by both."""
    with TemporaryDirectory() as folder:
        Checkpoint(initialise(Transformer(shape.config), seed=0)).save(folder)
        theirs = GPT2LMHeadModel.from_pretrained(folder, attn_implementation=attention).eval()
        ours = load(folder)
        ours.model.load_state_dict({name: tensor.clone() for name, tensor in ours.model.state_dict().items()})
    return ours, theirs
