"""A run that begins where another was, and a run begun again from its first step."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from shutil import copy2
from typing import Any

from safetensors.torch import save_file

from engine.checkpoints.adapter_snapshot import BESIDE, merge_learned, read_matrices
from engine.checkpoints.load import read_frozen
from engine.checkpoints.run_steps import PROGRESS, kept_steps, latest_step
from engine.checkpoints.save import CONFIG
from engine.checkpoints.weights import open_weights
from engine.json_text import parse_json
from engine.model.from_dict import build
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.atomic import explain_closed_folder
from engine.training.run.folder import RunFolder, runs_folder
from engine.training.run.latest import Progress, optimiser_file, read_progress
from engine.training.run.names import existing_run
from engine.training.run.origin import Origin, make, read_origin
from engine.training.run.status import Status, write_status
from engine.training.run.trash import at_rest, delete

OF_A_START = (
    "status.json", "control.json", "origin.json", "recipe.toml", "log.txt", "marks.json", "owner.txt", "job.json"
)  # fmt: skip
FIXED = ("model", "data", "seed", "split", "base")  # a fork goes on with weights, and the ids its texts were cut into
TRIES = 3


@explain_closed_folder()
def fork(
    name: str, step: int, new: str, changes: Mapping[str, Any] | None = None, folder: Path | str | None = None
) -> Path:
    """A new run that goes on from `step` of another, whose past it keeps; it is at rest, and a launcher resumes it.

    `changes` are values by the recipe's dotted keys, such as {"optimiser.lr": 1e-4}. From the newest step it goes on
    with the optimiser's memory: without changes to the weights that the other run comes to, bit for bit. From an
    earlier one, of which only the weights are left, the optimiser begins anew, and `about` says so.

    Raises ValueError for a step that is not kept, and for changes that the weights or the data do not allow.
    """
    place = runs_folder(folder)
    parent = RunFolder(existing_run(name, place))
    whole = step > 0 and step == latest_step(parent.path)
    if not whole and step not in parent.snapshot_steps():
        raise ValueError(f"{name} must have kept step {step:,}; it has {_steps_on_disk(parent)}. Choose one of these.")
    recipe = apply_changes(read_recipe(parent.recipe), changes or {})
    if step >= recipe.schedule.steps:
        raise ValueError(
            f"schedule.steps must be above {step:,} for a fork from there to learn anything, got "
            f"{recipe.schedule.steps:,}; give more."
        )
    written = tuple(f"{key}={json.dumps(value)}" for key, value in (changes or {}).items())
    origin = Origin(run=parent.path.name, step=step, memory=whole or not step, changes=written)
    recipe = replace(recipe, about=f"{describe_origin(origin)} {recipe.about}".strip())

    def fill(run: RunFolder) -> None:
        bring(parent, run)
        keep_until(parent, run, step)
        if whole:
            copy_latest(parent, run, step)
        elif step:
            begin_from(parent, run, step, recipe.seed)
        write_status(run.status, Status("stopped", step, recipe.schedule.steps))

    return make(recipe, new, place, origin, fill)


def describe_origin(origin: Origin) -> str:
    """The sentence in `about`; empty for a run that is no fork."""
    memory = "" if origin.memory else ", with the optimiser's memory begun anew"
    return f"Forked from {origin.run} at step {origin.step:,}{memory}." if origin.run else ""


@explain_closed_folder()
def reset(name: str, folder: Path | str | None = None) -> str:
    """The run of this recipe and seed, at step 0 again and at rest. What it was can be had back: returns the token
    for `undo_delete`. Raises ValueError while it trains."""
    place = runs_folder(folder)
    old = RunFolder(existing_run(name, place))
    at_rest(old.path)
    recipe = read_recipe(old.recipe)
    recipe = replace(recipe, about=recipe.about.removeprefix(describe_origin(read_origin(old))).strip())
    origin = read_origin(old)
    kept = replace(origin, created=time.time()) if origin.search else Origin()
    made = make(recipe, name, place, kept, lambda run: bring(old, run))
    token = delete(name, place)
    os.rename(made, old.path)
    return token


def apply_changes(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """Raises ValueError for a key that is none, or that a fork cannot change, and for a value that does not fit."""
    free = [one.name for one in fields(Recipe) if one.name not in FIXED and one.name != "about"]
    values: dict[str, dict[str, Any]] = {}
    about = changes.get("about", recipe.about)
    for key, value in changes.items():
        section, _, option = key.partition(".")
        if key == "about":
            continue
        if section not in free or not option:
            raise ValueError(f"a fork can change {', '.join(f'{one}.*' for one in free)} and about, got {key}.")
        values.setdefault(section, asdict(getattr(recipe, section)))[option] = value
    parts = {name: build(type(getattr(recipe, name)), table, name) for name, table in values.items()}
    return replace(recipe, about=str(about), **parts)


def bring(parent: RunFolder, run: RunFolder) -> None:
    """The tokenizer or processor, what the person watches, and the data as it was cut."""
    for file in parent.path.iterdir():
        if file.is_file() and file.suffix == ".json" and file.name not in OF_A_START:
            copy2(file, run.path / file.name)
    for file in parent.data.glob("*"):
        share(file, run.data / file.name)


def keep_until(parent: RunFolder, run: RunFolder, step: int) -> None:
    """The curves and the snapshots up to there."""
    for file in parent.path.glob("*.jsonl"):
        lines = [line for line in _whole_lines(file) if parse_json(line)["step"] <= step]
        (run.path / file.name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for kept in parent.snapshot_steps():
        if kept <= step:
            share(parent.snapshot(kept), run.snapshot(kept))


def share(file: Path, to: Path) -> None:
    """Links one file under two names, so that a fork takes no room; neither run ever writes into it, only replaces
    it."""
    try:
        os.link(file, to)
    except OSError:  # a disk without such names
        copy2(file, to)


def copy_latest(parent: RunFolder, run: RunFolder, step: int) -> None:
    """Both files of one moment, though the other run may be training."""
    for _ in range(TRIES):
        try:
            for file in [parent.weights, *parent.latest.glob(f"optimiser-{step:07d}.*")]:
                copy2(file, run.latest / file.name)
        except FileNotFoundError:
            continue
        found = read_progress(run.latest)
        if found is not None and found.step == step and list(run.latest.glob("optimiser-*")):
            return
    raise ValueError(f"{parent.path.name} has gone on from step {step:,} meanwhile; pause it, then fork it.")


def begin_from(parent: RunFolder, run: RunFolder, step: int, seed: int) -> None:
    """The weights of a snapshot, with what else is known of that step."""
    at: dict[str, Any] = next((line for line in reversed(parent.read_metrics()) if line["step"] <= step), {})
    before = read_progress(parent.latest) if latest_step(parent.path) is not None else None
    scaler, threads = ({}, 0) if before is None else (before.scaler, before.threads)
    progress = Progress(step, seed, at.get("tokens", 0), at.get("seconds", 0.0), scaler, True, threads)
    learned, frozen = open_weights(parent.snapshot(step)), read_frozen(parent.snapshot(step))
    weights = merge_learned(frozen, learned)
    save_file(weights, run.weights, {CONFIG: learned.metadata[CONFIG], PROGRESS: json.dumps(asdict(progress))})
    held = {name: learned[name] for name in learned if name.partition(".")[0] in BESIDE}
    held |= {weight: frozen[weight].contiguous() for name in read_matrices(learned) if (weight := f"{name}.weight")}
    if held:
        kept = {f"held.{name}": tensor for name, tensor in held.items()}
        save_file(kept, optimiser_file(run.latest, step))


def _steps_on_disk(run: RunFolder) -> str:
    return ", ".join(f"{step:,}" for step in kept_steps(run.path)) or "none"


def _whole_lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]
