"""The same recipe on the same seed with one choice changed, so that two curves show what the choice does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.model.config import ModelConfig, PositionKind
from engine.training import Recipe, limit_checks

SEEN = 0.05  # the weight decay from which leaving it out makes a difference


def contrasts(recipe: Recipe) -> dict[str, Recipe]:
    """Changed recipes by their titles, without those that change nothing or that no model or task can have."""
    found: dict[str, Recipe] = {}
    for title, change in CHANGES.items():
        try:
            other = change(recipe)
            limit_checks.check_recipe(other)
        except ValueError:
            continue
        if other != recipe:
            found[title] = other
    return found


def of_model(change: Callable[[ModelConfig], ModelConfig]) -> Callable[[Recipe], Recipe]:
    return lambda recipe: replace(recipe, model=change(recipe.model))


def change_stacks(model: ModelConfig, **changed: Any) -> ModelConfig:
    """Changes both stacks."""
    encoder = model.encoder and replace(model.encoder, **changed)
    return replace(model, encoder=encoder, **changed)


def change_attention(model: ModelConfig, **changed: Any) -> ModelConfig:
    """Changes all attention, that to the encoder too."""
    encoder = model.encoder and replace(model.encoder, attention=replace(model.encoder.attention, **changed))
    cross = model.cross and replace(model.cross, **changed)
    return replace(model, attention=replace(model.attention, **changed), encoder=encoder, cross=cross)


def with_positions(kind: PositionKind) -> Callable[[Recipe], Recipe]:
    return of_model(lambda model: replace(model, positions=replace(model.positions, kind=kind, scaling=None)))


def norms_after(model: ModelConfig) -> ModelConfig:
    return model if model.norm.kind == "none" else replace(model, norm=replace(model.norm, place="after"))


def without_scale(model: ModelConfig) -> ModelConfig:
    return change_attention(model, scale=1.0) if model.attention.scale is None else model


def one_block(model: ModelConfig) -> ModelConfig:
    return change_stacks(model, layers=1) if model.distinct is None else replace(model, layers=1, distinct=1)


def not_warmed_up(recipe: Recipe) -> Recipe:
    return replace(recipe, schedule=replace(recipe.schedule, warmup=0))


def not_decayed(recipe: Recipe) -> Recipe:
    """Sets the weight decay to 0 where it is large enough to be seen."""
    if recipe.optimiser.weight_decay < SEEN:
        return recipe
    return replace(recipe, optimiser=replace(recipe.optimiser, weight_decay=0.0))


def ten_times(recipe: Recipe) -> Recipe:
    return replace(recipe, optimiser=replace(recipe.optimiser, lr=10 * recipe.optimiser.lr))


# A title becomes a part of a run's name: letters, digits, spaces and hyphens.
CHANGES: dict[str, Callable[[Recipe], Recipe]] = {
    "without residual connections": of_model(lambda model: replace(model, residual=False)),
    "without normalisation": of_model(lambda model: replace(model, norm=replace(model.norm, kind="none"))),
    "normalisation after each sublayer": of_model(norms_after),
    "scores not divided by sqrt d_head": of_model(without_scale),
    "without positions": with_positions("none"),
    "learned positions": with_positions("learned"),
    "sinusoidal positions": with_positions("sinusoidal"),
    "rotary positions": with_positions("rotary"),
    "ALiBi positions": with_positions("alibi"),
    "one block": of_model(one_block),
    "one head": of_model(lambda model: change_attention(model, heads=1, kv_heads=None)),
    "attention without MLPs": of_model(lambda model: change_stacks(model, mlp=None)),
    "without warm-up": not_warmed_up,
    "ten times the learning rate": ten_times,
    "without weight decay": not_decayed,
}
