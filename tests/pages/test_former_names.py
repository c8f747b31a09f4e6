"""A shipped checkpoint that was renamed opens by its former name wherever a name is read, and is shown by its present
one."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.checkpoints import load, write_adapter
from engine.checkpoints.adapters.config import BASE, CONFIG, name_base
from engine.checkpoints.locate import RENAMED, SHIPPED, shipped_names
from engine.model.layers.lora import Adapter
from engine.places import ROOT
from engine.runtime import library
from engine.training.base.base import open_base
from engine.training.recipe.recipe_file import parse_recipe
from engine.training.run.comparison import recipe_of_base
from tests.engine.model.layers.test_lora import random_adapter

FORMER, PRESENT = next(iter(RENAMED.items()))


def opened(page: str, **address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app = app.switch_page(f"pages/{page}.py").run()
    assert not app.exception and not app.warning and not app.info, (app.exception, app.warning, app.info)
    return app


def test_former_names_lead_to_checkpoints_that_are_there() -> None:
    assert set(RENAMED.values()) <= set(shipped_names()) and not RENAMED.keys() & set(shipped_names())


@pytest.mark.parametrize("source", [FORMER, f"assets/checkpoints/{FORMER}", SHIPPED / FORMER / "model.safetensors"])
def test_the_engine_loads_it(source: str | Path) -> None:
    assert load(source).report == load(PRESENT).report


def test_the_library_opens_it_once_and_lists_it_by_its_present_name() -> None:
    assert library.knows(FORMER) and library.checkpoint(FORMER) is library.checkpoint(PRESENT)
    assert library.checkpoint(FORMER).name == library.parse_name(FORMER).title == PRESENT
    assert library.names(FORMER) == library.names() and FORMER not in library.names()
    assert name_base(FORMER) == name_base(f"assets/checkpoints/{FORMER}") == f"assets/checkpoints/{PRESENT}"


@pytest.mark.parametrize(
    ("page", "key", "more"),
    [
        ("explore/walkthrough", "model", {}),
        ("explore/attention", "model", {}),
        ("explore/compare", "a_model", {}),
        ("explore/compare", "b_model", {"a_model": PRESENT}),
        ("inspect/checkpoint", "model", {}),
        ("inspect/architecture", "model", {}),
        ("inspect/architecture", "against", {"model": "stories"}),
        ("train/adapt", "base", {"adapt": "sentiment"}),
    ],
)
def test_an_address_opens_it_and_then_says_its_present_name(page: str, key: str, more: dict[str, str]) -> None:
    app = opened(page, **{key: FORMER}, **more)
    assert app.selectbox(key=key).value == PRESENT and FORMER not in app.selectbox(key=key).options
    said = app.query_params.get(key, PRESENT)  # what a control stands at by itself is in no address
    assert said in (PRESENT, [PRESENT])


def test_it_is_opened_as_typed() -> None:
    app = opened("inspect/checkpoint")
    app.text_input(key="typed model").set_value(FORMER).run()
    assert not app.exception and app.selectbox(key="model").value == PRESENT


def test_a_recipe_begins_with_it() -> None:
    text = (ROOT / "assets" / "adapt" / "sentiment.toml").read_text()
    assert PRESENT in text
    for folder in (None, ROOT / "assets" / "adapt"):
        recipe = parse_recipe(text.replace(PRESENT, FORMER), folder=folder)
        assert recipe == parse_recipe(text, folder=folder) and recipe.base == PRESENT
    assert open_base(f"assets/checkpoints/{FORMER}")[0].config == open_base(PRESENT)[0].config
    before, after = recipe_of_base(FORMER), recipe_of_base(PRESENT)
    assert before and after and replace(before, base=PRESENT) == after


@pytest.mark.parametrize("named", [FORMER, f"assets/checkpoints/{FORMER}"])
def test_an_adapter_finds_its_base(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = library.checkpoint(PRESENT)
    adapter = random_adapter(base.model, "attn.q")
    write_adapter(adapter, base, tmp_path / "run" / "adapter" / "mine")
    config = tmp_path / "run" / "adapter" / "mine" / CONFIG
    said = json.loads(config.read_text())
    assert said[BASE] == PRESENT
    config.write_text(json.dumps(said | {BASE: named}))
    (opened,) = load(config.parent).adapters
    assert isinstance(opened, Adapter) and opened.base == f"assets/checkpoints/{PRESENT}"
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    assert "mine" in [one.name for one in library.adapters_for(PRESENT)]
    upload = tmp_path / "upload"
    shutil.copytree(config.parent, upload)
    name = library.offer(library.LoadOptions(upload, title="upload", uploaded=True))
    assert library.checkpoint(name).adapters[0].name == "upload"
