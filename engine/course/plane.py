"""A whole transformer of two dimensions, whose vectors are arrows in a plane: one head, and no MLP or norm."""

from __future__ import annotations

import math
from itertools import product

import torch
from tokenizers import Tokenizer, models
from torch import Tensor
from torch.nn import functional
from torch.optim import AdamW

from engine.checkpoints import Checkpoint
from engine.model.config import Attention, ModelConfig, Norm, Positions
from engine.model.transformer import Transformer
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kinds.word import JOIN, SPLIT

NAME = "plane"
PRONOUNS = {"Anna": "she", "Mary": "she", "Tom": "he", "Ben": "he"}
ANIMALS = "dog", "cat"
UNKNOWN = "<unk>"
WORDS = (*PRONOUNS, "saw", "the", *ANIMALS, "and", "she", "he")
STARTS, CHOSEN = (
    512,
    380,
)  # of so many models that begin at random, the one whose head looks at the name and whose arrows are short
STEPS, RATE, DECAY, SPREAD = 1200, 0.03, 0.1, 0.7


def sentences() -> list[list[str]]:
    """All that the model learns from. Which animal stands in one nobody can know; who is meant at the end, attention
    can."""
    return [f"{name} saw the {animal} and {PRONOUNS[name]}".split() for name, animal in product(PRONOUNS, ANIMALS)]


def plane_config() -> ModelConfig:
    attention = Attention(heads=1, d_head=2, bias=False, out_bias=False)
    size = len(WORDS) + 1
    return ModelConfig(
        size, 12, 2, 1, attention, positions=Positions(kind="none"), norm=Norm(kind="none"), tied=False
    )  # fmt: skip


def train_plane() -> tuple[Transformer, Tensor]:
    """Returns the model and its loss at each place of the sentences, sentence pos, in nats."""
    model, generator = Transformer(plane_config()), torch.Generator().manual_seed(0)
    weights = dict(model.named_parameters())
    attention = [f"blocks.0.attn.{part}.weight" for part in ("q", "k", "v", "out")]
    with torch.no_grad():
        for name in ("embed.tokens.weight", "head.weight", *attention):
            rows, columns = weights[name].shape
            skipped = rows > len(WORDS)  # the row of what is no word, which is never read
            drawn = torch.randn(STARTS, rows - skipped, columns, generator=generator)[CHOSEN] * SPREAD
            weights[name].zero_()[int(skipped) :] = drawn
    ids = torch.tensor([[WORDS.index(word) + 1 for word in sentence] for sentence in sentences()])
    optimiser = AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = RATE * (1 + math.cos(math.pi * step / STEPS)) / 2
        losses = functional.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none")
        optimiser.zero_grad()
        losses.mean().backward()
        optimiser.step()
    return model.eval(), losses.detach()


def make_plane() -> Checkpoint:
    model, losses = train_plane()
    fast = Tokenizer(models.WordLevel({word: id for id, word in enumerate((UNKNOWN, *WORDS))}, unk_token=UNKNOWN))
    fast.pre_tokenizer, fast.decoder = SPLIT, JOIN
    fast.add_special_tokens([UNKNOWN])
    texts = sentences()
    card = {
        "name": NAME,
        "about": "A transformer of two dimensions, whose vectors are arrows in a plane; it knows one kind of sentence.",
        "objective": "next",
        "steps": STEPS,
        "parameters": sum(one.numel() for one in model.parameters()),
        "loss": {"training": float(losses.mean()), "unit": "nats a token"},
        "measured": {"pronoun_loss": float(losses[:, -1].mean()), "sentences": len(texts)},
        "sample": " ".join(texts[0]),
        "device": "CPU",
        "licence": "MIT",
    }
    return Checkpoint(model, FastTokenizer(fast), card, name=NAME)
