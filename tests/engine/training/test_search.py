"""A grid of recipes is trained as runs like all others, goes on where it was left, and is read as one table."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.budget import budget
from engine.cli import main as cli
from engine.training import Recipe, RunFolder, read_recipe, train
from engine.training.launch.search import (
    Axis,
    change_recipe,
    format_search,
    list_changes,
    name_run,
    read_axis,
    read_search,
    start_search,
)
from engine.training.recipe.recipe_file import write_recipe
from engine.training.run.fork import reset
from engine.training.run.names import cut_name, unused_name
from engine.training.run.origin import read_origin
from tests.engine.training.at_once import AtOnce

AXES = [Axis("optimiser.lr", (1e-2, 1e-1)), Axis("seed", (0, 1))]


def test_a_search_is_trained_and_told_and_goes_on(recipe: Recipe, tmp_path: Path) -> None:
    place = tmp_path / "runs"
    launcher = AtOnce(place)
    launcher.lost = 1
    started = start_search(launcher, recipe, AXES, "rates", place)
    assert [path.name for path in started] == [
        "rates lr 0.01 seed 0",
        "rates lr 0.01 seed 1",
        "rates lr 0.1 seed 0",
        "rates lr 0.1 seed 1",
    ]
    RunFolder(started[1]).status.unlink()  # whoever made it ended before it began
    launcher.lost, launcher.room = None, 2  # two are left, and no more places than that
    finished = RunFolder(started[0]).metrics.read_text()
    assert start_search(launcher, recipe, AXES, "rates", place) == started
    assert RunFolder(started[0]).metrics.read_text() == finished

    rows = read_search("rates", place)
    assert sorted(tuple(run.origin.values.values()) for run in rows) == [(0.01, 0), (0.01, 1), (0.1, 0), (0.1, 1)]
    losses = [run.measures.held_out_loss for run in rows]
    assert losses == sorted(losses) and len(set(losses)) == 4 and {run.status.state for run in rows} == {"finished"}
    assert {read_recipe(path / "recipe.toml").data_seed for path in started} == {recipe.seed}  # of one held-out part
    for run in rows:  # each is what its changes say, and nothing else
        alone = train(change_recipe(recipe, run.origin.values), tmp_path / f"alone {run.name}")
        assert [step.loss for step in alone][-1] == run.measures.loss
    titles, first, *_ = format_search(rows)
    assert titles.split() == ["optimiser.lr", "seed", "state", "step", "loss", "held-out", "accuracy", "seconds"]
    assert f"{rows[0].measures.held_out_loss:.4f}" in first.split()

    reset(rows[0].name, place)  # begun again it is of the search still
    assert read_origin(RunFolder(rows[0].path)).values == rows[0].origin.values
    assert {run.name for run in read_search("rates", place)} == {run.name for run in rows}


def test_nothing_begins_where_a_part_of_the_grid_cannot(recipe: Recipe, tmp_path: Path) -> None:
    place = tmp_path / "runs"
    launcher = AtOnce(place)
    launcher.room = 2
    for axes, told in (
        ([Axis("optimiser.lr", (1e-2, -1.0))], "optimiser.lr must be above 0"),
        ([Axis("optimiser.rate", (1,))], "'optimiser.rate' must be an option of the recipe"),
        ([Axis("optimiser", (1,))], "'optimiser' must be an option of the recipe"),
        ([Axis("model.layers", (1, "two"))], "model.layers must be a whole number"),
        ([Axis("seed", (1,)), Axis("seed", (2,))], "seed must be given once"),
        ([Axis("model.d_model", (16, 40_000))], "the model's parameters must be at most"),
        ([Axis("train.parts", ("all", ["blocks.9"]))], "blocks.9"),
        ([Axis("data.text.path", ("corpus.txt", "nowhere.txt"))], "there is no nowhere.txt"),
        ([Axis("data.text.path", ("corpus.txt", "./corpus.txt"))], "path ./corpus.txt are one; take one out"),
        ([Axis("base", ("", "run:nowhere"))], "there is no run called 'nowhere'"),
        (AXES, "a search may start 2 trainings now, got 4"),
        ([], "a search needs an option"),
    ):
        with pytest.raises(ValueError, match=told):
            start_search(launcher, recipe, axes, "none", place, tmp_path)
    assert not place.exists() or not [path for path in place.iterdir() if not path.name.startswith(".")]
    one = [Axis("optimiser.lr", (1e-2,))]
    start_search(launcher, recipe, one, "one", place)
    longer = replace(recipe, schedule=replace(recipe.schedule, steps=13))
    with pytest.raises(ValueError, match="'one' must be of this recipe"):
        start_search(launcher, longer, one, "one", place)
    with pytest.raises(ValueError, match="no search called 'two' here; there is one"):
        read_search("two", place)


def test_values_are_read_as_in_toml_and_what_is_none_is_text() -> None:
    assert read_axis("optimiser.lr = 1e-3, 3e-3") == Axis("optimiser.lr", (1e-3, 3e-3))
    assert read_axis("optimiser.betas=[0.9, 0.95], [0.9, 0.99]").values == ([0.9, 0.95], [0.9, 0.99])
    assert read_axis("model.norm.place=before, after").values == ("before", "after")
    assert read_axis("model.tied=true,false").values == (True, False)
    assert read_axis('train.parts=head, ["blocks.0", "blocks.1"]').values == ("head", ["blocks.0", "blocks.1"])
    assert read_axis("optimiser.lr=.1, 1., run:a, it's").values == (0.1, 1.0, "run:a", "it's")
    for wrong in ("seed", "seed=", "=1", "seed=1,1", "optimiser.lr=0.10,0.1", "optimiser.lr=1e-3,0.001", "a=.1,1e-1"):
        with pytest.raises(ValueError, match="must"):
            read_axis(wrong)
    assert list_changes([Axis("seed", (0,)), Axis("a.b", (1, 2))]) == [{"seed": 0, "a.b": 1}, {"seed": 0, "a.b": 2}]


def test_what_follows_from_a_change_changes_too(recipe: Recipe, tmp_path: Path) -> None:
    assert change_recipe(recipe, {"batch.context": 6}).model.context == 6
    assert change_recipe(recipe, {"model.attention.heads": 4}).model.attention.heads == 4
    for name, wide in (("narrow", 16), ("wide", 32)):
        model = replace(recipe.model, d_model=wide, tied=name == "wide")
        list(train(replace(recipe, model=model), tmp_path / name))
    begin, _, rest = write_recipe(recipe).partition("[model]")
    begin = begin.replace('base = ""', 'base = "narrow"')
    fine = f"{begin}[model]\ndropout = 0.2\n[data{rest.partition('[data')[2]}"
    (tmp_path / "fine.toml").write_text(fine)
    begun = read_recipe(tmp_path / "fine.toml")
    for base in ("wide", "narrow"):  # as if each were written in the recipe itself
        (tmp_path / "other.toml").write_text(fine.replace('"narrow"', f'"{base}"'))
        changed = change_recipe(begun, {"base": base}, tmp_path)
        assert changed == read_recipe(tmp_path / "other.toml") and changed.model.dropout == 0.2
    assert change_recipe(begun, {"batch.context": 6}).model.context == begun.model.context  # the base's own


def test_a_name_is_cut_where_it_must_be() -> None:
    for changes in (
        {"optimiser.lr": 0.001, "seed": 0, "optimiser.weight_decay": 0.15},
        {"optimiser.lr": 1 / 3, "optimiser.weight_decay": 1e16, "lora.alpha": 16.0},
        {"model.attention.heads": 4, "model.cross.heads": 8, "schedule.steps": 5000, "seed": 1},
    ):
        name = name_run("s" * 60, changes)
        words = unused_name(name, Path()).split()[1:]
        told = dict(zip(words[::2], map(float, words[1::2]), strict=True))
        assert told and all(
            any(key.endswith(end) and value == said for key, value in changes.items()) for end, said in told.items()
        )
    assert cut_name("grid lr 0.15", 11) == "grid lr" and cut_name("a" * 9 + "0.15", 11) == "a" * 9
    assert cut_name("कि" * 9, 5) == "कि" * 3 and cut_name("é" * 9, 5) == "é" * 5  # no character torn, 4 bytes for each
    long = name_run("s" * 60, {"model.attention.heads": 4, "model.norm.place": "after", "optimiser.weight_decay": 0.1})
    assert len(long) <= 60 and long.startswith("sss") and "heads 4 place after" in long


def test_the_command_line_trains_a_search_and_tells_of_it(
    recipe_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "runs"
    monkeypatch.setattr(cli, "choose_launcher", lambda: AtOnce(place))
    monkeypatch.setattr(budget, "runs_folder", str(place))
    assert cli.main(["search", str(recipe_path), "model.layers=1,2"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert "2 runs at work" in table[0] and table[1].split()[0] == "model.layers"
    assert {line.split()[0] for line in table[2:]} == {"1", "2"}
    assert cli.main(["search", str(recipe_path), "--table"]) == 0
    assert capsys.readouterr().out.splitlines() == table[1:]
    assert cli.main(["search", str(recipe_path), "model.layers"]) == 1
    assert "KEY=VALUE" in capsys.readouterr().err
