"""Frames of the snapshots for a new probe, made by a reader of the run and kept beside those of the trainer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.load import read_state
from engine.training.probe.frames import FOLDER, Frame, pack_frame, read_frames
from engine.training.probe.probe import Probe
from engine.training.probe.probe_frame import record_frame
from engine.training.probe.question import question
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.atomic import replace_atomically
from engine.training.run.folder import RunFolder


def frame_files(folder: Path | str, probe: Probe) -> tuple[Path, Path]:
    """Files of the frames of a probe: those that the trainer wrote, and those made of the snapshots later."""
    place = RunFolder(folder).path / FOLDER
    return place / f"{probe.digest}.bin", place / f"{probe.digest}.past.bin"


def frames_of_snapshots(folder: Path | str, probe: Probe) -> Iterator[Frame]:
    """Yields a frame for each snapshot that has none of this probe yet, in the order of the steps.

    They are kept when the generator ends or is left. Raises ValueError for a probe that the model cannot read.
    """
    run = RunFolder(folder)
    ours, past = frame_files(folder, probe)
    there = {one.step for file in (ours, past) for one in read_frames(file).frames}
    missing = [step for step in run.snapshot_steps() if step not in there]
    if not missing:
        return
    made: list[Frame] = []
    try:
        checkpoint = load(run.snapshot(missing[0]))
        asked = question(probe, checkpoint, read_recipe(run.recipe))
        for step in missing:
            if load_weights(checkpoint, run.snapshot(step)):
                made.append(record_frame(checkpoint, asked, step, kept=True))
                yield made[-1]
    finally:
        write_frames(past, made, run)


def load_weights(checkpoint: Checkpoint, weights: Path) -> bool:
    """Loads these weights; returns False where the run has deleted them in the meantime."""
    try:
        checkpoint.model.load_state_dict(read_state(weights))
    except FileNotFoundError:
        return False
    return True


def write_frames(past: Path, frames: list[Frame], run: RunFolder) -> None:
    """Writes `frames` together with those of the file, without steps whose snapshot is gone."""
    steps = set(run.snapshot_steps())
    by_step = {one.step: one for one in (*read_frames(past).frames, *frames) if one.step in steps}
    if not frames:
        return
    past.parent.mkdir(exist_ok=True)
    with replace_atomically(past) as partial:
        partial.write_bytes(b"".join(pack_frame(replace(by_step[step], kept=True)) for step in sorted(by_step)))
