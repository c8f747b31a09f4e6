"""How surprising each token of a text is to a model that writes, and how that adds up to the loss it was trained on.

A text that is longer than the model reads is measured in windows that overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.generation.prompt import picture_start
from engine.generation.sampling import entropy
from engine.model.config import Infill
from engine.scoring.examples import UNASKED, Examples
from engine.scoring.score import score

FEWEST = 4  # tokens that say whether a model knows such a text
TOP = 10  # of the most probable tokens at each place
AT_ONCE = 2**22  # logits that are measured at a time
MEASURED = ("log_probabilities", "ranks", "entropies", "top_ids", "top_probabilities")


@dataclass(frozen=True)
class Window:
    """The ids `begin` to `end` of a text, read by themselves. Those from `asked` on are predicted, each from what
    stands before it in the window."""

    begin: int
    asked: int
    end: int


@dataclass(frozen=True)
class Surprise:
    """Measures of every token that the model is asked for, in reading order: its id (`ids`, token), where among the
    positions that the decoder read it was predicted (`at`, token), ln p of it in nats (`log_probabilities`, token), and
    its rank (`ranks`, token): 1 for the most probable, the better one for tokens with the same logit.

    `entropies` (token) are in nats, the surprise to be expected before the token was read. `top_ids` and
    `top_probabilities` (token row) are the most probable ones there. `examples` are the training examples that ask for
    the same, one for each of the `windows`, and `training` is the loss in nats a token that training computes of them.
    """

    ids: Tensor
    at: Tensor
    log_probabilities: Tensor
    ranks: Tensor
    entropies: Tensor
    top_ids: Tensor
    top_probabilities: Tensor
    training: float
    examples: tuple[Examples, ...]
    windows: tuple[Window, ...]

    @property
    def total(self) -> float:
        """The loss summed over the tokens, in nats. Divided by ln 2 it is in bits (Shannon 1948)."""
        return -float(self.log_probabilities.double().sum())

    @property
    def mean(self) -> float:
        """The loss as training has it: nats a token."""
        return self.total / len(self.ids)

    @property
    def perplexity(self) -> float:
        """exp(mean): among how many equally probable tokens it would be as hard to choose (Jelinek et al. 1977)."""
        return float(torch.tensor(self.mean, dtype=torch.float64).exp())


def surprise(
    checkpoint: Checkpoint, ids: Sequence[int], source: Sequence[int] = (), stride: int | None = None
) -> Surprise:
    """`ids` are what a decoder reads and is asked for, as in `Prompt`; `source` is what an encoder reads.

    Longer ones than the model reads are read in `windows`, `stride` tokens apart. Raises ValueError for a text in
    which no token is asked for, and for a source, a target or a filled gap that is longer than the model reads.
    """
    return join_windows([of_window(checkpoint, ids, window, source) for window in windows_of(checkpoint, ids, stride)])


def slides(checkpoint: Checkpoint) -> bool:
    """True if its texts can be read in windows: each token hangs only on those before it, and none of them must be
    there, as a source, a gap's text and a picture's start must."""
    config = checkpoint.config
    alone = config.encoder is None and config.infill is None
    return alone and config.attention.mask == "causal" and picture_start(config) is None


def compare_with_guessing(checkpoint: Checkpoint, ids: Sequence[int], logits: Tensor) -> tuple[float, float] | None:
    """Nats a token of a text of which pos vocab `logits` are known, and those of guessing, ln vocab. None of a model of
    which other tokens are asked than all but the first, and of a text in which fewer than FEWEST are."""
    first = first_asked(checkpoint, ids)
    if not slides(checkpoint) or len(ids) - first < FEWEST or len(logits) != len(ids):
        return None
    measured = measure_rows(logits[first - 1 : -1], torch.tensor(ids[first:]))
    return -float(measured["log_probabilities"].mean()), log(logits.shape[-1])


def first_asked(checkpoint: Checkpoint, ids: Sequence[int]) -> int:
    """Position of the first token that the training asked for: behind the start; in a model that was tuned to answer,
    behind the last separator. The end of `ids` where it cannot be told, as of repeats and tables, where there is none,
    and in a compiled model."""
    if "program" in checkpoint.card:
        return len(ids)
    objective = checkpoint.card.get("objective", "next")
    if objective == "next" and "in_context" not in checkpoint.card.get("data", {}):
        return 1
    if objective != "completion" or checkpoint.tokenizer is None:
        return len(ids)
    separators = set(checkpoint.tokenizer.special_tokens.values()) - set(checkpoint.end_ids)
    return max((at + 1 for at, id in enumerate(ids) if id in separators), default=len(ids))


def windows_of(checkpoint: Checkpoint, ids: Sequence[int], stride: int | None = None) -> tuple[Window, ...]:
    """Windows in which `surprise` reads them; one where the model needs all of them at once."""
    if not slides(checkpoint):
        return (Window(0, 1, len(ids)),)
    return windows(len(ids), checkpoint.config.context, stride)


def windows(length: int, context: int, stride: int | None = None) -> tuple[Window, ...]:
    """Yields, of a text of `length` tokens, each window of at most `context` tokens, `stride` (None: half of the
    context) behind the one before. Every token but the first is asked once; in all windows but the first with at least
    `context` - `stride` tokens before it.

    The sliding window of Press et al. 2021 (Shortformer, section 2), as the guide "Perplexity of fixed-length models"
    of transformers has it. Raises ValueError for a stride at which tokens would have none before them.
    """
    step = max(1, context // 2) if stride is None else stride
    if length <= context:
        return (Window(0, 1, length),)
    if not 1 <= step < context:
        raise ValueError(f"the stride must lie in 1..{context - 1}, below the model's context, got {step}.")
    count = 1 + -(-(length - context) // step)
    ends = [min(context + i * step, length) for i in range(count)]
    return tuple(Window(i * step, ends[i - 1] if i else 1, end) for i, end in enumerate(ends))


@torch.inference_mode()
def of_window(checkpoint: Checkpoint, ids: Sequence[int], window: Window, source: Sequence[int] = ()) -> Surprise:
    """Surprise of the tokens that one window asks for."""
    examples = examples_of(checkpoint, ids[window.begin : window.end], source)
    targets = examples.targets.clone()
    targets[0, : window.asked - window.begin - 1] = UNASKED
    asked = (targets[0] != UNASKED).nonzero()[:, 0]
    if not len(asked):
        raise ValueError("surprise is of a token behind another, and this text has no second one; make it longer.")
    model, examples = checkpoint.model, replace(examples, targets=targets)
    for read in (examples.ids, examples.inputs.get("target", examples.ids)):
        model.check(read)
    first = int(asked[0])
    there = replace(examples, targets=targets[:, first:]).to(model.device)
    logits = outputs(checkpoint, there, slice(first, None))
    return Surprise(
        ids=targets[0, asked],
        at=asked + window.begin,
        **measure_rows(logits[0, asked - first], targets[0, asked]),
        training=float(score((logits, None), there)["loss"]),
        examples=(examples,),
        windows=(window,),
    )


def join_windows(parts: Sequence[Surprise]) -> Surprise:
    """Windows of one text, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    whole = {name: torch.cat([getattr(part, name) for part in parts]) for name in ("ids", "at", *MEASURED)}
    return Surprise(
        **whole,
        training=sum(part.training * len(part.ids) for part in parts) / len(whole["ids"]),
        examples=tuple(one for part in parts for one in part.examples),
        windows=tuple(one for part in parts for one in part.windows),
    )


