"""What the page about training is told: how a run is doing, the table of all runs, and what can be taken away."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from engine.checkpoints import load
from engine.tokenizers import Tokenizer
from engine.training import Recipe, control, export, trash
from engine.training.folder import RunFolder
from engine.training.link import packed
from engine.training.live import Update
from engine.training.probe import Probe, read_probe
from engine.training.question import question
from engine.training.queue import Queue
from engine.training.recipe_file import read_recipe, write_recipe
from engine.training.runs import runs
from engine.training.snapshot_frames import frames_of_snapshots
from engine.training.snapshots import weights
from pages.controls.train.session import RECORDED, Looked, Query, Reader, Session, folder_of, named, number, own
from views.core.payload import pack
from views.train.train import attentions, curve, told

AT_ONCE = 1.5  # seconds that one answer may take for the past of a new probe
PLACES = 64  # up to which the browser has been told, that are remembered


def live(session: Session, query: Query) -> bytes:
    """What is new of a run since the place `cursor`, everything where that is not known any more."""
    run = named(query)
    reader = session.reader(run)
    catch_up(reader)
    cursor = query.get("cursor")
    kept, since = session.places.get(cursor if isinstance(cursor, int) else 0, ("", None))
    update = reader.live.since(since if kept == run else None)
    session.turn += 1
    session.places[session.turn] = run, update.cursor
    while len(session.places) > PLACES:
        session.places.popitem(last=False)
    looked = looked_at(reader, update)
    place = {"cursor": session.turn, "fresh": since is None or kept != run}
    return told(update, place | known(run, reader, update, looked), tokenizer_of(looked))


def known(run: str, reader: Reader, update: Update, looked: Looked | None) -> dict[str, Any]:
    """What the browser is told of a run each time."""
    folder = reader.live.run
    recipe = recipe_of(folder.recipe, folder.recipe.stat().st_mtime_ns)
    return {
        "run": run,
        "status": status(folder, update, reader, recipe.schedule.steps),
        "attentions": attentions(recipe.model),
        "task": {"data": recipe.data.kind, "objective": recipe.objective.kind, "about": recipe.about},
        "lr": recipe.optimiser.lr,
        "recipe": digest(recipe),
        "probe": probe(looked, update),
        "pictures": pictures(recipe),
    }


def tokenizer_of(looked: Looked | None) -> Tokenizer | None:
    return None if looked is None or looked.checkpoint is None else looked.checkpoint.tokenizer


def catch_up(reader: Reader) -> None:
    """Some more frames of the past of a probe that was given late."""
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


def looked_at(reader: Reader, update: Update) -> Looked | None:
    """The probe in the model's own tokens, found once."""
    given = update.cursor.probe
    if given is None:
        return None
    if reader.looked is None or reader.looked.probe != given or reader.looked.checkpoint is None:
        reader.looked = look_at(reader.live.run, given)
    return reader.looked


def look_at(run: RunFolder, given: Probe) -> Looked:
    file = newest(run)
    if file is None:
        return Looked(given)
    checkpoint = load(file)
    try:
        return Looked(given, checkpoint, question(given, checkpoint, read_recipe(run.recipe)))
    except ValueError as error:
        return Looked(given, checkpoint, error=str(error))


def newest(run: RunFolder) -> Path | None:
    if run.path == RECORDED:
        steps = run.snapshot_steps()
        return run.snapshot(steps[-1]) if steps else None
    return weights(run.path.name, run.path.parent)


@lru_cache(maxsize=64)
def recipe_of(file: Path, stamp: int) -> Recipe:
    """Read once as long as `stamp`, the time of its last change, is the same."""
    return read_recipe(file)


def digest(recipe: Recipe) -> str:
    """The same for recipes that train the same, whatever they say about it."""
    return hashlib.sha256(write_recipe(replace(recipe, about="")).encode()).hexdigest()[:16]


