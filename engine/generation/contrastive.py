"""Contrastive search: of the most probable tokens the one that least repeats what the model has in mind already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.edits import Edit
from engine.generation.edited_reader import EditedReader
from engine.generation.prompt import Prompt, picture_pixels
from engine.generation.sampling import Sampling
from engine.generation.stopping import Stop, StopRules
from engine.model.transformer import Transformer
from engine.runtime.run import stream


@dataclass(frozen=True)
class Candidate:
    """A token that was considered: `confidence` is its probability, `penalty` the largest cosine between the last
    hidden state it would have and those of all tokens before it. score = (1 - alpha) confidence - alpha penalty
    (Su et al. 2022, "A contrastive framework for neural text generation", equation 5).
    """

    id: int
    confidence: float
    penalty: float
    score: float


def check_settings(alpha: float, sampling: Sampling) -> None:
    if not 0 <= alpha <= 1:
        raise ValueError(f"the contrastive penalty alpha must lie in 0 (none)..1, got {alpha}.")
    if alpha and sampling.top_k < 2:
        raise ValueError(f"contrastive search chooses among the top-k tokens, 2 or more, got {sampling.top_k}.")
    others = (sampling.top_p, sampling.min_p, sampling.typical_p)
    if alpha and (sampling.temperature != 1 or others != (1, 0, 1)):
        raise ValueError(
            "contrastive search draws nothing, so temperature, top-p, min-p and typical-p have no part in it; leave "
            "them out."
        )


def readable(ending: StopRules, begun: int) -> StopRules:
    """Ends contrastive search before a token whose candidates have no place to be read, and so no hidden state: the
    last one, which is written where the context ends. Raises ValueError where that is the next one after `begun`
    tokens.
    """
    context = ending.prompt.checkpoint.config.context
    room = context - len(ending.prompt.ids)
    if ending.room <= max(room, begun):
        return ending
    unit = "token" if picture_pixels(ending.prompt.checkpoint) is None else "pixel"
    if begun >= room:
        raise ValueError(
            f"contrastive search reads each candidate before it chooses one, and the context of {context:,} tokens has "
            f"no place left for that; write the last {unit} with another method."
        )
    return replace(ending, room=room, limit=Stop("candidates", unit, count=context))


class ContrastiveReader:
    """Reads what was chosen, as `Reader` does, and `choose`s what follows by reading each candidate as well."""

    def __init__(self, prompt: Prompt, room: int, edits: tuple[Edit, ...], alpha: float) -> None:
        self.alpha, name = alpha, last_hidden(prompt.checkpoint.model)
        self.reader = EditedReader(prompt, room + 1, edits, name)  # the last token is read too
        self.context = torch.empty(0)  # pos d_model, each of length 1: the last hidden states so far
        self.found: Tensor | None = None

    def read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """1 vocab. A token that was chosen has been read among the candidates."""
        if self.found is None:
            self.found = self.reader.read(rows)
            self.context = normalize(self.reader.seen[0], dim=-1)
        return self.found

    def choose(self, shares: Tensor, k: int) -> tuple[Candidate, ...]:
        """The best of the `k` most probable first; `shares` is vocab."""
        top = shares.topk(min(k, len(shares)))
        ids = top.indices.tolist()
        self.reader.reorder([0] * len(ids))
        logits = self.reader.read([(id,) for id in ids])
        seen = normalize(self.reader.seen, dim=-1)  # candidate pos d_model: of what was read now
        hidden = torch.cat([self.context.expand(len(ids), -1, -1), seen], dim=1) if self.reader.cached else seen
        penalties = torch.einsum("cpd,cd->cp", hidden[:, :-1], hidden[:, -1]).amax(-1)
        scores = (1 - self.alpha) * top.values - self.alpha * penalties
        best = int(scores.argmax())
        self.reader.reorder([best])
        self.found, self.context = logits[best : best + 1], hidden[best]
        columns = (ids, top.values.tolist(), penalties.tolist(), scores.tolist())
        made = [Candidate(*row) for row in zip(*columns, strict=True)]
        return (made[best], *made[:best], *made[best + 1 :])


def last_hidden(model: Transformer) -> str:
    """The hook of what the head reads, batch pos d_model."""
    side = "" if model.config.encoder is None else "decoder."
    final = f"{side}final_norm.out"
    return final if final in model.hooks else stream(model, f"{side}blocks.{model.config.layers - 1}.")
