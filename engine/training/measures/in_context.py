"""How often a row of a prompt is answered right, by how many rows stand above it."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import torch

from engine.data.kinds.in_context import BEHIND, BETWEEN, line, rows
from engine.data.seeds import seed_for
from engine.generation.few_shot import line_behind
from engine.scoring.examples import UNASKED
from engine.training.sources.in_context import Prompts
from engine.training.trainer import Trainer

BATCHES = 40
MOST = 8  # rows above
SHOWN, LONGEST = 4, 20  # rows of the sample, and signs of its answer


@torch.no_grad()
def measure_in_context(trainer: Trainer) -> dict[str, Any]:
    """`accuracy_by_examples`: the share of rows whose whole answer and line break are the model's first choices, each
    read with the right ones before it, of held-out prompts and with 0 to MOST rows above."""
    right: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    source = taught(trainer)
    for examples in source.held_out(BATCHES):
        ids, targets = examples.ids.to(trainer.full_model.device), examples.targets
        hits = (trainer.result(ids).argmax(-1).cpu() == targets).tolist()
        for row, found in zip(targets.tolist(), hits, strict=True):
            for k, one in enumerate(islice(answers(row, found, source.ids[BEHIND]), MOST + 1)):
                right[k] += one
                asked[k] += 1
    return {
        "accuracy_by_examples": {str(k): right[k] / asked[k] for k in sorted(asked)},
        "prompts": asked[0],
        "decoding": "greedy",
        "unseen": "no word, label, prefix or suffix is among those trained on, but in the tables known by heart",
    }


def answers(targets: list[int], hits: list[bool], end: int) -> list[bool]:
    """Tells of each whole answer of a prompt whether all of it was right."""
    found, good = [], True
    for target, hit in zip(targets, hits, strict=True):
        good = good and (hit or target == UNASKED)
        if target == end:
            found.append(good)
            good = True
    return found


def sample_in_context(trainer: Trainer) -> str:
    """A few rows, and the word that the model goes on with."""
    told = list(islice(rows("held_out", seed_for(trainer.recipe.data_seed, "sample")), SHOWN + 1))
    prompt = "".join(line(*row) for row in told[:-1]) + told[-1][0] + BETWEEN.rstrip()
    return f"{prompt} {line_behind(trainer.checkpoint(), prompt, LONGEST)}"


def taught(trainer: Trainer) -> Prompts:
    assert isinstance(trainer.source, Prompts)
    return trainer.source
