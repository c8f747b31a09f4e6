"""What the page about training is asked and answers: nothing that a browser can send breaks it."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from engine.budget import budget
from engine.checkpoints.run_steps import absent
from engine.data.digits import split
from engine.training import Recipe, RunFolder, train
from engine.training.launch.processes import Processes
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.names import LONGEST
from engine.training.run.origin import Origin, make
from pages.controls.train.questions import answer, extend_name
from pages.controls.train.run_state import count_pictures
from pages.controls.train.session import Session
from views.core.payload import unpack

PRESET = Path(__file__).parents[2] / "assets" / "lab" / "copy.toml"


@dataclass
class Shelf:
    """A launcher that only makes the folders."""

    runs: Path
    started: list[str] = field(default_factory=list)

    def start(self, recipe: Recipe | str, name: str) -> Path:
        assert isinstance(recipe, Recipe)
        made = make(recipe, name, self.runs, Origin())
        self.started.append(made.name)
        return made

    def resume(self, name: str) -> Path:
        return self.runs / name


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    short = read_recipe(PRESET)
    return replace(short, schedule=replace(short.schedule, steps=6, warmup=0), log=replace(short.log, snapshots=4))


@pytest.fixture
def session(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    yield Session(launcher=Shelf(tmp_path), plan=recipe, name="tried", contrasts={"one head": recipe})


@pytest.fixture(scope="module")
def learnt(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "learnt"
    for _ in train(recipe, folder):
        pass
    return folder


@pytest.fixture
def trained(learnt: Path, tmp_path: Path) -> str:
    copytree(learnt, tmp_path / "learnt")
    return "learnt"


def ask(session: Session, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return unpack(answer(session, query))


def test_a_run_is_told_whole_at_first_and_then_only_what_is_new(session: Session, trained: str, tmp_path: Path) -> None:
    header, arrays = ask(session, ask="live", run=trained)
    lines = RunFolder(tmp_path / trained).read_metrics()
    assert header["fresh"] and header["status"]["state"] == "finished"
    assert header["status"]["chosen"][-1].startswith("Threads ")
    assert arrays["metrics.step"].data.tolist() == [line["step"] for line in lines]
    assert arrays["metrics.loss"].data[-1] == pytest.approx(lines[-1]["loss"], rel=1e-6)
    kept = [frame["step"] for frame in header["frames"] if frame["kept"]]
    assert kept == RunFolder(tmp_path / trained).snapshot_steps()
    again, nothing = ask(session, ask="live", run=trained, cursor=header["cursor"])
    assert not again["fresh"] and not again["frames"] and "metrics.step" not in nothing


def test_what_was_to_be_done_is_done_once_however_often_it_is_asked(session: Session) -> None:
    first, _ = ask(session, ask="start", once="a")
    again, _ = ask(session, ask="start", once="a")
    other, _ = ask(session, ask="start", once="b")
    assert (first["run"], again["run"], other["run"]) == ("tried", "tried", "tried 2")
    assert session.launcher.started == ["tried", "tried 2"]  # type: ignore[attr-defined]


def test_a_new_probe_has_its_whole_past(session: Session, trained: str, tmp_path: Path) -> None:
    ask(session, ask="probe", run=trained, text="abc", target="abc", picture=None, once="p")
    header, arrays = ask(session, ask="live", run=trained)
    while header["status"]["catching_up"]:
        header, arrays = ask(session, ask="live", run=trained)
    assert [frame["step"] for frame in header["frames"]] == RunFolder(tmp_path / trained).snapshot_steps()
    assert header["probe"]["pieces"] == ["a", "b", "c"] and arrays["frames.0.ids"].data.size == 3


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"ask": ["live"]},
        {"ask": "live"},
        {"ask": "live", "run": 3},
        {"ask": "live", "run": "../etc"},
        {"ask": "live", "run": "nobody"},
        {"ask": "curve", "run": None},
        {"ask": "order", "run": "learnt", "order": "fly"},
        {"ask": "order", "run": "learnt", "order": "steps", "steps": True},
        {"ask": "order", "run": "learnt", "order": "steps", "steps": -1},
        {"ask": "order", "run": "learnt", "order": "rate", "lr": float("nan")},
        {"ask": "order", "run": "", "order": "stop"},
        {"ask": "fork", "run": "learnt", "step": 5000},
        {"ask": "contrast", "change": ["one head"]},
        {"ask": "probe", "run": "learnt", "text": 5},
        {"ask": "probe", "run": "learnt", "text": "ABC"},
        {"ask": "probe", "run": "learnt", "text": "a" * 20_000},
        {"ask": "probe", "run": "learnt", "picture": -1},
        {"ask": "order", "run": "learnt", "order": "stop", "everything": 1},
        {"ask": "rename", "run": "learnt", "name": "../up"},
        {"ask": "undo", "token": {"a": 1}},
    ],
)
def test_whatever_a_browser_sends_is_answered_with_one_sentence(
    session: Session, trained: str, query: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"\w.*\."):
        answer(session, {"once": str(query), **query})


READ_ONLY = "the folder of runs must be one that Loupe may write to, got “Read-only file system”; correct LOUPE_RUNS"


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "start"},
        {"ask": "order", "order": "pause"},
        {"ask": "order", "order": "play"},
        {"ask": "order", "order": "reset"},
        {"ask": "fork", "step": 0},
        {"ask": "rename", "name": "mine now"},
        {"ask": "delete"},
        {"ask": "probe", "text": "abc", "target": "abc", "picture": None},
    ],
)
def test_a_folder_of_runs_that_is_read_only_is_one_sentence_and_runs_are_still_shown(
    session: Session, trained: str, query: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    session.launcher = Processes(tmp_path)
    for change in ("mkdir", "rename", "replace", "unlink"):
        monkeypatch.setattr(os, change, refuse)
    with pytest.raises(ValueError, match=READ_ONLY):
        answer(session, {"run": trained, "once": "a", **query} if query["ask"] != "start" else query)
    assert ask(session, ask="live", run=trained)[0]["status"]["state"] == "finished"


def test_a_folder_of_runs_that_is_none_is_one_sentence(session: Session, tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    session.launcher = Processes(tmp_path / "runs")
    with pytest.raises(ValueError, match="the folder of runs must be one .*, got “Not a directory”; correct"):
        answer(session, {"ask": "start", "once": "a"})


def test_a_link_to_a_step_that_was_not_kept_names_those_that_were(trained: str, tmp_path: Path) -> None:
    kept = RunFolder(tmp_path / trained).snapshot_steps()
    missing = next(step for step in range(6) if step not in kept)
    near = [max(one for one in kept if one < missing), min(one for one in kept if one > missing)]
    said = absent(f"{trained}@{missing}", tmp_path)
    assert said.endswith(f"those of {near[0]} and {near[1]}")
    assert absent("nobody@3", tmp_path) == "there is no run called 'nobody'; those here are learnt"
    assert "a whole number" in absent(f"{trained}@x", tmp_path)


def test_a_picture_is_chosen_among_those_that_are_held_out() -> None:
    recipe = read_recipe(PRESET.with_name("digits-vit.toml"))
    assert count_pictures(recipe) == len(split(recipe.data.table.split).test_labels)


def test_a_cursor_that_is_none_begins_anew(session: Session, trained: str) -> None:
    for cursor in ([1], "x", None, 10**9):
        assert ask(session, ask="live", run=trained, cursor=cursor)[0]["fresh"]


def test_a_name_with_more_behind_it_is_no_longer_than_a_name_may_be() -> None:
    assert extend_name("a" * 60, "from 1200") == "a" * (LONGEST - 10) + " from 1200"
    assert extend_name("tried", "one head") == "tried one head"


def visiting(session: Session, visitor: str) -> Session:
    """The same server as another visitor meets it, whose browser is elsewhere."""
    return Session(
        launcher=session.launcher,
        plan=session.plan,
        name="tried",
        contrasts=session.contrasts,
        visitor=visitor,
        at_machine=False,
    )


CHANGES: list[dict[str, Any]] = [
    *({"ask": "order", "order": order} for order in ("play", "pause", "steps", "stop", "rate", "reset")),
    {"ask": "rename", "name": "mine now"},
    {"ask": "delete"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.get("order", change["ask"]))
def test_a_run_is_changed_by_whoever_started_it_and_at_the_machine_alone(
    session: Session, tmp_path: Path, change: dict[str, Any]
) -> None:
    anna, max_ = visiting(session, "a" * 32), visiting(session, "b" * 32)
    run = ask(anna, ask="start", once="1")[0]["run"]
    for other in (max_, visiting(session, "")):
        with pytest.raises(ValueError, match="Only the owner of this run can change it; fork it"):
            ask(other, **change, run=run, once="2")
        header, _ = ask(other, ask="live", run=run)
        assert header["status"]["locked"].startswith("Only the owner of this run")
    assert ask(anna, ask="live", run=run)[0]["status"]["locked"] == ""
    assert ask(session, ask="live", run=run)[0]["status"]["locked"] == ""
    assert (tmp_path / run / "owner.txt").read_text() == "a" * 32
    ask(anna, **change, run=run, once="3")
    if change.get("order") == "reset":
        assert (tmp_path / run / "owner.txt").read_text() == "a" * 32  # whoever resets it


def test_a_run_of_the_command_line_is_that_of_the_machine_and_a_fork_is_ones_own(
    session: Session, trained: str, tmp_path: Path
) -> None:
    anna, max_ = visiting(session, "a" * 32), visiting(session, "b" * 32)
    with pytest.raises(ValueError, match="Only the owner of this run can change it"):
        ask(anna, ask="delete", run=trained, once="1")
    forked = ask(anna, ask="fork", run=trained, step=RunFolder(tmp_path / trained).snapshot_steps()[1], once="2")[0][
        "run"
    ]
    with pytest.raises(ValueError, match="Only the owner of this run can change it"):
        ask(max_, ask="delete", run=forked, once="3")
    token = ask(anna, ask="delete", run=forked, once="4")[0]["token"]
    with pytest.raises(ValueError, match="Only the owner of this run can change it"):
        ask(max_, ask="undo", token=token, once="5")
    assert ask(anna, ask="undo", token=token, once="6")[0]["run"] == forked
    ask(session, ask="delete", run=trained, once="7")


def test_the_run_that_came_with_loupe_says_what_it_is_to_every_visitor(session: Session) -> None:
    assert ask(visiting(session, "a" * 32), ask="live", run="")[0]["status"]["locked"] == ""
