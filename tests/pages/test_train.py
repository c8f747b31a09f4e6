"""The page about training without a browser: what its controls make is a recipe, whatever a person brings or writes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.model.config import ModelConfig, OtherRotation
from engine.model.transformer import Transformer, initialise
from engine.scoring.score import score
from engine.training import Recipe, RunFolder, sources
from engine.training.launch import estimate
from engine.training.launch.sizing import Sizing
from engine.training.recipe import limit_checks
from engine.training.recipe.link import pack_recipe
from engine.training.recipe.recipe_file import as_toml, parse_recipe, write_recipe
from engine.training.run.names import check_name
from pages.controls.train.presets import FOLDER, presets
from pages.controls.train.recipe_plan import contrasts, sizing_cache
from pages.controls.train.session import Session
from tests.pages.mounted import at_page, record
from views.core.payload import unpack

NAMES = sorted(file.stem for file in FOLDER.glob("*.toml"))


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No run is there, and none is tried out in the background."""
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path / "runs"))
    monkeypatch.setattr(Sizing, "begin", lambda self, recipe: False)
    sizing_cache.clear()
    yield tmp_path / "runs"


def page(options: bool = True, **address: str) -> AppTest:
    """The page with every option of the recipe open, or as a visitor finds it."""
    app = at_page("pages/train/train.py", **address)
    app.session_state["recipe open"] = options
    return app.run()


def shown(app: AppTest) -> dict[str, Any]:
    """What the view is given."""
    assert not app.exception, app.exception
    (found,) = (e.proto for e in app.get("bidi_component") if ".train.train." in e.proto.component_name)
    return unpack(found.bytes)[0]


def plan(app: AppTest) -> dict[str, Any]:
    return dict(shown(app)["plan"])


def recipe_of(app: AppTest) -> Recipe:
    """What Play would train."""
    assert not plan(app)["problem"], plan(app)["problem"]
    found = record(app, Session).plan
    assert found is not None
    return found


def address(app: AppTest, name: str) -> str:
    said = app.query_params[name]
    return said if isinstance(said, str) else said[0]


def told(app: AppTest) -> str:
    return re.sub(r"\\(.)|\u2060", r"\1", " ".join(one.value for one in [*app.warning, *app.info]))


def controls(app: AppTest) -> dict[str, Any]:
    """Those of the recipe, by the dotted name of their option."""
    kinds = (app.number_input, app.selectbox, app.text_input, app.toggle)
    keyed = (one for kind in kinds for one in kind if one.key and ".st" not in one.key)
    return {one.key.split(".", 1)[1]: one for one in keyed if re.match(r"\S.* \d+\.", one.key)}


@pytest.mark.parametrize("options", [True, False])
@pytest.mark.parametrize("task", NAMES)
def test_what_the_controls_say_at_first_is_the_preset(task: str, options: bool) -> None:
    app = page(options, task=task)
    assert recipe_of(app) == presets()[task].recipe
    assert not app.warning and not app.info and "recipe" not in app.query_params


OTHER = {"d_model": 32, "heads": 1, "kv_heads": 1, "size": 8, "steps": 9, "warmup": 1, "scale": 0.5, "clip": 0.5}
OTHER |= {"lr": 0.01, "betas": "0.8, 0.9", "windowed": "0", "symbols": "abcdef", "special_tokens": "<x>"}


def other(control: Any) -> Any:
    """Another value of a control, one that makes sense for most."""
    name = control.key.rpartition(".")[2]
    if name in OTHER:
        return OTHER[name]
    if hasattr(control, "options"):
        labels = [option for option in control.options if option != control.format_func(control.value)]
        return labels[-1] if labels else None
    if isinstance(control.value, bool):
        return not control.value
    if isinstance(control.value, float):
        return control.value / 2 if control.value else 0.1
    return (control.value or 1) + 1 if not isinstance(control.value, str) else None


