"""What an update learns from, and how wrong the model was: the examples of the recipe's source, by its objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.scoring.examples import Counts, Examples
from engine.scoring.score import score, shares_of

if TYPE_CHECKING:
    from engine.training.trainer import Trainer


class Learner:
    """`turns` are the passes over one batch, each of which changes the weights. `weight` counts for the second part of
    the objective's loss in place of the recipe's. `notes` are sentences for a person, each said once."""

    turns = 1

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.recipe = trainer, trainer.recipe
        self.weight = self.usual_weight
        self.notes: list[str] = []

    @property
    def usual_weight(self) -> float:
        """Weight that the recipe gives to the second part of the loss."""
        return self.recipe.objective.language_weight

    def batch(self, step: int) -> Examples:
        return self.trainer.source.batch(step)

    def score(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        """Scalars by name, "loss" first, of the part of a batch; those of all parts add up to those of the `whole`."""
        outputs, smoothing = self.trainer.compilation.forward(**part.inputs), self.recipe.objective.smoothing
        return score(outputs, part, shares_of(part.counts, whole), smoothing, self.weight)

    def evaluate(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        """The same of what is held out: of the model as it is, with no labels smoothed."""
        outputs = self.trainer.compilation.eager(**part.inputs)
        return score(outputs, part, shares_of(part.counts, whole), language_weight=self.weight)

    def held_out(self, batches: int) -> list[Examples]:
        return self.trainer.held_out(batches)

    @torch.no_grad()
    def measure(self, batches: int) -> dict[str, float]:
        """The scores on what is held out, each a mean over all "targets" of `batches`, and their number."""
        held_out = self.held_out(batches)
        whole = sum((examples.counts for examples in held_out), Counts(0))
        totals: dict[str, Tensor] = {}
        for examples in held_out:
            with self.trainer.plan.context():
                scores = self.evaluate(examples.to(self.trainer.device), whole)
            for name, value in scores.items():
                totals[name] = totals.get(name, torch.zeros((), dtype=torch.float64)) + value.cpu()
        return {name: float(value) for name, value in totals.items()} | {"targets": float(whole.first)}

    def samples(self) -> list[dict[str, Any]]:
        """Answers of the current model to the same few prompts, with their scores; none for most objectives."""
        return []