def status(folder: RunFolder, update: Update, reader: Reader, steps: int) -> dict[str, Any]:
    found = update.status
    waiting = Queue(folder.path.parent).waiting() if found is not None and found.state == "queued" else []
    order = control.read_order(folder.control)
    return {
        "state": "new" if found is None else found.state,
        "step": 0 if found is None else found.step,
        "steps": steps if found is None or not found.steps else found.steps,
        "error": "" if found is None else found.error,
        "cause": "" if found is None else found.cause,
        "resumable": found is not None and found.can_resume,
        "chosen": [] if found is None else list(found.chosen),
        "resting": resting(folder) if waiting else [],
        "position": waiting.index(folder.path.name) + 1 if folder.path.name in waiting else 0,
        "seconds_left": update.seconds_left,
        "lr": order.lr,
        "snapshots": folder.snapshot_steps(),
        "catching_up": reader.past is not None,
        "recorded": folder.path == RECORDED,
    }


def resting(folder: RunFolder) -> list[str]:
    """The names of runs that are paused: each keeps the place of one that trains."""
    return [one.name for one in runs(folder.path.parent) if one.state == "paused"]


def pictures(recipe: Recipe) -> int:
    """How many are held out, of which one is looked at; 0 where none is."""
    return 0 if recipe.data.digits is None else held_out_pictures(recipe.data.digits.split)


@lru_cache(maxsize=4)
def held_out_pictures(seed: int) -> int:
    from engine.data.digits import split  # scikit-learn is slow to import

    return len(split(seed).test_labels)


def probe(looked: Looked | None, update: Update) -> dict[str, Any] | None:
    """The example in the model's own tokens."""
    if looked is None:
        return None
    asked, checkpoint = looked.question, looked.checkpoint
    said: dict[str, Any] = asdict(looked.probe) | {"error": looked.error, "pieces": [], "target_pieces": []}
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


def overlaid(session: Session, query: Query) -> bytes:
    return curve(session.reader(named(query)).live.since().metrics)


def table(session: Session, query: Query) -> bytes:
    rows = [
        {name: sayable(value) for name, value in asdict(row).items() if name != "path"}
        | {"snapshots": RunFolder(row.path).snapshot_steps()}
        for row in runs()
    ]
    gone = trash.deleted()
    return pack({"runs": rows, "deleted": [{"token": one.token, "name": one.name} for one in gone[:1]]}, {})


def sayable(value: Any) -> Any:
    """As JSON has it: nothing for a number that is none."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def command(session: Session, query: Query) -> bytes:
    run = own(query)
    recipe = read_recipe(RunFolder(folder_of(run)).recipe)
    try:
        link, sentence = packed(recipe), ""
    except ValueError as error:
        link, sentence = "", str(error)
    said = {"command": export.command(run), "link": link, "no_link": sentence, "recipe": write_recipe(recipe)}
    return pack(said, {})


def exported(session: Session, query: Query) -> bytes:
    run, what = own(query), query.get("what")
    if what == "csv":
        name, data = f"{run}.csv", export.table(run).encode()
    elif what == "tensorboard":
        name, data = export.tensorboard(run)
    elif what == "recipe":
        name, data = f"{run}.toml", RunFolder(folder_of(run)).recipe.read_bytes()
    elif what == "folder":
        step = None if query.get("step") is None else int(number(query, "step"))
        with TemporaryDirectory(prefix="loupe-") as made:
            file = export.checkpoint(run, step, Path(made))
            name, data = file.name, file.read_bytes()
    else:
        raise ValueError(f"what is exported must be folder, tensorboard, csv or recipe, got {what!r}.")
    return pack({"file": name}, {"file": np.frombuffer(data, np.uint8)})


READING: dict[object, Callable[[Session, Query], bytes]] = {
    "live": live, "curve": overlaid, "runs": table, "command": command, "export": exported,
}  # fmt: skip