@pytest.mark.long
@pytest.mark.parametrize("task", ["reverse", "stories"])
def test_every_control_reaches_its_option_or_says_why_not(task: str) -> None:
    app = page(task=task)
    names, before = list(controls(app)), recipe_of(app)
    assert len(names) > 40
    for name in names:
        if name not in controls(app):  # until what was chosen last is as it was
            app.run()
        control = controls(app)[name]
        kept, value = control.value, other(control)
        if value is None:
            continue
        (control.select(value) if hasattr(control, "options") else control.set_value(value)).run()
        problem, made = plan(app)["problem"], record(app, Session).plan
        if problem:
            assert made is None and problem.endswith(".") and problem in told(app), (name, problem)
        else:
            assert made != before and parse_recipe(write_recipe(made)) == made, name
        controls(app)[name].set_value(kept)  # with the next run
    app.run()
    assert recipe_of(app) == before


def test_nothing_is_lost_while_a_field_does_not_read() -> None:
    app = page(task="reverse")
    controls(app)["optimiser.weight_decay"].set_value(0.5).run()
    controls(app)["optimiser.betas"].set_value("0.9, much").run()
    assert plan(app)["problem"] == "betas must be numbers with commas between them, got '0.9, much'."
    assert record(app, Session).plan is None
    controls(app)["optimiser.betas"].set_value("0.9, 0.99").run()
    found = recipe_of(app).optimiser
    assert (found.weight_decay, found.betas) == (0.5, (0.9, 0.99))


def test_a_context_is_one_number_for_batch_and_model() -> None:
    app = page(task="stories")
    controls(app)["batch.context"].set_value(64).run()
    assert (recipe_of(app).batch.context, recipe_of(app).model.context) == (64, 64)


def test_only_options_that_mean_something_are_offered() -> None:
    app = page(task="stories")
    assert "model.positions.theta" not in controls(app)
    controls(app)["model.positions.kind"].select("rotary").run()
    controls(app)["model.positions.theta"].set_value(500.0).run()
    assert recipe_of(app).model.positions.theta == 500
    controls(app)["model.positions.other"].set_value(True).run()
    controls(app)["model.positions.other.layers"].set_value("1, 2").run()
    assert recipe_of(app).model.positions.other == OtherRotation((1, 2))
    assert controls(page(task="addition"))["objective.kind"].options == ["completion", "sequence to sequence"]
    assert "data.tokenizer.kind" not in controls(page(task="induction"))


def test_another_objective_brings_the_model_that_it_needs_and_says_so() -> None:
    app = page(task="stories")
    controls(app)["objective.kind"].select("masked").run()
    model = recipe_of(app).model
    assert (model.head.kind, model.attention.mask) == ("masked", "full")
    assert "For the objective masked, of the model head.kind is masked and attention.mask is full" in told(app)
    controls(app)["objective.kind"].select("next").run()
    assert recipe_of(app) == presets()["stories"].recipe and "For the objective" not in told(app)


def test_options_that_nobody_opened_are_not_drawn_and_are_the_presets() -> None:
    app = page(options=False, task="reverse")
    assert not controls(app) and recipe_of(app) == presets()["reverse"].recipe
    app.number_input(key="reverse 0 seed").set_value(7).run()
    app.session_state["recipe open"] = True
    app.run()
    assert recipe_of(app) == replace(presets()["reverse"].recipe, seed=7) and len(controls(app)) > 40
    controls(app)["optimiser.betas"].set_value("0.9, much").run()
    app.session_state["recipe open"] = False
    app.run()
    assert controls(app)["optimiser.betas"].value == "0.9, much" and "betas must be numbers" in told(app)


def test_a_task_keeps_what_was_changed_while_another_is_looked_at() -> None:
    app = page(task="reverse")
    controls(app)["model.layers"].set_value(3).run()
    app.selectbox(key="task").set_value("copy").run()
    assert recipe_of(app) == presets()["copy"].recipe
    app.selectbox(key="task").set_value("reverse").run()
    assert recipe_of(app) == replace(presets()["reverse"].recipe, model=replace(recipe_of(app).model, layers=3))
    assert "changed: model.layers 2 → 3" in re.sub(r"\\|\u2060", "", " ".join(one.value for one in app.caption))
    app.button(key="as it was").click().run()
    assert recipe_of(app) == presets()["reverse"].recipe and "recipe" not in app.query_params


def test_a_recipe_and_a_task_are_kept_while_another_page_is_looked_at() -> None:
    app = page(task="copy")
    controls(app)["model.layers"].set_value(3).run()
    changed = recipe_of(app)
    app.query_params.clear()
    app.switch_page("pages/train/adapt.py").run()
    assert not app.exception and record(app, Session).plan.base == "tales-bert"
    app.query_params.clear()
    app.switch_page("pages/train/train.py").run()
    assert app.selectbox(key="task").value == "copy" and recipe_of(app) == changed


