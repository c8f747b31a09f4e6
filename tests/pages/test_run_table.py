"""The table of runs without a browser: its rows are what the runs' files say, and its buttons do what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.training import Recipe, train
from engine.training.launch.search import Axis, read_search, start_search
from engine.training.launch.sizing import Sizing
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run import trash
from engine.training.run.folder import RunFolder
from engine.training.run.origin import Origin
from engine.training.run.runs import Measures, Run, RunStatus, runs
from pages.controls.train import search
from pages.controls.train.recipe_plan import sizing_cache
from pages.controls.train.run_table import COLUMNS, ORDERS, as_frame, matches, sort_runs
from tests.engine.training.at_once import AtOnce
from tests.pages.mounted import at_page

PRESET = Path(__file__).parents[2] / "assets" / "lab" / "copy.toml"
LOST = RunStatus("failed", 3, "not a number")
RUNS = [
    Run("b10", Path("b10"), RunStatus("finished", 6), 6, "copy", measures=Measures(0.5, 0.9999), origin=Origin(2.0)),
    Run("b9", Path("b9"), LOST, 6, "copy", "letters", Measures(2.0), origin=Origin(3.0)),
    Run("odd", Path("odd"), RunStatus("damaged"), fault="status.json does not read.", origin=Origin(1.0)),
]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    short = read_recipe(PRESET)
    short = replace(short, schedule=replace(short.schedule, steps=6, warmup=0), log=replace(short.log, snapshots=4))
    folder = tmp_path_factory.mktemp("runs") / "learnt"
    for _ in train(short, folder):
        pass
    return folder


@pytest.fixture
def place(learnt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("first", "second"):
        copytree(learnt, tmp_path / name)
    monkeypatch.setattr(Sizing, "begin", lambda self, recipe: False)
    monkeypatch.setattr(ContextProxy, "ip_address", property(lambda self: None))  # at the server's own machine
    for function in (runs, trash.delete, trash.list_deleted, trash.undo_delete, trash.rename):
        monkeypatch.setattr(function, "__defaults__", (str(tmp_path), *(function.__defaults__ or ())[1:]))
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    sizing_cache.clear()
    yield tmp_path


def page(run: str, **address: str) -> AppTest:
    app = at_page("pages/train/train.py", run=run, **address).run()
    assert not app.exception, app.exception
    return app


def shown(app: AppTest) -> pd.DataFrame:
    (found,) = app.dataframe
    return found.value


def test_a_row_says_what_the_files_of_its_run_say(place: Path) -> None:
    row = shown(page("first")).set_index("run").loc["first"]
    last = RunFolder(place / "first").read_metrics()[-1]
    assert row["loss"] == pytest.approx(last["loss"]) and row["held out"] == pytest.approx(last["held_out_loss"])
    assert row["accuracy"] == math.floor(1000 * last["held_out_accuracy"]) / 10
    assert (row["step"], row["progress"], row["state"], row[""]) == ("6 / 6", 1.0, "finished", "●")


def test_columns_sort_numbers_words_and_what_is_missing() -> None:
    def names(order: str) -> list[str]:
        return [run.name for run in sort_runs(RUNS, order)]

    assert names("created") == ["b9", "b10", "odd"] and names("-created") == ["odd", "b10", "b9"]
    assert names("loss") == ["b10", "b9", "odd"] and names("-loss") == ["b9", "b10", "odd"]  # odd has none
    assert len(ORDERS) == 2 * len(COLUMNS) and all(len(names(order)) == 3 for order in ORDERS)


def test_runs_are_found_by_words_of_their_name_task_state_and_trouble() -> None:
    assert [run.name for run in RUNS if matches(run, ["number", "copy"])] == ["b9"]
    assert [run.name for run in RUNS if matches(run, ["status.json"])] == ["odd"]
    assert not [run for run in RUNS if matches(run, ["finished", "letters"])]


def test_the_table_is_searched_and_sorted_by_its_controls(place: Path) -> None:
    app = page("first")
    app.text_input(key="runs search").set_value("finished second").run()
    assert list(shown(app)["run"]) == ["second"]
    app.text_input(key="runs search").set_value("").run()
    for order, names in (("name", ["first", "second"]), ("-name", ["second", "first"])):
        app.selectbox(key="runs").set_value(order).run()
        assert list(shown(app)["run"]) == names
    for linked in ("-name", "run ↓"):
        assert list(shown(page("first", runs=linked))["run"]) == ["second", "first"]
    assert list(shown(page("first", runs="loss!"))["run"]) == list(shown(page("first"))["run"])


def test_a_share_is_never_rounded_to_all_and_damage_is_said() -> None:
    frame = as_frame(RUNS, "b9").set_index("run")
    assert frame.loc["b10", "accuracy"] == 99.9
    assert frame.loc["odd", "notes"] == "status.json does not read." and frame.loc["odd", "state"] == "damaged"


def test_a_run_is_renamed_and_the_page_goes_on_with_it(place: Path) -> None:
    app = page("second")
    app.text_input(key="rename second").set_value("a/b").run()
    app.button(key="runs rename").click().run()
    assert "got 'a/b'" in " ".join(one.value for one in app.warning)
    app.text_input(key="rename second").set_value("third").run()
    app.button(key="runs rename").click().run()
    assert app.query_params["run"] == "third" and (place / "third" / "metrics.jsonl").is_file()
    assert set(shown(app)["run"]) == {"first", "third"}


def test_a_deleted_run_can_be_had_back(place: Path) -> None:
    app = page("second")
    app.button(key="runs delete").click().run()
    assert set(shown(app)["run"]) == {"first"} and not (place / "second").exists()
    app.button(key="runs undo").click().run()
    assert set(shown(app)["run"]) == {"first", "second"} and (place / "second" / "metrics.jsonl").is_file()


def test_a_table_that_nothing_is_in_says_how_to_fill_it(place: Path) -> None:
    for name in ("first", "second"):
        trash.delete(name, place)
    app = page("")
    assert not app.dataframe and any("No runs yet" in one.value for one in app.caption)


def test_the_runs_of_others_are_looked_at_and_not_changed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContextProxy, "ip_address", property(lambda self: "10.0.0.7"))
    app = page("second")
    button = app.button(key="runs delete")
    assert button.disabled and "Only the owner of this run can change it" in button.help
    assert set(shown(app)["run"]) == {"first", "second"}
    trash.delete("first", place)
    assert not [one for one in page("second").button if one.key == "runs undo"]


def test_a_search_is_started_and_its_table_and_chart_are_the_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start_short(launcher: object, recipe: Recipe, axes: Sequence[Axis], name: str, folder: Path) -> list[Path]:
        short = replace(recipe, schedule=replace(recipe.schedule, steps=6, warmup=0))
        return start_search(AtOnce(folder), short, axes, name, folder)

    monkeypatch.setattr(search, "start_search", start_short)
    app = page("", task="copy")
    assert not [one for one in app.text_input if one.key == "search copy name"]  # while it is closed
    app.session_state["search open"] = True  # as a click leaves it
    app.run()
    app.multiselect(key="search copy options").set_value(["optimiser.lr", "model.norm.place"]).run()
    app.text_input(key="search copy optimiser.lr").set_value("1e-3").run()
    app.text_input(key="search copy model.norm.place").set_value("before, nowhere").run()
    app.button(key="search start").click().run()
    assert "model.norm.place must be one of" in " ".join(one.value for one in app.warning).replace("\\", "")
    app.text_input(key="search copy model.norm.place").set_value("before, after").run()
    app.button(key="search start").click().run()
    assert not app.exception and not app.warning, app.warning

    rows = read_search("copy search", place)
    assert [run.origin.values["model.norm.place"] for run in rows] in (["before", "after"], ["after", "before"])
    (table,) = (one.value for one in app.dataframe if "model.norm.place" in one.value)
    assert list(table["run"]) == [run.name for run in rows]
    assert list(table["held out"]) == [run.measures.held_out_loss for run in rows]
    assert "optimiser.lr" not in table  # all have the one value
    (chart,) = app.get("vega_lite_chart")
    drawn = json.loads(chart.proto.spec)
    assert drawn["layer"][1]["encoding"]["y"]["title"] == "held-out loss"
    assert app.query_params["search"] == "copy search"
    app.button(key="search overlay").click().run()
    assert not app.exception and app.query_params["run"] == rows[0].name
    app.selectbox(key="task").select("sort").run()  # another task begins with a name and values of its own
    assert app.text_input(key="search sort name").value == "sort search"
    file = search.list_results(rows, ["model.norm.place"])
    assert list(file["held-out loss"]) == [run.measures.held_out_loss for run in rows] and file["ended"].all()
