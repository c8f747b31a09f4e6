"""Greedy generation with the KV cache."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.models import LITTLE, both
from bench.paired import Row, paired
from engine.generate import generate

NEW = 100


def rows() -> Iterator[Row]:
    ours, theirs = both(LITTLE, "sdpa")
    ids = LITTLE.ids
    attended = torch.ones_like(ids)

    def our_text() -> list[int]:
        return [step.id for step in generate(ours, ids, NEW, greedy=True, stop_at_end=False)]

    def their_text() -> list[int]:
        written = theirs.generate(
            ids, attention_mask=attended, max_new_tokens=NEW, do_sample=False, use_cache=True, pad_token_id=0
        )
        return written[0, ids.shape[1] :].tolist()

    if our_text() != their_text():
        raise ValueError("both sides must write the same tokens, and do not: the times would mean nothing.")
    yield paired(f"{NEW} greedy tokens, {LITTLE.name}", our_text, their_text, reach=0.6)