def measure_rows(logits: Tensor, ids: Tensor) -> dict[str, Tensor]:
    """Computes, from token vocab and token, the entries `MEASURED` of a Surprise. Few rows at a time, for what is made
    of them is as large as they are."""
    rows = max(1, AT_ONCE // logits.shape[-1])
    parts = [of_rows(logits[at : at + rows], ids[at : at + rows]) for at in range(0, len(ids), rows)]
    return {name: torch.cat(column) for name, column in zip(MEASURED, zip(*parts, strict=True), strict=True)}


def of_rows(logits: Tensor, ids: Tensor) -> tuple[Tensor, ...]:
    """MEASURED, in that order."""
    logits, wanted = logits.float().cpu(), ids[:, None]
    own = logits.softmax(-1)
    top = own.topk(min(TOP, own.shape[-1]))
    ranks = (logits > logits.gather(-1, wanted)).sum(-1) + 1
    return logits.log_softmax(-1).gather(-1, wanted)[:, 0], ranks, entropy(own), top.indices, top.values


def outputs(checkpoint: Checkpoint, examples: Examples, at: slice) -> Tensor:
    """batch pos vocab: the logits of the positions `at`, which are as many as the targets."""
    inputs: dict[str, Any] = dict(examples.inputs)
    return checkpoint.model(**inputs, logits_at=at)[:, -examples.targets.shape[1] :]


def examples_of(checkpoint: Checkpoint, ids: Sequence[int], source: Sequence[int] = ()) -> Examples:
    """Text as its model's training objective asks for it.

    A decoder is asked for every token behind the first, a picture's start token included among what it reads. A target
    and a filled gap are asked for whole, with the end token after them that training puts there, unless their last
    token has no place to be read.
    """
    config, ends = checkpoint.config, tuple(checkpoint.end_ids)
    if config.encoder is None and config.infill is None:
        read = torch.tensor([list(ids)])
        return Examples({"ids": read[:, :-1]}, read[:, 1:])
    ended = len(ids) > config.context or (len(ids) > 0 and ids[-1] in ends)
    closed = list(ids) if ended else [*ids, *ends[:1]]
    read, targets = torch.tensor([closed[:-1]]), torch.tensor([closed[1:]])
    if config.infill is not None:
        return Examples({"ids": read}, spans_of(read, targets, config.infill, ends))
    return Examples({"ids": torch.tensor([list(source)]), "target": read}, targets, whole=True)


def spans_of(read: Tensor, targets: Tensor, infill: Infill, ends: Sequence[int]) -> Tensor:
    """Tokens asked of text, spans: nothing of the text, and of a span its end where the next one starts."""
    first = (read == infill.start).long().argmax()
    asked = targets.clone()
    asked[0, :first] = UNASKED
    return asked.masked_fill(asked == infill.start, ends[0] if ends else UNASKED)
