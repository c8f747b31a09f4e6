"""The past of a new probe: a frame of each snapshot, made by who reads the run and kept beside the trainer's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from safetensors.torch import load_file

from engine.checkpoints import Checkpoint, load
from engine.training.atomic import replacing
from engine.training.folder import RunFolder
from engine.training.frames import FOLDER, Frame, packed, read_frames
from engine.training.look import look
from engine.training.probe import Probe
from engine.training.question import question
from engine.training.recipe_file import read_recipe


def frame_files(folder: Path | str, probe: Probe) -> tuple[Path, Path]:
    """What the run's process saw of the probe, and what was made of its snapshots later."""
    place = RunFolder(folder).path / FOLDER
    return place / f"{probe.digest}.bin", place / f"{probe.digest}.past.bin"


def frames_of_snapshots(folder: Path | str, probe: Probe) -> Iterator[Frame]:
    """A frame for each snapshot that has none of this probe yet, in the order of the steps, as they are made.

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
            if refilled(checkpoint, run.snapshot(step)):
                made.append(look(checkpoint, asked, step, kept=True))
                yield made[-1]
    finally:
        keep(past, made, run)


def refilled(checkpoint: Checkpoint, weights: Path) -> bool:
    """Whether the model now has these weights; False where the run forgot them in the meantime."""
    try:
        checkpoint.model.load_state_dict(load_file(weights))
    except FileNotFoundError:
        return False
    return True


def keep(past: Path, made: list[Frame], run: RunFolder) -> None:
    """Together with what was there, without steps whose snapshot is gone."""
    steps = set(run.snapshot_steps())
    frames = {one.step: one for one in (*read_frames(past).frames, *made) if one.step in steps}
    if not made:
        return
    past.parent.mkdir(exist_ok=True)
    with replacing(past) as partial:
        partial.write_bytes(b"".join(packed(replace(frames[step], kept=True)) for step in sorted(frames)))
