"""Answers that a model draws, many at once, with the cache that generation has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.layers.cache import KVCache
from engine.model.transformer import Transformer

Prompt = tuple[int, ...]


@dataclass(frozen=True)
class Answers:
    """Prompts and the answers that were drawn to them: `ids` and `real` are answer pos, `answer` (answer pos) holds for
    an answer's own tokens, and `texts` are (prompt, answer)."""

    ids: Tensor
    real: Tensor
    answer: Tensor
    texts: list[tuple[str, str]]

    @property
    def lengths(self) -> Tensor:
        return self.answer.sum(1).float()


@torch.no_grad()
def draw_answers(
    model: Transformer,
    prompts: Sequence[Prompt],
    most: int,
    seed: int,
    temperature: float = 1.0,
    ends: Collection[int] = (),
    forward: Callable[..., Tensor] | None = None,
) -> list[Prompt]:
    """An answer to each prompt, of `most` tokens or up to and with the first of `ends`, drawn at the `temperature`; 0
    takes the likeliest.

    Prompts of one length are read together. `forward` stands for the model, as one that an adapter acts on. Raises
    ValueError for a prompt that leaves no room in the model's context.
    """
    longest = max(map(len, prompts))
    if longest + most > model.config.context:
        raise ValueError(
            f"a prompt and its answer must fit the model's context of {model.config.context} tokens, got {longest} and "
            f"{most}; shorten the prompts or preference.answer_tokens."
        )
    chance = torch.Generator(model.device).manual_seed(seed)
    answers: dict[int, Prompt] = {}
    for length in sorted(set(map(len, prompts))):
        places = [place for place, prompt in enumerate(prompts) if len(prompt) == length]
        read = torch.tensor([prompts[place] for place in places], device=model.device)
        drawn = draw_batch(forward or model, model, read, most, chance, temperature, ends)
        answers |= dict(zip(places, drawn, strict=True))
    return [answers[place] for place in range(len(prompts))]


def draw_batch(
    forward: Callable[..., Tensor],
    model: Transformer,
    read: Tensor,
    most: int,
    chance: torch.Generator,
    temperature: float,
    ends: Collection[int],
) -> list[Prompt]:
    """Answers to prompts (row pos) of one length."""
    cache = KVCache(model.config, len(read), read.shape[1] + most, next(model.parameters()))
    drawn: list[Tensor] = []
    over = torch.zeros(len(read), dtype=torch.bool, device=read.device)
    stops = torch.tensor(sorted(ends), dtype=torch.long, device=read.device)
    for _ in range(most):
        logits = forward(read, cache=cache, logits_at=slice(-1, None))[:, -1].float()
        probs = (logits / temperature).softmax(-1) if temperature else logits
        read = probs.multinomial(1, generator=chance) if temperature else probs.argmax(-1, keepdim=True)
        drawn.append(read)
        over |= torch.isin(read[:, 0], stops)
        if bool(over.all()):
            break
    rows = torch.cat(drawn, dim=1).tolist()
    return [cut_at(row, ends) for row in rows]


def cut_at(row: Sequence[int], ends: Collection[int]) -> Prompt:
    """The row up to and with the first of `ends`."""
    last = next((place for place, id in enumerate(row) if id in ends), len(row) - 1)
    return tuple(row[: last + 1])
