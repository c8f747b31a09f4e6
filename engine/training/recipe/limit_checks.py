"""Checks that a training can start: within the limits of engine.budget, on this machine, from its base, and
with room on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.budget import budget
from engine.checkpoints.assemble import build_without_memory, list_parameters
from engine.model.layers.lora import new_adapter
from engine.training.base.base import OF_DATA, check_base, check_tokenizer
from engine.training.launch.machine import Abilities, plan
from engine.training.objectives import find_objective
from engine.training.recipe.parts import count_learning, learning_names
from engine.training.recipe.recipe import Recipe
from engine.training.run.folder import size
from engine.training.run.trash import empty

COPIES = 5  # of the weights beside the snapshots: latest/ with AdamW's two moments, one more while it is written, and
# the finished checkpoint
NUMBER = 4  # bytes
MIB = 2**20


def check_start(recipe: Recipe, able: Abilities | None = None) -> None:
    """Raises ValueError where a training cannot start, as far as that is known without its data; on a computer that is
    `able`, which is this one where nothing is given."""
    check_recipe(recipe)
    if (need := disk_need(recipe)) > budget.runs_disk:
        raise ValueError(
            f"a run may take {budget.runs_disk // MIB:,} MiB, and this one's snapshots need {need / MIB:,.1f}; keep "
            "fewer by log.snapshots, or raise LOUPE_RUNS_DISK_MIB where Loupe is started."
        )
    plan(recipe.machine, able or Abilities.of_this_machine())
    if recipe.train.parts == "lora":
        new_adapter(build_without_memory(recipe.model), recipe.lora.targets, recipe.lora.rank)
    elif recipe.train.parts != "all":
        learning_names(list(list_parameters(recipe.model)), recipe.train.parts)
    if recipe.base:
        check_base(recipe.base, recipe.model, OF_DATA)
        check_tokenizer(recipe)
    if (check := find_objective(recipe.objective.kind).check_start) is not None:
        check(recipe)


def check_recipe(recipe: Recipe) -> None:
    """Raises ValueError where a training is larger than is allowed here."""
    model = recipe.model
    deepest = max(model.layers, model.encoder.layers if model.encoder is not None else 0)
    wanted = [
        ("schedule.steps", recipe.schedule.steps, "STEPS", budget.max_steps),
        ("model.layers", deepest, "LAYERS", budget.max_layers),
    ]
    if deepest <= budget.max_layers:  # more of them would take long to count
        wanted.append(("the model's parameters", recipe_parameters(recipe), "PARAMETERS", budget.max_parameters))
    for what, value, name, most in wanted:
        if value > most:
            raise ValueError(
                f"{what} must be at most {most:,} here, got {value:,}; lower it, or raise LOUPE_MAX_{name} where Loupe "
                "is started."
            )


def check_room(recipes: Sequence[Recipe], runs: Path) -> None:
    """Makes room where deleted runs take it. Raises ValueError where what these runs will keep does not fit."""
    need = sum(map(disk_need, recipes))
    taken = size(runs)
    if taken + need > budget.runs_disk:
        taken = size(runs) - empty(runs, most=max(0, taken + need - budget.runs_disk))
    if taken + need > budget.runs_disk:
        raise ValueError(
            f"all runs together may take {budget.runs_disk // MIB:,} MiB, and take {taken / MIB:,.0f} where "
            f"{'this one needs' if len(recipes) == 1 else 'these need'} {need / MIB:,.1f} more; "
            "delete runs, keep fewer snapshots, or raise LOUPE_RUNS_DISK_MIB."
        )


def disk_need(recipe: Recipe) -> int:
    """Bytes that a run will keep; the snapshots of an adapter hold the adapter alone."""
    whole = recipe_parameters(recipe)
    each = count_learning(recipe, None)[0] if recipe.train.parts == "lora" else whole
    return NUMBER * (whole * COPIES + each * min(recipe.log.snapshots, recipe.schedule.steps + 1))


def recipe_parameters(recipe: Recipe) -> int:
    """Number of parameters as far as the recipe tells: without the vocabulary where its size depends on the data."""
    told = recipe.data.tokenizer.vocab_size
    model = recipe.model if told is None else replace(recipe.model, vocab_size=max(told, recipe.model.vocab_size))
    return sum(parameter.numel() for parameter in list_parameters(model).values())
