"""The table of runs, what is damaged in it, and runs that are renamed, deleted and begun again."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from engine.ages import FILE
from engine.budget import budget
from engine.training import Recipe, RunFolder, read_recipe, train
from engine.training.recipe.recipe import Train
from engine.training.run import runs as table_of_runs
from engine.training.run import trash
from engine.training.run.folder import size
from engine.training.run.fork import reset
from engine.training.run.origin import Origin, make
from engine.training.run.runs import Run, format_table, runs
from engine.training.run.status import Status, write_status
from engine.training.run.trash import delete, list_deleted, rename, undo_delete


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that came to its end, to be copied."""
    from tests.engine.training.conftest import RECIPE

    place = tmp_path_factory.mktemp("trained")
    (place / "corpus.txt").write_text("the cat sat on the mat, and the dog sat on the log.\n" * 20)
    (place / "small.toml").write_text(RECIPE)
    for _ in train(read_recipe(place / "small.toml"), place / "run"):
        pass
    return place / "run"


@pytest.fixture
def place(trained: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder of runs with one called "mine"."""
    shutil.copytree(trained, tmp_path / "runs" / "mine")
    yield tmp_path / "runs"


def only(place: Path) -> Run:
    (found,) = runs(place)
    return found


def test_a_row_has_what_the_files_say(place: Path) -> None:
    run, found = RunFolder(place / "mine"), only(place)
    last = run.read_metrics()[-1]
    status, measures = found.status, found.measures
    assert (found.name, status.state, status.step, found.steps, found.task) == ("mine", "finished", 12, 12, "text")
    assert (measures.loss, measures.accuracy) == (last["loss"], last["accuracy"])
    assert (measures.held_out_loss, measures.held_out_accuracy) == (last["held_out_loss"], last["held_out_accuracy"])
    assert measures.seconds == last["seconds"]
    assert found.parameters == json.loads((run.checkpoint / "card.json").read_text())["parameters"]
    assert found.size == sum(file.stat().st_size for file in run.path.rglob("*") if file.is_file())
    assert 0 < found.origin.created <= time.time()
    assert not found.status.can_resume and not found.fault and not found.origin.run and found.position is None


def test_no_runs_are_an_empty_table(tmp_path: Path) -> None:
    assert runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("file", "content", "fault"),
    [
        ("recipe.toml", b"[model", "recipe.toml: this is not TOML"),
        ("recipe.toml", b"\xff\xfe", "recipe.toml: a recipe must be UTF-8 text"),
        ("recipe.toml", None, "a recipe must be a file, got recipe.toml"),
        ("status.json", b"{", "status.json"),
        ("status.json", b'{"state": 3}', "status.json is ignored: state must be a text, got 3"),
        ("status.json", b"[" * 100_000, "status.json is ignored: it nests too deeply"),
        ("status.json", b"\xff", "status.json"),
        ("metrics.jsonl", b'{"step": 1}\n', "metrics.jsonl must have one logged step a line, and has"),
        ("metrics.jsonl", b'{"step": "one", "seconds": 1.0}\n', "metrics.jsonl must have one logged step a line"),
        ("metrics.jsonl", b"\x00\xff\n" * 9, "metrics.jsonl must have one logged step a line"),
        ("snapshots/step-0000012.safetensors", b"x" * 40, "the weights do"),
        ("origin.json", b"[]", "origin.json"),
        ("origin.json", b'{"changes": ["optimiser.lr=fast"]}', "origin.json is damaged"),
    ],
)
def test_a_damaged_file_is_a_row_that_names_it_and_all_else_is_still_told(
    place: Path, file: str, content: bytes | None, fault: str
) -> None:
    path = place / "mine" / file
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    found = only(place)
    said = found.fault or found.status.error
    assert fault in said
    assert found.name == "mine" and found.size > 0
    if file != "status.json":
        assert found.status.state == "finished"
    else:
        assert found.status.state == "killed" and found.status.can_resume and found.measures.loss is not None
    assert str(place) not in said
    assert format_table([found])[1].endswith(said)


@pytest.mark.parametrize("what", ["folder", "dangling"])
def test_what_is_no_run_at_all_is_a_row_too(tmp_path: Path, what: str) -> None:
    (tmp_path / "odd").mkdir()
    if what == "folder":
        (tmp_path / "odd" / "status.json").mkdir()
        (tmp_path / "odd" / "metrics.jsonl").mkdir()
    else:
        (tmp_path / "odd" / "recipe.toml").symlink_to("nowhere")
        (tmp_path / "odd" / "snapshots").write_text("a file")
    assert only(tmp_path).fault
    (tmp_path / "file").write_text("no folder")
    assert [run.name for run in runs(tmp_path)] == ["odd"]


def test_a_line_that_is_still_being_written_is_not_damage(place: Path) -> None:
    with (place / "mine" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "loss"')
    assert not only(place).fault


def test_a_last_loss_is_found_behind_thousands_of_lines_that_have_none(place: Path) -> None:
    path = place / "mine" / "metrics.jsonl"
    line = json.loads(path.read_text().splitlines()[-1])
    later = json.dumps(line | {"loss": 0.25, "held_out_loss": None, "held_out_accuracy": None, "seconds": 99.0})
    with path.open("a") as file:
        file.write(f"{later}\n" * 4000)
    found = only(place).measures
    assert (found.loss, found.held_out_loss, found.seconds) == (0.25, line["held_out_loss"], 99.0)


def test_two_hundred_runs_are_told_quickly_once_they_were_read(place: Path) -> None:
    for number in range(199):
        shutil.copytree(place / "mine", place / f"run {number}")
    assert len(runs(place)) == 200
    began = time.process_time()
    for _ in range(5):
        runs(place)
    assert (time.process_time() - began) / 5 < 0.1


def test_what_has_changed_is_read_again_and_only_that(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(place / "mine", place / "other")
    runs(place)
    read: list[str] = []
    reading = table_of_runs.read_run
    monkeypatch.setattr(table_of_runs, "read_run", lambda run: (read.append(run.path.name), reading(run))[1])
    assert runs(place) and read == []
    write_status(place / "mine" / "status.json", Status("failed", 3, 12, error="why", cause="disk full"))
    found = {run.name: run.status for run in runs(place)}
    assert read == ["mine"]
    assert (found["mine"].state, found["mine"].cause, found["mine"].can_resume) == ("failed", "disk full", True)
    assert found["other"].state == "finished"


def test_a_process_that_ends_is_noticed_though_no_file_changes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_status(place / "mine" / "status.json", Status("running", 3, 12))
    assert only(place).status.state == "running"
    monkeypatch.setattr("engine.training.launch.process.start_time", lambda pid: "2@00000000")
    assert only(place).status.state == "killed" and only(place).status.can_resume


def test_a_deleted_run_can_be_had_back_as_it_was(place: Path) -> None:
    before = {file.name: file.read_bytes() for file in (place / "mine").iterdir() if file.is_file()}
    token = delete("mine", place)
    assert runs(place) == [] and not (place / "mine").exists()
    assert [(one.name, one.token) for one in list_deleted(place)] == [("mine", token)]
    assert undo_delete(token, place) == "mine"
    assert {file.name: file.read_bytes() for file in (place / "mine").iterdir() if file.is_file()} == before
    assert list_deleted(place) == []


def test_a_deleted_run_whose_name_was_taken_comes_back_under_another(place: Path, trained: Path) -> None:
    token = delete("mine", place)
    shutil.copytree(trained, place / "mine")
    assert undo_delete(token, place) == "mine 2"


@pytest.mark.parametrize("token", ["../mine", "mine", "", "mine~20200101T000000000000", "/etc"])
def test_only_what_was_deleted_can_be_had_back(place: Path, token: str) -> None:
    with pytest.raises(ValueError, match="cannot be had back"):
        undo_delete(token, place)
    with pytest.raises(ValueError, match="a run's name must be|there is no run called"):
        delete("../mine", place)


def aged(place: Path, token: str, days: float) -> str:
    """As if it had been deleted so long ago."""
    when = (datetime.now(UTC) - timedelta(days=days)).strftime(trash.WHEN)
    older = f"{token.rpartition('~')[0]}~{when}"
    os.rename(place / ".deleted" / token, place / ".deleted" / older)
    return older


def test_what_was_deleted_long_ago_goes_for_good_with_the_next(place: Path, trained: Path) -> None:
    shutil.copytree(trained, place / "x")
    aged(place, delete("mine", place), budget.deleted_days + 1)
    (place / FILE).write_text("".join(f"{date.today() - timedelta(days)}\n" for days in range(budget.deleted_days)))
    token = delete("x", place)
    assert [one.token for one in list_deleted(place)] == [token]


def test_deleted_runs_make_room_the_oldest_first(place: Path, trained: Path) -> None:
    shutil.copytree(trained, place / "later")
    aged(place, delete("mine", place), 2)
    kept = delete("later", place)
    freed = trash.empty(place, most=1)
    assert freed > 10_000 and [one.token for one in list_deleted(place)] == [kept]


def test_a_full_disk_of_deleted_runs_does_not_hold_up_a_new_one(
    place: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.training.recipe.limit_checks import check_room

    delete("mine", place)
    monkeypatch.setattr(budget, "runs_disk", size(place) + 1)
    check_room([recipe], place)
    assert list_deleted(place) == []


def test_a_run_that_fits_alone_and_not_beside_the_others_is_refused(
    place: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.training.recipe.limit_checks import check_room, check_start, disk_need

    monkeypatch.setattr(budget, "runs_disk", disk_need(recipe))
    check_start(recipe)
    snapshots = replace(recipe, log=replace(recipe.log, snapshots=20))
    whole, adapter = (disk_need(replace(snapshots, train=Train(parts))) for parts in ("all", "lora"))
    assert adapter < 0.7 * whole  # of it, the snapshots hold what learns alone
    with pytest.raises(ValueError, match="together may take .* where this one needs .* LOUPE_RUNS_DISK_MIB"):
        check_room([recipe], place)


def test_a_run_that_trains_is_neither_renamed_nor_deleted_nor_reset(place: Path) -> None:
    write_status(place / "mine" / "status.json", Status("running", 3, 12))
    for change in (lambda: delete("mine", place), lambda: rename("mine", "x", place), lambda: reset("mine", place)):
        with pytest.raises(ValueError, match="mine must be at rest for that, and is running; stop it first"):
            change()


def test_what_a_killed_process_had_begun_to_make_goes_with_the_next_run(place: Path, recipe: Recipe) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    here = socket.gethostname()
    names = f"{os.getpid()}-{here}-0a", f"{ended.pid}-{here}-0b", f"{ended.pid}-another-host-0c"
    ours, theirs, elsewhere = (place / f".made-{name}" for name in names)
    for half in (ours, theirs, elsewhere):
        (half / "snapshots").mkdir(parents=True)
    make(recipe, "another", place, Origin())
    assert ours.is_dir() and not theirs.exists() and elsewhere.is_dir()
    for half in (ours, elsewhere):  # by a process that once had our number, and one of which nothing else is known
        os.utime(half, (0, 0))
    (place / FILE).write_text("2020-01-01\n")  # a day before today
    make(recipe, "a third", place, Origin())
    assert not ours.exists() and not elsewhere.exists()
    assert [run.name for run in runs(place)] == ["a third", "another", "mine"]


def test_a_run_gets_another_name_that_no_other_has(place: Path, trained: Path) -> None:
    shutil.copytree(trained, place / "other")
    assert rename("mine", "Its new name", place) == place / "Its new name"
    assert {run.name for run in runs(place)} == {"Its new name", "other"}
    with pytest.raises(ValueError, match="there is a run called 'OTHER' already"):
        rename("Its new name", "OTHER", place)
    assert rename("other", "Other", place).name == "Other"  # its own name otherwise written
    for wrong in ("../x", "", "a/b"):
        with pytest.raises(ValueError, match="a run's name must be"):
            rename("Other", wrong, place)


def test_a_run_whose_status_is_damaged_can_be_deleted(place: Path) -> None:
    (place / "mine" / "status.json").write_text("{")
    delete("mine", place)
    assert runs(place) == []


def test_a_reset_run_begins_at_step_0_and_comes_to_the_same_numbers(place: Path, recipe: Recipe) -> None:
    run = RunFolder(place / "mine")
    before, learned = run.read_metrics(), read_recipe(run.recipe)
    token = reset("mine", place)
    assert read_recipe(run.recipe) == learned
    assert run.read_metrics() == [] and run.snapshot_steps() == [] and only(place).status.state == "new"
    for _ in train(read_recipe(run.recipe), run.path):
        pass
    clock = ("seconds", "tokens_per_second")
    after = run.read_metrics()
    for line in (*after, *before):
        for name in clock:
            del line[name]
    assert after == before
    assert undo_delete(token, place) == "mine 2"
    assert RunFolder(place / "mine 2").snapshot_steps() == run.snapshot_steps()


def test_the_table_is_lines_in_columns(place: Path, recipe: Recipe) -> None:
    write_status(place / "mine" / "status.json", replace(Status("failed", 7, 12), error="the disk is full."))
    titles, line = format_table(runs(place))
    assert titles.split() == ["name", "state", "step", "loss", "held-out", "parameters", "task", "MiB"]
    assert line.startswith("mine") and "7/12" in line and line.endswith("the disk is full.")
    assert titles.index("state") == line.index("failed")
