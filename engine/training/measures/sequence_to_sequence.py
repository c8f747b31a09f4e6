"""How often a target never seen is written exactly, and whether a head shows what became which."""

from __future__ import annotations

from itertools import islice
from typing import Any

from engine.data.translation.task import Translation
from engine.training.measures import exact
from engine.training.measures.alignment import alignment
from engine.training.measures.origins import origins
from engine.training.trainer import Trainer

ALIGNED = 500


def measure_translation(trainer: Trainer) -> dict[str, Any]:
    return {**exact.exact_match(trainer), **origins(trainer), **measure_alignment(trainer)}


def measure_alignment(trainer: Trainer) -> dict[str, Any]:
    """Measures the alignment of English and French, of which it is known which words translate each other."""
    task = exact.taught(trainer).task
    if not isinstance(task, Translation):
        return {}
    pairs = list(islice(task.sentences("held_out", trainer.recipe.seed), ALIGNED))
    return {"alignment": alignment(trainer.checkpoint(), pairs)}