def test_a_link_restores_a_recipe() -> None:
    app = page(task="reverse")
    controls(app)["model.layers"].set_value(1).run()
    app.number_input(key="reverse 0 seed").set_value(7).run()
    there = page(task="reverse", recipe=address(app, "recipe"))
    assert recipe_of(there) == recipe_of(app) and recipe_of(there).seed == 7
    assert not there.info


@pytest.mark.parametrize("link", ["1garbage", "2abc", "", "1" + "A" * 9_000])
def test_a_broken_link_is_one_sentence(link: str) -> None:
    app = page(task="copy", recipe=link)
    assert recipe_of(app) == presets()["copy"].recipe
    assert len(app.info) == (1 if link else 0) and not app.warning


def test_a_link_for_a_class_hides_the_controls_and_keeps_what_they_say() -> None:
    app = page(task="copy", hide="task row,recipe open")
    assert ".st-key-task-row" in " ".join(one.proto.body for one in app.get("html"))
    assert recipe_of(app) == presets()["copy"].recipe
    (found,) = (e.proto for e in app.get("bidi_component") if ".train.train." in e.proto.component_name)
    take = unpack(found.bytes)[0]["take"]
    assert take["link"]["task"] == "copy" and "hide" not in take["link"]
    assert ["task row", "task, seed, name"] in take["controls"]


def test_a_link_says_nothing_but_text() -> None:
    evil = replace(presets()["copy"].recipe, about="![x](https://a.example/x.png) <b>bold</b> :red[x]")
    shown = next(one.value for one in page(task="copy", recipe=pack_recipe(evil)).caption if "x.png" in one.value)
    assert "](" not in shown and "<b>" not in shown and ":red[" not in shown


def test_a_link_to_more_than_any_machine_holds_is_refused_before_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: ModelConfig) -> None:
        raise AssertionError(f"{config.layers} layers are made")

    begun = presets()["copy"].recipe
    model = replace(begun.model, layers=10**6)
    for module in (estimate, limit_checks):
        monkeypatch.setattr(module, "list_parameters", refuse)
    app = page(task="copy", recipe=pack_recipe(replace(begun, model=model)))
    assert "model.layers must be at most" in told(app) and plan(app)["problem"]


def test_the_text_is_the_recipe_and_can_be_written() -> None:
    app = page(task="copy")
    text = app.text_area(key="copy 0 text").value
    assert parse_recipe(text) == presets()["copy"].recipe
    app.text_area(key="copy 0 text").set_value(text.replace("steps = 800", "steps = 120")).run()
    app.button(key="copy 0 text apply").click().run()
    assert recipe_of(app).schedule.steps == 120 and "steps = 120" in app.text_area(key="copy 1 text").value
    controls(app)["schedule.warmup"].set_value(3).run()
    assert "warmup = 3" in app.text_area(key="copy 1 text").value  # it follows the controls


def test_errors_of_the_text_name_its_line_and_lose_nothing() -> None:
    app = page(task="copy")
    written = app.text_area(key="copy 0 text").value.replace('rule = "copy"', 'rule = "copi"')
    app.text_area(key="copy 0 text").set_value(written).run()
    app.button(key="copy 0 text apply").click().run()
    line = 1 + written.splitlines().index('rule = "copi"')
    assert f"the text, line {line}: data.rewriting.rule must be one of copy" in told(app)
    assert app.text_area(key="copy 0 text").value == written and recipe_of(app) == presets()["copy"].recipe
    app.button(key="copy 0 text discard").click().run()
    assert parse_recipe(app.text_area(key="copy 0 text").value) == presets()["copy"].recipe and not app.warning


