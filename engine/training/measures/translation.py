"""How often a sentence never seen is translated exactly, and whether a head shows which word became which."""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch

from engine.data.translation import Pair
from engine.training.measures.alignment import alignment
from engine.training.measures.decoding import translated
from engine.training.objectives.padded import padded, real
from engine.training.sources.translation import Translations
from engine.training.trainer import Trainer

SENTENCES, ALIGNED, AT_ONCE = 2_000, 500, 250
LONGEST = 40  # tokens; no sentence comes near


def measured(trainer: Trainer) -> dict[str, Any]:
    source = translations(trainer)
    pairs = list(islice(source.pairs.held_out(), SENTENCES))
    right = sum(
        given == pair.french
        for part in batches(pairs)
        for given, pair in zip(written(trainer, part), part, strict=True)
    )
    return {
        "exact_match": right / len(pairs),
        "sentences": len(pairs),
        "decoding": "greedy",
        "unseen": "no English sentence is among those trained on",
        "alignment": alignment(trainer.checkpoint(), pairs[:ALIGNED]),
    }


def batches(pairs: list[Pair]) -> list[list[Pair]]:
    return [pairs[i : i + AT_ONCE] for i in range(0, len(pairs), AT_ONCE)]


def written(trainer: Trainer, pairs: list[Pair]) -> list[str]:
    """What the model writes for each pair's English."""
    source = translations(trainer)
    tokenizer = source.corpus.tokenizer
    sources = [torch.tensor(tokenizer.encode(pair.english, special=False).ids) for pair in pairs]
    ids, padding = padded(sources, source.marks.pad).to(trainer.device), real(sources).to(trainer.device)
    found = translated(trainer.model, ids, padding, source.marks.end, LONGEST)
    return [tokenizer.decode(row) for row in found]


def sample(trainer: Trainer) -> str:
    source = translations(trainer)
    pair = next(one for one in source.pairs.held_out() if any(each.french_adverb for each in one.adjective_noun))
    (french,) = written(trainer, [pair])
    return f"{pair.english}\n{french}"


def translations(trainer: Trainer) -> Translations:
    assert isinstance(trainer.source, Translations)
    return trainer.source
