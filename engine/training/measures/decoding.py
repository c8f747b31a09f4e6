"""Many texts written at once, always the most likely token next; what a card measures is counted on these."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.transformer import Transformer


@torch.no_grad()
def decode_translations(model: Transformer, ids: Tensor, padding: Tensor, end: int, longest: int) -> list[list[int]]:
    """Ids that an encoder-decoder writes for each row of `ids` (batch pos), up to `end` or `longest` tokens."""
    target, _ = model.begin(ids)
    memory = model.encoder.forward_resid(ids, padding=padding)
    done = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(longest):
        logits = model(ids, target=target, padding=padding, memory=memory, logits_at=slice(-1, None))
        target = torch.cat([target, logits.argmax(-1)], dim=1)
        done |= target[:, -1] == end
        if done.all():
            break
    return [until(row, end) for row in target[:, 1:].tolist()]


@torch.no_grad()
def decode_continuations(model: Transformer, prompts: list[Tensor], end: int, longest: int) -> list[list[int]]:
    """Ids that follow each of `prompts`, up to `end`, `longest` tokens or what the model can read. Rows have their own
    lengths, and each its own place for the next token."""
    starts = torch.tensor([len(prompt) for prompt in prompts], device=model.device)
    ids = torch.full((len(prompts), int(starts.max()) + longest), end, device=model.device)
    for i, prompt in enumerate(prompts):
        ids[i, : len(prompt)] = prompt
    place = torch.arange(ids.shape[1], device=model.device)
    lengths, rows = starts.clone(), torch.arange(len(prompts), device=model.device)  # of those that have no end yet
    for _ in range(longest):
        read = int(lengths.max())
        logits = model(ids[rows, :read], padding=place[:read] < lengths[:, None])
        written = logits[torch.arange(len(rows)), lengths - 1].argmax(-1)
        ids[rows, lengths] = written
        goes_on = (written != end) & (lengths < model.config.context)
        rows, lengths = rows[goes_on], lengths[goes_on] + 1
        if not len(rows):
            break
    return [until(ids[i, begin:].tolist(), end) for i, begin in enumerate(starts.tolist())]


def until(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end)] if end in ids else ids
