"""latest/: everything that continues a run bit for bit.

    model.safetensors               the weights, self-describing; its metadata says at which step they are
    optimiser-0000120.safetensors   the optimiser's memory at that step

The optimiser's file is written first and the model's renamed into place last, so that a kill at any moment leaves a
whole pair. Random draws and the place in the data need no file: both follow from the recipe's seed and the step.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.checkpoints.run_steps import PROGRESS
from engine.checkpoints.save import CONFIG
from engine.json_text import parse_json
from engine.model.transformer import Transformer
from engine.training.base.adapter import held_beside, load_held
from engine.training.recipe.optimiser import Hold, Optimisers, load_optimiser_state
from engine.training.run.atomic import replace_atomically


@dataclass(frozen=True)
class Progress:
    """`seconds` were spent on updates, over all starts of the run; `scaler` is float16's loss scale and its age.

    `fresh`: the optimiser begins here with no memory, since the run was forked from weights alone. `threads`: with how
    many it was computed; 0 where that is not known. `learner`: numbers that the objective has adapted.
    """

    step: int = 0
    seed: int = 0
    tokens: int = 0
    seconds: float = 0.0
    scaler: dict[str, Any] = field(default_factory=dict)
    fresh: bool = False
    threads: int = 0
    learner: dict[str, float] = field(default_factory=dict)


def optimiser_file(folder: Path, step: int) -> Path:
    return folder / f"optimiser-{step:07d}.safetensors"


def save_latest(folder: Path, model: Transformer, memory: dict[str, Tensor], progress: Progress) -> None:
    """`memory` is what a run needs beside the weights to go on as if it had never stopped."""
    kept = optimiser_file(folder, progress.step)
    with replace_atomically(kept) as partial:
        save_file(memory, partial)
    metadata = {CONFIG: json.dumps(model.config.to_dict()), PROGRESS: json.dumps(asdict(progress))}
    with replace_atomically(folder / "model.safetensors") as partial:
        save_file({n: t.detach().contiguous() for n, t in model.state_dict().items()}, partial, metadata)
    for older in folder.glob("optimiser-*.safetensors"):
        if older != kept:
            older.unlink()


def read_progress(folder: Path) -> Progress | None:
    """None where no step was saved yet."""
    file = folder / "model.safetensors"
    if not file.exists():
        return None
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata() or {}
    if PROGRESS not in metadata:
        raise ValueError(f"{file} must be written by a training run, and says nothing of one; move it away.")
    said = parse_json(metadata[PROGRESS])
    if (beta := said.pop("beta", None)) is not None:  # as it was kept before other numbers were
        said["learner"] = {"beta": beta}
    return Progress(**said)


def fill_weights(model: Transformer, file: Path, hold: Hold, strict: bool = True) -> None:
    own, read = model.state_dict(), load_file(file)
    model.load_state_dict({n: hold(t, own[n]) if n in own else t for n, t in read.items()}, strict=strict)


def load_latest(folder: Path, model: Transformer, optimiser: Optimisers, hold: Hold) -> Progress | None:
    """Fills both and returns how far they are; None, and nothing touched, where no step was saved yet."""
    progress = read_progress(folder)
    if progress is None:
        return None
    held = bool(held_beside(model))
    fill_weights(model, folder / "model.safetensors", hold, strict=not held)
    kept = optimiser_file(folder, progress.step)
    if progress.fresh:  # of a snapshot that holds an adapter alone that is known apart
        load_held(model, load_file(kept) if kept.exists() else {})
        return replace(progress, fresh=False)
    memory = load_file(kept) if progress.step or held else {}
    load_held(model, memory)
    if progress.step:  # before the first update it remembers nothing
        load_optimiser_state(model, optimiser, memory, hold)
    return progress
