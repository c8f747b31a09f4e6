"""The run directory: where each thing lies. It is all that a training and who watches it share."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from engine.budget import budget
from engine.checkpoints import run_steps
from engine.checkpoints.folder_settings import LABELS, FolderSettings
from engine.checkpoints.generation_config import NAME as GENERATION
from engine.json_text import parse_json
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import read_recipe, write_recipe
from engine.training.run.atomic import read_json, replace_atomically, write_json

NUMBERS = ("seconds", "loss", "accuracy", "held_out_loss", "held_out_accuracy")  # of a logged step
OWN = ({"recipe.toml"}, {"status.json", "metrics.jsonl"})  # files of a run alone: the one, or both others


def is_run(names: Collection[str]) -> bool:
    """Tells whether a folder in which these names stand is a run's, be it a damaged one."""
    return any(own <= set(names) for own in OWN)


def runs_folder(folder: Path | str | None) -> Path:
    """The folder that is given, or that of the budget."""
    return Path(budget.runs_folder if folder is None else folder)


def list_runs(folder: Path | str) -> list[Path]:
    """The run directories in `folder`, by name; whatever else lies there is none."""
    return [path for path in run_steps.run_folders(folder) if is_run(list_names(path))]


def list_names(path: Path) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:  # no folder, or taken away meanwhile
        return []


def size(folder: Path) -> int:
    """Bytes of all files in it and below; a file that several names lead to counts once."""
    seen: dict[tuple[int, int], int] = {}
    for place, _, files in os.walk(folder):
        for file in files:
            try:
                stat = os.lstat(os.path.join(place, file))
            except FileNotFoundError:  # replaced meanwhile
                continue
            seen[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(seen.values())


def read_lines(file: Path) -> list[dict[str, Any]]:
    """A table for each step that was logged. Raises ValueError for a damaged line."""
    try:
        lines = file.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [read_line(line, file.name) for line in lines]


def read_line(line: bytes, name: str) -> dict[str, Any]:
    """One of `read_lines`, of the file of that name."""
    try:
        found = parse_json(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not is_step(found):
        told = line[:60].decode(errors="replace")
        raise ValueError(f"{name} must have one logged step a line, and has {told!r}; take that line out.")
    return found


def is_step(line: Mapping[str, Any]) -> bool:
    """Tells whether what every reader counts on is of its kind."""
    if "samples" in line:
        samples = line["samples"]
        known = isinstance(samples, list) and all(isinstance(one, dict) and "prompt" in one for one in samples)
    else:
        known = line.get("seconds") is not None and isinstance(line.get("also", {}), dict)
    numbers = all(isinstance(line.get(name), int | float | None) for name in NUMBERS)
    return known and numbers and isinstance(line.get("step"), int)


class RunFolder:
    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.recipe = self.path / "recipe.toml"
        self.status = self.path / "status.json"
        self.metrics = self.path / "metrics.jsonl"
        self.samples = self.path / "samples.jsonl"  # answers to the same prompts at each logged step
        self.control = self.path / "control.json"
        self.snapshots = self.path / "snapshots"
        self.latest = self.path / "latest"
        self.weights = run_steps.latest(self.path)
        self.data = self.path / "data"
        self.checkpoint = self.path / "checkpoint"
        self.said = self.path / "log.txt"  # standard output and errors of its processes
        self.owner = self.path / "owner.txt"  # hash of the visitor who started it in a browser
        self.origin = self.path / "origin.json"  # when it was made, and from which run it was forked

    def snapshot(self, step: int) -> Path:
        return run_steps.snapshot(self.path, step)

    def snapshot_steps(self) -> list[int]:
        return run_steps.snapshot_steps(self.path)

    def adopt(self, recipe: Recipe) -> None:
        """Make this the folder of `recipe`. Raises ValueError where it is that of a run which learns something else.

        How long to train, what to log and on which machine may change from one start to the next.
        """
        if self.recipe.exists():
            theirs = read_recipe(self.recipe)
            same = replace(theirs, schedule=recipe.schedule, log=recipe.log, machine=recipe.machine, about=recipe.about)
            if same != recipe:
                other = [f.name for f in fields(Recipe) if getattr(same, f.name) != getattr(recipe, f.name)]
                raise ValueError(
                    f"{self.path} must be new or hold a run of this recipe, got one whose {', '.join(other)} differs; "
                    "choose another folder, or delete that one."
                )
        for folder in (self.path, self.snapshots, self.latest, self.data):
            folder.mkdir(parents=True, exist_ok=True)
        with replace_atomically(self.recipe) as partial:
            partial.write_text(write_recipe(recipe), encoding="utf-8")

    def take_settings(self, base: FolderSettings) -> None:
        """Keep what the files of a base say beside its weights, for whoever opens a snapshot and for what is saved."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "config.json", {name: value for name, value in base.config.items() if name != "config"})
        if base.generation is not None:
            write_json(self.path / GENERATION, dict(base.generation))

    @property
    def settings(self) -> FolderSettings:
        return FolderSettings(read_json(self.path / "config.json") or {}, read_json(self.path / GENERATION))

    def read_labels(self) -> tuple[str, ...]:
        """Names of the classes of the base, or of what has been learned since, in the order of the head's rows."""
        named = self.settings.config.get("id2label")
        if not isinstance(named, dict) or not all(number.isdecimal() for number in named):
            return ()
        return tuple(str(named[number]) for number in sorted(named, key=int))

    def describe(self, end_ids: Sequence[int], labels: Sequence[str]) -> None:
        """Facts about the data that no tokenizer says, where `engine.load` looks for it beside a snapshot."""
        told = dict(self.settings.config)
        if end_ids:
            told["eos_token_id"] = list(end_ids)
        named = {str(number): label for number, label in enumerate(labels)}
        if labels and told.get("id2label") != named:
            told = {name: value for name, value in told.items() if name not in LABELS} | {"id2label": named}
        if told:
            write_json(self.path / "config.json", told)

    def log(self, line: dict[str, Any]) -> None:
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def log_samples(self, step: int, samples: list[dict[str, Any]]) -> None:
        with self.samples.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "samples": samples}) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """Reads one dictionary for each logged step; a last line that is still being written is left out."""
        return read_lines(self.metrics)

    def read_samples(self) -> list[dict[str, Any]]:
        """Reads "step" and "samples" of each step that has some, each sample a prompt, its answer and its scores."""
        return read_lines(self.samples)

    def rewind(self, step: int) -> None:
        """Forget what was logged and kept after `step`: the run goes on from there."""
        for file in (self.metrics, self.samples):
            lines = read_lines(file)
            kept = [line for line in lines if line["step"] <= step]
            if file == self.metrics or kept != lines:
                with replace_atomically(file) as partial:
                    partial.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        for later in self.snapshot_steps():
            if later > step:
                self.snapshot(later).unlink()
