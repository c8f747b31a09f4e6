"""Files of runs are damaged by drawn bytes: the pages that read them say so in a sentence, and none ends."""

import json
import re
from pathlib import Path
from random import Random
from shutil import copyfile, copytree

import pytest

from bench.chaos import DAMAGES
from engine.budget import budget
from engine.places import ASSETS
from engine.runtime import openings
from engine.runtime.library import LoadOptions
from engine.training.launch.sizing import Sizing
from tests.browser.harness import train_shortly
from tests.pages.mounted import at_page

pytestmark = pytest.mark.long
RECORDED = "lab/recorded", "adapt/recorded", "preferences/recorded/ppo-free", "preferences/recorded/reward"
VALUES = -1, 0, 2**200, float("inf"), None, True, [], {}, "", "x" * 10_000, "\ud800", "\0", [[[]]]
VALUE = re.compile(rb'-?\d+\.?\d*(?:e-?\d+)?|"[^"\n]*"|true|false|null|\[[^\[\]]*\]')


def exchange_value(data: bytes, random: Random) -> bytes:
    """One value of JSON or TOML is another, of another kind or too large."""
    if not (found := list(VALUE.finditer(data))):
        return b""
    place = random.choice(found)
    return data[: place.start()] + json.dumps(random.choice(VALUES)).encode() + data[place.end() :]


def test_no_page_ends_by_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    whole, runs, random = tmp_path / "whole", tmp_path / "runs", Random(63)
    train_shortly(whole / "first", 20, 2, 1)
    for number, name in enumerate(RECORDED):
        copytree(ASSETS / name, whole / f"run {number}")
    openings.keep_path(whole, "opened~1", LoadOptions(ASSETS / "checkpoints" / "everyday", title="opened").record)
    for run in (path for path in whole.iterdir() if path.is_dir()):
        (run / "origin.json").write_text('{"created": 1.0, "run": "first", "step": 4, "changes": ["optimiser.lr=0.1"]}')
    copytree(whole, runs)
    monkeypatch.setattr(budget, "runs_folder", str(runs))
    monkeypatch.setattr(Sizing, "begin", lambda self, recipe: False)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    names = sorted({path.name for path in files})
    for name in names:
        file = random.choice([path for path in files if path.name == name])
        damage = random.choice([*DAMAGES, *[exchange_value] * len(DAMAGES)])
        (runs / file).write_bytes(damage((whole / file).read_bytes(), random))
        run = file.parts[0]
        pages = [
            ("train/train", {"run": run}),
            ("train/adapt", {"run": run}),
            ("explore/walkthrough", {"model": f"run:{run}"}),
        ]
        pages += [("inspect/checkpoint", {"model": f"run:{run}"})]
        if len(file.parts) == 1:
            pages = [("train/train", {}), ("explore/walkthrough", {"model": "opened~1"})]
        for page, address in pages:
            with subtests.test(f"{damage.__name__} {file} {page}"):
                assert not (app := at_page(f"pages/{page}.py", **address).run(timeout=120)).exception, app.exception
        copyfile(whole / file, runs / file)
