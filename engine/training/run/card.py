"""The card of a finished model: where it comes from and how good it is, for card.json and the person who opens it."""

from __future__ import annotations

import math
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from engine.checkpoints.adapters.config import name_base
from engine.data.published import PREFIX, describe
from engine.training.objectives import find_objective
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.link import FILES
from engine.training.run.folder import RunFolder
from engine.training.trainer import Trainer

PERPLEXED = "nats a token"  # the unit of a loss of which the exponential is the perplexity


def card(trainer: Trainer, run: RunFolder) -> dict[str, Any]:
    """`loss` and `accuracy`, and what else the objective counts, in training (the last logged step) and on held-out
    data, with the perplexity where the loss is the mean over tokens; `measured` is what is measured once, after
    training, and also on held-out data.
    """
    recipe, made = trainer.recipe, trainer.progress
    objective, held_out = find_objective(recipe.objective.kind), trainer.measure()
    del held_out["targets"]
    last: dict[str, Any] = next((line for line in reversed(run.read_metrics()) if line["loss"] is not None), {})
    training = {"loss": last.get("loss"), "accuracy": last.get("accuracy"), **last.get("also", {})}
    scores = {name: {"training": training.get(name), "held_out": value} for name, value in held_out.items()}
    if objective.unit == PERPLEXED:
        scores["perplexity"] = {part: None if loss is None else math.exp(loss) for part, loss in scores["loss"].items()}
    with trainer.evaluation_mode():
        measured, sample = objective.measure(trainer), objective.sample(trainer)
    return {
        "name": run.path.name,
        "about": recipe.about,
        "objective": objective.name,
        "data": describe_data(recipe.data),
        **({"corpora": corpora} if (corpora := describe_corpora(recipe.data)) else {}),
        "parameters": sum(p.numel() for p in trainer.result.parameters()),
        "steps": made.step,
        **({"base": describe_base(recipe.base)} if recipe.base else {}),
        "tokens": made.tokens,
        **scores,
        "loss": {**scores["loss"], "unit": objective.unit},
        "measured": measured,
        "seconds": round(made.seconds, 1),
        "device": device_name(trainer.device),
        "sample": sample,
        "seed": recipe.seed,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "trained": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def describe_data(data: Data) -> dict[str, Any]:
    """The source that was used, files by their names alone, and the tokenizer of its texts."""
    found = {name: value for name, value in data.tables.items() if name != "tokenizer" or not data.table.pictures}
    for table in found.values():
        table |= {name: Path(table[name]).name for name in FILES if isinstance(table.get(name), str) and table[name]}
    return found


def describe_corpora(data: Data) -> list[dict[str, Any]]:
    """The files of published texts that were learned from."""
    named = vars(data.table).values()
    return [describe(file) for file in named if isinstance(file, str) and file.startswith(PREFIX)]


def describe_base(name: str) -> str:
    """Name of a base, without its place on this machine."""
    public = name_base(name) or ""
    return Path(public).name if Path(public).is_absolute() else name


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'' if threads == 1 else 's'}"
