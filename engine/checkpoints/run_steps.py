"""Steps of training runs whose weights were kept: in snapshots/ those of some steps, in latest/ the newest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from engine.checkpoints.weights import safetensors_header
from engine.json_text import parse_json

RUN = "run:"  # before a run's name, where it is that of a model
STEP = "@"  # between a run's name and the step
LISTED = 8  # names in a sentence
NUMBER = re.compile(r"\d{1,12}", re.ASCII)
SNAPSHOT = re.compile(r"step-(\d{7,})\.safetensors", re.ASCII)
PROGRESS = "loupe.training"  # the key of the metadata that says how far the weights in latest/ are


def run_folders(folder: Path | str) -> list[Path]:
    """The run directories in `folder`, by name; those whose names begin with a dot are no runs."""
    place = Path(folder)
    found = place.iterdir() if place.is_dir() else ()
    return sorted(path for path in found if not path.name.startswith(".") and path.is_dir())


def snapshot(run: Path, step: int) -> Path:
    return run / "snapshots" / f"step-{step:07d}.safetensors"


def latest(run: Path) -> Path:
    return run / "latest" / "model.safetensors"


def run_of(file: Path) -> Path | None:
    """The run directory of a weights file that is one of its steps; None for any other file."""
    run = file.parent.parent
    is_step = file in (latest(run), run / "snapshots" / file.name) and (run / "recipe.toml").is_file()
    return run if is_step else None


def snapshot_steps(run: Path) -> list[int]:
    """Steps of the snapshots, in order. A file of another name is none of them."""
    named = (SNAPSHOT.fullmatch(file.name) for file in (run / "snapshots").glob("step-*.safetensors"))
    return sorted(int(match[1]) for match in named if match)


def latest_step(run: Path) -> int | None:
    """Step of latest/. None where there is none, or it is damaged."""
    try:
        metadata = safetensors_header(latest(run)).get("__metadata__", {})
        return int(parse_json(metadata[PROGRESS])["step"])
    except (ValueError, OSError, LookupError):
        return None


def split_name(named: str) -> tuple[str, str | None]:
    """Run and step of "run:NAME@STEP", in which "run:" may be left out; the step of "NAME", which is the last that this
    run kept, is None. A space may follow "run:"."""
    name, at, step = named.removeprefix(RUN).strip(" ").partition(STEP)
    return name, step if at else None


def name_step(run: str, step: int | None = None) -> str:
    """Name of a model that is a step of a run, as `split_name` reads it."""
    return f"{RUN}{run}" if step is None else f"{RUN}{run}{STEP}{step}"


def kept_steps(run: Path) -> list[int]:
    """Steps whose weights a run has, in order: those of the snapshots and that of latest/."""
    reached = latest_step(run)
    return sorted({*snapshot_steps(run), *([] if reached is None else [reached])})


def weights(named: str, folder: Path | str) -> Path | None:
    """The weights file of a run's step, named as `split_name` reads it. None where there is none."""
    name, step = split_name(named)
    if name not in {run.name for run in run_folders(folder)} or (step is not None and not NUMBER.fullmatch(step)):
        return None
    run = Path(folder) / name
    kept = kept_steps(run)
    wanted = kept[-1] if step is None and kept else int(step or -1)
    if wanted not in kept:
        return None
    newest = latest_step(run) == wanted and (step is None or wanted not in snapshot_steps(run))
    return latest(run) if newest else snapshot(run, wanted)


def absent(named: str, folder: Path | str) -> str:
    """Why `weights` finds none, a part of a sentence."""
    name, step = split_name(named)
    here = [run.name for run in run_folders(folder)]
    if name not in here:
        others = f"those here are {list_names(here)}" if here else "none is here"
        return f"there is no run called {name[:80]!r}; {others}"
    kept = kept_steps(Path(folder) / name)
    if not kept:
        return f"the run {name!r} has kept no weights yet"
    if step is None or not NUMBER.fullmatch(step):
        return f"a step of the run {name!r} must be a whole number, got {(step or '')[:20]!r}"
    near = [one for one in kept if one < int(step)][-1:] + [one for one in kept if one > int(step)][:1]
    told = " and ".join(f"{one:,}" for one in near)
    return f"the run {name!r} kept no weights of step {int(step):,}; the nearest that it kept are those of {told}"


def list_names(names: Sequence[str]) -> str:
    """Some of them, and how many more there are."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more:,} more" if more > 0 else "")
