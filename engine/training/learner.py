"""What an update learns from, and how wrong the model was: the examples of the recipe's source, by its objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.model.layers.experts import Routing, recorded_routing
from engine.model.transformer import Transformer
from engine.scoring.examples import Counts, Examples
from engine.scoring.score import Outputs, score, shares_of
from engine.training.balance import token_information, with_balance

if TYPE_CHECKING:
    from engine.training.recipe.recipe import Recipe
    from engine.training.sources.source import Source


@dataclass(frozen=True)
class LearnerContext:
    """Inputs of a learner. `forward` is the pass of an update, compiled where that pays, and `eager` the same
    uncompiled; in both an adapter acts where there is one, as it does within `adapter_context()`. `precision()` is the
    context of a pass. The model as it is called by itself is the base where `holds_base`. `state` is what a learner of
    this run has returned before."""

    recipe: Recipe
    source: Source
    model: Transformer
    device: torch.device
    forward: Callable[..., Outputs]
    eager: Callable[..., Outputs]
    precision: Callable[[], AbstractContextManager[object]]
    adapter_context: Callable[[], AbstractContextManager[object]]
    holds_base: bool = False
    state: Mapping[str, float] = field(default_factory=dict)


class Learner:
    """`turns` are the passes over one batch, each of which changes the weights. `weight` counts for the second part of
    the objective's loss in place of the recipe's. `notes` are sentences for a person, each said once."""

    turns = 1

    def __init__(self, learning: LearnerContext) -> None:
        self.learning, self.recipe = learning, learning.recipe
        self.state = dict(learning.state)
        self.weight = self.usual_weight
        self.notes: list[str] = []
        self.drawn: dict[int, list[Examples]] = {}

    @property
    def usual_weight(self) -> float:
        """Weight that the recipe gives to the second part of the loss."""
        return self.recipe.objective.language_weight

    def batch(self, step: int) -> Examples:
        return self.learning.source.batch(step)

    def score(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        """Scalars by name, "loss" first, of the part of a batch; those of all parts add up to those of the `whole`."""
        outputs, smoothing = self.learning.forward(**part.inputs), self.recipe.objective.smoothing
        return score(outputs, part, shares_of(part.counts, whole), smoothing, self.weight)

    def evaluate(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        """The same of what is held out: of the model as it is, with no labels smoothed."""
        outputs = self.learning.eager(**part.inputs)
        return score(outputs, part, shares_of(part.counts, whole), language_weight=self.weight)

    def held_out(self, batches: int) -> list[Examples]:
        """Drawn once, since they are always the same."""
        if batches not in self.drawn:
            self.drawn = {batches: list(self.learning.source.held_out(batches))}
        return self.drawn[batches]

    @torch.no_grad()
    def measure(self, batches: int, step: int) -> dict[str, float]:
        """The scores on what is held out, each a mean over all "targets" of `batches`, and their number."""
        held_out = self.held_out(batches)
        whole = sum((examples.counts for examples in held_out), Counts(0))
        totals: dict[str, Tensor] = {}
        routed: list[tuple[Tensor, Sequence[Routing]]] = []
        for examples in held_out:
            with self.learning.precision(), recorded_routing() as routers:
                scores = self.evaluate(examples.to(self.learning.device), whole)
                scores = with_balance(scores, routers, examples.counts.rows / max(whole.rows, 1))
            if routers:
                routed.append((examples.inputs["ids"], routers))
            for name, value in scores.items():
                totals[name] = totals.get(name, torch.zeros((), dtype=torch.float64)) + value.cpu()
        found = {name: float(value) for name, value in totals.items()} | {"targets": float(whole.first)}
        return found | ({"expert_information": token_information(routed)} if routed else {})

    def samples(self, step: int) -> list[dict[str, Any]]:
        """Answers of the model after `step` updates to the same few prompts, with their scores; none for most
        objectives."""
        return []


@contextmanager
def evaluation(model: Transformer) -> Iterator[None]:
    """Without dropout."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)
