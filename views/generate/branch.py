"""What the tabs ask to put a text that they found into the tree of what was written: all of its steps, read at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.generation.generate import Step, is_over
from engine.generation.sampling import Sampling
from engine.generation.stopping import stopping
from views.core.payload import pack
from views.generate.beam_search import MOST
from views.generate.session import STALE, UNKNOWN, Query, Settings, Writing
from views.generate.steps import steps_payload, told


def answer(writing: Writing, query: Query) -> bytes:
    """The steps behind `begun` at which the `ids` were chosen, one for each, and `stops`: what ends the text there.
    Raises ValueError with a sentence."""
    if query.get("trace") != writing.made:
        raise ValueError(STALE)
    settings, begun = Settings.of(query.get("settings", {})), writing.ids(query.get("begun"))
    ids = writing.ids(query.get("ids"))
    if not 0 < len(ids) <= min(MOST["tokens"], writing.prompt.left - len(begun)):
        raise ValueError(UNKNOWN)
    steps = branch(writing, settings, begun, ids)
    header, arrays = steps_payload(writing, steps)
    return pack({**header, "stops": [told(step.stopped) for step in steps]}, arrays)


def branch(writing: Writing, settings: Settings, begun: tuple[int, ...], ids: tuple[int, ...]) -> list[Step]:
    """As `generate` under the settings, with the `ids` in place of what it chooses. It ends where the first of
    them ends the text."""
    ending = stopping(writing.prompt, writing.prompt.left, True, settings.strings)
    if is_over(ending, begun):
        return []
    if settings.method == "contrastive":  # what it chooses among has to be read, token by token
        texts = [(*begun, *ids[:count]) for count in range(len(ids))]
        found = (next(writing.generating(settings, ending.room, text), None) for text in texts)
        steps = [replace(step, id=id) for step, id in zip(found, ids, strict=True) if step is not None]
    else:
        sampling, before = sampling_of(settings), (*writing.prompt.ids, *begun)
        rows = enumerate(zip(ids, logits_before(writing, begun, ids), strict=True))
        steps = [Step(len(begun) + at, id, logits, sampling, (*before, *ids[:at]), ending) for at, (id, logits) in rows]
    last = next((at for at, step in enumerate(steps) if step.stopped is not None), len(steps))
    return steps[: last + 1]


def sampling_of(settings: Settings) -> Sampling:
    if settings.method == "greedy":
        return Sampling(0.0, repetition_penalty=settings.repetition_penalty)
    return Sampling(
        settings.temperature, settings.top_k, settings.top_p, settings.min_p, settings.typical_p,
        settings.repetition_penalty,
    )  # fmt: skip


@torch.inference_mode()
def logits_before(writing: Writing, begun: Sequence[int], ids: Sequence[int]) -> Tensor:
    """id vocab: what each of the ids follows from."""
    prompt, model = writing.prompt, writing.checkpoint.model
    read = torch.tensor([[*prompt.ids, *begun, *ids[:-1]]], device=model.device)
    at = slice(len(prompt.ids) + len(begun) - 1, None)
    if prompt.source:
        return model(torch.tensor([prompt.source], device=model.device), target=read, logits_at=at)[0]
    return model(read, logits_at=at)[0]
