"""Answers that a model draws, many at once, with the cache that generation has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.layers.cache import KVCache
from engine.model.transformer import Transformer
from engine.tokenizers import Tokenizer

Prompt = tuple[int, ...]


@dataclass(frozen=True)
class SampledAnswers:
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

    All are read at once: longer prompts go on being read while shorter ones are answered already. `forward` stands for
    the model, as one that an adapter acts on. Raises ValueError for a prompt that leaves no room in the model's
    context.
    """
    longest = max(map(len, prompts))
    if longest + most > model.config.context:
        raise ValueError(
            f"a prompt and its answer must fit the model's context of {model.config.context} tokens, got {longest} and "
            f"{most}; shorten the prompts or preference.answer_tokens."
        )
    device, fewest = model.device, min(map(len, prompts))
    chance = torch.Generator(device).manual_seed(seed)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    given = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=device)
    stops = torch.tensor(sorted(ends), dtype=torch.long, device=device)
    cache = KVCache(model.config, len(prompts), longest + most, next(model.parameters()))
    over = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    columns, read = list(given[:, :fewest].unbind(1)), given[:, :fewest]
    for place in range(fewest, longest + most):
        logits = (forward or model)(read, cache=cache, logits_at=slice(-1, None))[:, -1].float()
        probs = (logits / temperature).softmax(-1) if temperature else logits
        drawn = (probs.multinomial(1, generator=chance) if temperature else probs.argmax(-1, keepdim=True))[:, 0]
        begun = place >= lengths
        column = drawn if place >= longest else torch.where(begun, drawn, given[:, place])
        columns.append(column)
        over |= begun & (torch.isin(column, stops) | (place + 1 >= lengths + most))
        if bool(over.all()):
            break
        read = column[:, None]
    rows = torch.stack(columns, 1).tolist()
    return [cut_at(row[len(prompt) : len(prompt) + most], ends) for row, prompt in zip(rows, prompts, strict=True)]


def read_drawn(tokenizer: Tokenizer, prompt: Prompt, answer: Prompt) -> tuple[str, str]:
    """The texts of a prompt and of the answer behind it, without special tokens, which together are what the model
    wrote: an answer that is read by itself may lose the space it begins with."""
    before, whole = (tokenizer.decode(ids, special=False) for ids in (prompt, prompt + answer))
    return before, whole[len(before) :] if whole.startswith(before) else tokenizer.decode(answer, special=False)


def cut_at(row: Sequence[int], ends: Collection[int]) -> Prompt:
    """The row up to and with the first of `ends`."""
    last = next((place for place, id in enumerate(row) if id in ends), len(row) - 1)
    return tuple(row[: last + 1])
