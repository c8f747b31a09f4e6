"""The run directory: where each thing lies. DESIGN.md, "Training: the run directory is the interface"."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from engine.training.atomic import replacing
from engine.training.recipe import Recipe
from engine.training.recipe_file import read_recipe, write_recipe


class RunFolder:
    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.recipe = self.path / "recipe.toml"
        self.status = self.path / "status.json"
        self.metrics = self.path / "metrics.jsonl"
        self.control = self.path / "control.json"
        self.snapshots = self.path / "snapshots"
        self.latest = self.path / "latest"
        self.data = self.path / "data"
        self.checkpoint = self.path / "checkpoint"

    def snapshot(self, step: int) -> Path:
        return self.snapshots / f"step-{step:07d}.safetensors"

    def snapshot_steps(self) -> list[int]:
        return sorted(int(file.stem.removeprefix("step-")) for file in self.snapshots.glob("step-*.safetensors"))

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
        with replacing(self.recipe) as partial:
            partial.write_text(write_recipe(recipe), encoding="utf-8")

    def log(self, line: dict[str, Any]) -> None:
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """One dictionary a logged step; a last line that is still being written is left out."""
        try:
            lines = self.metrics.read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def rewind(self, step: int) -> None:
        """Forget what was logged and kept after `step`: the run goes on from there."""
        kept = [line for line in self.read_metrics() if line["step"] <= step]
        with replacing(self.metrics) as partial:
            partial.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        for later in self.snapshot_steps():
            if later > step:
                self.snapshot(later).unlink()
