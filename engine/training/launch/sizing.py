"""What must be tried to be known of a training before it starts: how many different tokens its data has, and whether
the data goes with the recipe. In a process of its own, which also measures this machine for `estimate`.

    python -m engine.training.launch.sizing RUNS < recipe.toml
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.places import ROOT
from engine.settings import read_settings
from engine.training.base.base import check_base
from engine.training.launch.estimate import calibrate, known_speed
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import parse_recipe, write_recipe
from engine.training.run.atomic import read_json, write_json
from engine.training.run.folder import runs_folder
from engine.training.sources import open_source

FILE = ".sizes.json"  # in the folder of the runs
KEPT = 1_000  # of the last ones
SECONDS = 120  # of a core that one may take


@dataclass(frozen=True)
class Size:
    """`vocab_size` is 0 where there is a `problem`: the sentence that the training would end with. Of `rows` those
    `left_out` are too long for the context; both are 0 where texts are cut to it. `notes` are sentences about the data.
    """

    vocab_size: int
    problem: str
    rows: int
    left_out: int
    notes: Sequence[str] = ()


def known_size(recipe: Recipe, folder: Path | str | None = None) -> Size | None:
    """None before it was tried; `folder` is that of the runs."""
    try:
        found = (read_json(runs_folder(folder) / FILE) or {}).get(key(recipe))
        return None if found is None else Size(**found | {"notes": tuple(found.get("notes", ()))})
    except (json.JSONDecodeError, TypeError, AttributeError):  # somebody else's file
        return None


def find_size(recipe: Recipe, folder: Path | str | None = None) -> Size:
    """Tries it, which takes as long as preparing the training does, and notes it in `folder`."""
    with TemporaryDirectory(prefix="loupe-") as made:
        try:
            source = open_source(recipe, Path(made))
            config = source.complete_config(recipe.model)
            if recipe.base:
                check_base(recipe.base, config)
            found = Size(config.vocab_size, "", source.count, source.left_out, tuple(source.notes))
        except (ValueError, OSError) as error:
            found = Size(0, str(error), 0, 0)
    runs_folder(folder).mkdir(parents=True, exist_ok=True)
    try:
        known = read_json(runs_folder(folder) / FILE)
    except json.JSONDecodeError:
        known = None
    kept = list(known.items())[1 - KEPT :] if isinstance(known, dict) else []
    write_json(runs_folder(folder) / FILE, dict(kept) | {key(recipe): asdict(found)})
    return found


def key(recipe: Recipe) -> str:
    """The same for recipes that have the same answer."""
    model = recipe.model
    named = (getattr(recipe.data.table, name, None) for name in ("path", "held_out_path"))
    stamp = sum(Path(path).stat().st_mtime_ns for path in named if path and Path(path).is_file())
    patches = model.embedding.patches
    told: list[Any] = [
        recipe.data.tables, recipe.objective.kind, recipe.data_seed, recipe.batch.context, asdict(model.head), stamp,
        model.attention.mask, None if patches is None else asdict(patches), model.encoder is None,
    ]  # fmt: skip
    if recipe.base:
        told += [recipe.base, asdict(model)]
    return blake2b(json.dumps(told).encode(), digest_size=12).hexdigest()


class Sizing:
    """Measures recipes in one process at a time, and each once."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.tried: set[str] = set()

    @property
    def busy(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def begin(self, recipe: Recipe) -> bool:
        """Tells whether it was begun."""
        if self.busy or key(recipe) in self.tried:
            return False
        self.tried.add(key(recipe))
        self.process = subprocess.Popen(
            ["nice", sys.executable, "-m", __name__, str(runs_folder(None).resolve())],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        with self.process.stdin as told:
            told.write(write_recipe(recipe).encode())
        return True


def main(folder: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    read_settings()
    recipe = parse_recipe(sys.stdin.read())
    if known_speed(recipe, Path(folder)) is None and recipe.machine.device != "cuda":
        calibrate(recipe, folder)
    find_size(recipe, folder)


if __name__ == "__main__":
    main(sys.argv[1])
