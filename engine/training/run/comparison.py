"""A fine-tuned model beside its base on what was held out: of the new data, and of what the base had learned from."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from engine.budget import budget
from engine.checkpoints.locate import SHIPPED, current_name
from engine.checkpoints.run_steps import split_name
from engine.model.transformer import Transformer
from engine.runtime.library import RUN
from engine.scoring.examples import Counts, Examples
from engine.scoring.score import score, shares_of
from engine.training.base.base import PARTS_OF_HEAD
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.folder import RunFolder
from engine.training.sources import Source, open_source

PUBLISHED = ("tales", "sentences")  # fields of a table that name such texts
FEW = 64  # documents of which the held-out part is cut, where a recipe generates them


def open_held_out(recipe: Recipe) -> Source:
    """Source of what a recipe holds out; of generated data with little to train on."""
    table = recipe.data.table
    shorter = {each.name: min(getattr(table, each.name), FEW) for each in fields(table) if each.name == "documents"}
    data = replace(recipe.data, table=replace(table, **shorter))
    with TemporaryDirectory(prefix="loupe-") as made:
        return open_source(replace(recipe, data=data), Path(made))


def without_published(recipe: Recipe) -> Recipe:
    """The recipe without its published texts, which need not be on this machine and take minutes to cut; unchanged
    where it generates nothing beside them."""
    table = recipe.data.table
    published = [each.name for each in fields(table) if each.name in PUBLISHED and getattr(table, each.name)]
    if not published or not getattr(table, "documents", 0):
        return recipe
    left = replace(table, **dict.fromkeys(published, ""))
    return replace(recipe, data=replace(recipe.data, table=left))


def held_out_examples(recipe: Recipe, batches: int) -> list[Examples]:
    """The first held-out batches of a recipe."""
    return list(open_held_out(recipe).held_out(batches))


def texts_of(examples: Examples, most: int) -> list[list[int]]:
    """The first rows of a batch as ids, without what they were filled up with."""
    real = examples.inputs.get("padding")
    rows = zip(examples.ids[:most], [None] * most if real is None else real[:most], strict=False)
    return [(row if kept is None else row[kept.bool()]).tolist() for row, kept in rows]


@torch.no_grad()
def held_out_loss(model: Transformer, examples: list[Examples]) -> float:
    """Mean loss over all targets, in the units of the objective."""
    whole, total = sum((each.counts for each in examples), Counts(0)), 0.0
    for each in examples:
        inputs: dict[str, Any] = dict(each.inputs)
        total += float(score(model.forward_with_pooled(**inputs), each, shares_of(each.counts, whole))["loss"])
    return total


def recipe_of_base(name: str) -> Recipe | None:
    """The recipe that made a base, whose tokenizer cuts the texts again; None where nobody knows it."""
    folder = RunFolder(Path(budget.runs_folder) / split_name(name)[0]) if name.startswith(RUN) else None
    file = folder.recipe if folder else SHIPPED / current_name(name) / "recipe.toml"
    return replace(read_recipe(file), base=name) if file.is_file() else None


def old_model(base: Transformer, result: Transformer) -> Transformer:
    """The base with the body of the result: what the result would do under the base's own head."""
    found, after = copy.deepcopy(base), result.state_dict()
    body = {
        key: after[key]
        for key, value in base.state_dict().items()
        if not key.startswith(PARTS_OF_HEAD) and key in after and after[key].shape == value.shape
    }
    found.load_state_dict(body, strict=False)
    return found.eval()
