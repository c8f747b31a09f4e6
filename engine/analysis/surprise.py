"""How surprising each token of a text is to a model that writes, and how that adds up to the loss it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.config import Infill
from engine.sampling import entropy
from engine.training.objectives import UNASKED, Examples, Outputs, score


@dataclass(frozen=True)
class Surprise:
    """Of every token that the model is asked for, in reading order: its id (`ids`, token), where among the positions
    that the decoder read it was predicted (`at`, token), and the `logits` there (token vocab). `examples` are the
    training example that asks for the same.
    """

    ids: Tensor
    at: Tensor
    logits: Tensor
    examples: Examples

    @cached_property
    def log_probabilities(self) -> Tensor:
        """token: ln p of each, in nats. Divided by -ln 2 it is the surprise in bits (Shannon 1948)."""
        return self.logits.log_softmax(-1).gather(-1, self.ids[:, None])[:, 0]

    @property
    def ranks(self) -> Tensor:
        """token: 1 for the most probable; tokens with the same logit share the better rank."""
        return (self.logits > self.logits.gather(-1, self.ids[:, None])).sum(-1) + 1

    @property
    def entropies(self) -> Tensor:
        """token: in nats, the surprise to be expected before the token was read."""
        return entropy(self.logits.softmax(-1))

    @property
    def total(self) -> float:
        """The loss summed over the tokens, in nats."""
        return -float(self.log_probabilities.double().sum())

    @property
    def mean(self) -> float:
        """The loss as training has it: nats a token."""
        return self.total / len(self.ids)

    @property
    def perplexity(self) -> float:
        """exp(mean): among how many equally probable tokens it would be as hard to choose (Jelinek et al. 1977)."""
        return float(torch.tensor(self.mean, dtype=torch.float64).exp())


@torch.inference_mode()
def surprise(checkpoint: Checkpoint, ids: Sequence[int], source: Sequence[int] = ()) -> Surprise:
    """`ids` are what a decoder reads and is asked for, as in `engine.prompt.Prompt`; `source` is what an encoder reads.

    Raises ValueError for a text in which no token is asked for, or that is longer than the model reads.
    """
    examples = examples_of(checkpoint, ids, source)
    model = checkpoint.model
    asked = examples.targets[0] != UNASKED
    if not bool(asked.any()):
        raise ValueError("surprise is of a token behind another, and this text has no second one; make it longer.")
    model.check(examples.inputs.get("target", examples.ids))
    logits = outputs(checkpoint, examples.to(model.device))[0][0].float().cpu()
    return Surprise(examples.targets[0][asked], asked.nonzero()[:, 0], logits[asked], examples)


@torch.inference_mode()
def training_loss(checkpoint: Checkpoint, examples: Examples) -> float:
    """The loss, nats a token, that a training step would compute of this example."""
    there = examples.to(checkpoint.model.device)
    return float(score(outputs(checkpoint, there), there)["loss"])


def outputs(checkpoint: Checkpoint, examples: Examples) -> Outputs:
    inputs: dict[str, Any] = dict(examples.inputs)
    return checkpoint.model.both(**inputs)


def examples_of(checkpoint: Checkpoint, ids: Sequence[int], source: Sequence[int] = ()) -> Examples:
    """One text as its model's training objective asks for it.

    A decoder is asked for every token behind the first, a picture's start token included among what it reads. A target
    and a filled gap are asked for whole, with the end token behind them that training puts there.
    """
    config, ends = checkpoint.config, tuple(checkpoint.end_ids)
    if config.encoder is None and config.infill is None:
        read = torch.tensor([list(ids)])
        return Examples({"ids": read[:, :-1]}, read[:, 1:])
    closed = list(ids) if ids[-1:] and ids[-1] in ends else [*ids, *ends[:1]]
    read, targets = torch.tensor([closed[:-1]]), torch.tensor([closed[1:]])
    if config.infill is not None:
        return Examples({"ids": read}, spans_of(read, targets, config.infill, ends))
    return Examples({"ids": torch.tensor([list(source)]), "target": read}, targets, whole=True)


def spans_of(read: Tensor, targets: Tensor, infill: Infill, ends: Sequence[int]) -> Tensor:
    """What is asked of text, spans: nothing of the text, and of a span its end where the next one starts."""
    first = (read == infill.start).long().argmax()
    asked = targets.clone()
    asked[0, :first] = UNASKED
    return asked.masked_fill(asked == infill.start, ends[0] if ends else UNASKED)