@pytest.mark.parametrize(
    ("task", "change", "problem"),
    [
        ("copy", 'base = "/a/path"', "base must be one of the models here (bilingual, "),
        ("copy", 'base = "stories"', "model must be that of the base stories, with "),
        ("copy", '[machine]\nprecision = "float16"', 'machine.precision "float16" needs CUDA'),
        ("copy", '[machine]\ndevice = "cuda"', "PyTorch sees no CUDA device here"),
        ("copy", "[schedule]\nsteps = 99999999", "schedule.steps must be at most"),
        ("copy", "[log]\nsnapshots = 1000000\n[schedule]\nsteps = 90000", "this one's snapshots need"),
    ],
)
def test_what_cannot_start_is_refused_where_its_text_is_applied(task: str, change: str, problem: str) -> None:
    app = page(task=task)
    tables = tomllib.loads(app.text_area(key=f"{task} 0 text").value)
    for key, value in tomllib.loads(change).items():
        tables[key] = tables.get(key, {}) | value if isinstance(value, dict) else value
    app.text_area(key=f"{task} 0 text").set_value(as_toml(tables)).run()
    app.button(key=f"{task} 0 text apply").click().run()
    assert problem in told(app) and recipe_of(app) == presets()[task].recipe


def test_no_text_reads_a_file_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("To be, or not to be, that is the question.\n" * 20)
    app = page(task="stories")
    text = app.text_area(key="stories 0 text").value
    table = re.search(r"\[data\.stories\]\n(?:.+\n)+", text)
    assert table is not None
    for path in (tmp_path / "secret.txt", "/etc/passwd"):
        app.text_area(key="stories 0 text").set_value(text.replace(table[0], f'[data.text]\npath = "{path}"\n')).run()
        app.button(key="stories 0 text apply").click().run()
        assert "must be a file that was brought to this page" in told(app)
        assert recipe_of(app).data.kind == "stories"


def test_a_run_is_called_by_what_can_be_a_name() -> None:
    app = page(task="copy")
    app.text_input(key="copy 0 name").set_value("../evil").run()
    assert "a run's name must be" in plan(app)["problem"]


# What a choice does, on the same seed.


@pytest.mark.parametrize("task", NAMES)
def test_contrasts_are_other_recipes_with_names_for_runs(task: str) -> None:
    recipe = presets()[task].recipe
    found = contrasts(recipe)
    assert {"without residual connections", "one head"} <= set(found)
    assert recipe not in found.values() and all(other.seed == recipe.seed for other in found.values())
    assert all(check_name(f"{task} {title}") for title in found)


@pytest.mark.parametrize("task", ["copy", "addition", "digits-vit", "brackets"])
def test_each_contrast_makes_a_model_that_trains(task: str, tmp_path: Path) -> None:
    recipe = presets()[task].recipe
    table = recipe.data.table
    if hasattr(table, "documents"):
        table = replace(table, documents=200, held_out=50)
        recipe = replace(recipe, data=replace(recipe.data, table=table))
    source = sources.open_source(recipe, tmp_path)
    batch = source.batch(1)
    for title, changed in contrasts(recipe).items():
        model = initialise(Transformer(source.complete_config(changed.model)), 0)
        before = score(model.forward_with_pooled(**batch.inputs), batch)["loss"]
        before.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 1e-3 * (torch.zeros(()) if parameter.grad is None else parameter.grad)
            after = score(model.forward_with_pooled(**batch.inputs), batch)["loss"]
        assert after < before, title  # it learns


def test_the_recorded_run_is_shown_of_the_task_that_it_learned_alone() -> None:
    assert shown(page())["recorded"]
    assert not shown(page(task="sort"))["recorded"]


def test_a_link_to_a_run_opens_on_its_task_unless_it_names_another(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(runs))
    RunFolder(runs / "mine").adopt(presets()["sort"].recipe)
    assert page(run="mine").selectbox(key="task").value == "sort"
    assert page(run="mine", task="copy").selectbox(key="task").value == "copy"
    assert page(run="mine", task="reverse").selectbox(key="task").value == "reverse"
    assert page(run="nobody").selectbox(key="task").value == "reverse"


def test_a_link_to_a_task_is_none_to_the_run_that_was_left(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(runs))
    RunFolder(runs / "mine").adopt(presets()["sort"].recipe)
    app = page(run="mine")
    for query, run in (({}, "mine"), ({"task": "copy"}, "")):
        app.query_params.clear()
        app.switch_page("pages/learn/glossary.py").run()
        app.query_params.clear()
        for name, value in query.items():
            app.query_params[name] = value
        app.switch_page("pages/train/train.py").run()
        assert shown(app)["run"] == run
