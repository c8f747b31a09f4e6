"""How a run is doing, as the page about training is told, and what its model makes of the probe."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from engine.checkpoints import load
from engine.checkpoints.run_steps import weights
from engine.data.digits import split
from engine.data.kinds.digits import Digits
from engine.tokenizers import Tokenizer
from engine.training import Recipe
from engine.training.launch.queue import Queue
from engine.training.probe.probe import Probe, read_probe
from engine.training.probe.question import question
from engine.training.probe.snapshot_frames import frames_of_snapshots
from engine.training.recipe.recipe_file import read_recipe, write_recipe
from engine.training.run import control
from engine.training.run.folder import RunFolder
from engine.training.run.live import Update
from engine.training.run.runs import task
from pages.controls.train.session import ProbeReading, Reader, folder_of, is_recorded
from views.train.train import list_attentions

AT_ONCE = 1.5  # seconds that one answer may take for the past of a new probe


def describe_run(
    run: str, reader: Reader, update: Update, reading: ProbeReading | None, locked: str = ""
) -> dict[str, Any]:
    """Header of every answer about a run: its status, its task, its attentions, its probe. `locked` says why whoever
    looks may not change it."""
    folder = reader.live.run
    recipe = recipe_of(folder.recipe, folder.recipe.stat().st_mtime_ns)
    about = {"data": recipe.data.kind, "objective": recipe.objective.kind, "about": recipe.about, "name": task(recipe)}
    return {
        "run": run,
        "status": describe_status(folder, update, reader, recipe.schedule.steps) | {"locked": locked},
        "attentions": list_attentions(recipe.model),
        "task": about,
        "lr": recipe.optimiser.lr,
        "recipe": digest(recipe),
        "probe": describe_probe(reading, update),
        "pictures": count_pictures(recipe),
    }


def tokenizer_of(reading: ProbeReading | None) -> Tokenizer | None:
    return None if reading is None or reading.checkpoint is None else reading.checkpoint.tokenizer


def catch_up(reader: Reader) -> None:
    """Makes some more frames of the past of a probe that was given late."""
    until = time.monotonic() + AT_ONCE
    while reader.past is not None and time.monotonic() < until:
        if next(reader.past, None) is None:
            reader.past = None
    if reader.past is not None:
        close = getattr(reader.past, "close", None)
        folder, given = reader.live.run.path, read_probe(reader.live.run.path)
        if close is not None:
            close()  # it keeps what it has made
        reader.past = None if given is None else frames_of_snapshots(folder, given)


def probe_of(reader: Reader, update: Update) -> ProbeReading | None:
    """The probe in the model's own tokens, found once."""
    given = update.cursor.probe
    if given is None:
        return None
    if reader.probe is None or reader.probe.probe != given or reader.probe.checkpoint is None:
        reader.probe = look_at(reader.live.run, given)
    return reader.probe


def look_at(run: RunFolder, given: Probe) -> ProbeReading:
    """The probe as the newest weights of a run read it."""
    file = newest_weights(run)
    if file is None:
        return ProbeReading(given)
    checkpoint = None
    try:
        checkpoint = load(file)
        return ProbeReading(given, checkpoint, question(given, checkpoint, read_recipe(run.recipe)))
    except ValueError as error:
        return ProbeReading(given, checkpoint, error=str(error))


def newest_weights(run: RunFolder) -> Path | None:
    if is_recorded(run.path):
        steps = run.snapshot_steps()
        return run.snapshot(steps[-1]) if steps else None
    return weights(run.path.name, run.path.parent)


@lru_cache(maxsize=64)
def recipe_of(file: Path, stamp: int) -> Recipe:
    """Read once as long as `stamp`, the time of its last change, is the same."""
    return read_recipe(file)


def recipe_of_run(name: str) -> Recipe | None:
    """The recipe of a visitor's run; None where there is no such run, or it cannot be read."""
    try:
        file = RunFolder(folder_of(name)).recipe if name else None
        return None if file is None else recipe_of(file, file.stat().st_mtime_ns)
    except (ValueError, OSError):
        return None


def digest(recipe: Recipe) -> str:
    """The same for recipes that train the same, whatever they say about it."""
    return hashlib.sha256(write_recipe(replace(recipe, about="")).encode()).hexdigest()[:16]


def describe_status(folder: RunFolder, update: Update, reader: Reader, steps: int) -> dict[str, Any]:
    found = update.status
    waiting = Queue(folder.path.parent).names() if found is not None and found.state == "queued" else []
    order = control.read_order(folder.control)
    return {
        "state": "new" if found is None else found.state,
        "step": 0 if found is None else found.step,
        "steps": steps if found is None or not found.steps else found.steps,
        "error": "" if found is None else found.error or found.notice,
        "cause": "" if found is None else found.cause,
        "resumable": found is not None and found.can_resume,
        "chosen": [] if found is None else list(found.chosen),
        "where": "" if found is None else found.where,
        "position": waiting.index(folder.path.name) + 1 if folder.path.name in waiting else 0,
        "seconds_left": update.seconds_left,
        "lr": order.lr,
        "snapshots": folder.snapshot_steps(),
        "catching_up": reader.past is not None,
        "recorded": is_recorded(folder.path),
    }


def count_pictures(recipe: Recipe) -> int:
    """Number of held-out pictures, of which one is the probe; 0 where the data are not pictures."""
    data = recipe.data.table
    return held_out_pictures(data.split) if isinstance(data, Digits) else 0


@lru_cache(maxsize=4)
def held_out_pictures(seed: int) -> int:
    return len(split(seed).test_labels)


def describe_probe(reading: ProbeReading | None, update: Update) -> dict[str, Any] | None:
    """The example in the model's own tokens."""
    if reading is None:
        return None
    asked, checkpoint = reading.question, reading.checkpoint
    said: dict[str, Any] = asdict(reading.probe) | {"error": reading.error, "pieces": [], "target_pieces": []}
    if update.answer is not None:
        said["error"] = said["error"] or update.answer.error
    if asked is None or checkpoint is None:
        return said
    said |= {"pieces": asked.pieces, "target_pieces": asked.target_pieces, "labels": checkpoint.labels}
    if not isinstance(asked.read, torch.Tensor):
        return said
    patches = checkpoint.config.embedding.patches
    if patches is not None:  # batch channel height width
        return said | {"pixels": asked.read[0, 0].tolist(), "grid": {"before": patches.before, "side": patches.side}}
    pixels = asked.read[0, 1:]  # behind the start
    side = round(len(pixels) ** 0.5)
    return said | {"pixels": pixels.view(side, side).tolist(), "grid": {"before": 1, "side": side}}
