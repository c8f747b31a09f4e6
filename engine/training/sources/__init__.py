"""Where batches come from: one file for each kind of data a recipe can name."""

from __future__ import annotations

from pathlib import Path

from engine.training.base.base import check_tokenizer, settings_of
from engine.training.objectives import find_objective
from engine.training.recipe.recipe import Recipe
from engine.training.run.folder import RunFolder
from engine.training.sources.data_files import check_unchanged
from engine.training.sources.source import Source


def open_source(recipe: Recipe, folder: Path) -> Source:
    """`folder`, the run directory, gets the tokenizer or the processor, and keeps what is slow to make again."""
    if recipe.base and not (folder / "tokenizer.json").exists():
        check_tokenizer(recipe)
    run = RunFolder(folder)
    check_unchanged(recipe.data, run)
    if recipe.base and not run.weights.exists():  # a run that is continued needs its base no more
        run.take_settings(settings_of(recipe.base))
    source = find_objective(recipe.objective.kind).sources[recipe.data.kind](recipe, folder)
    run.describe(source.end_ids, source.labels)
    return source
