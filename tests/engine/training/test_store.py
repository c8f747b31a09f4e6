"""Run directories in a store: what one machine writes the others have, and what was deleted here is gone there."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from engine.training import Recipe, RunFolder, read_status, train
from engine.training.cluster import store as stores
from engine.training.cluster.store import Store
from engine.training.run.control import read_order, set_rate
from engine.training.run.origin import Origin, make
from engine.training.run.runs import runs
from engine.training.run.trash import delete, list_deleted, rename, undo_delete
from tests.browser.harness import free_port
from tests.engine.training.waiting import until

ROOT = Path(__file__).parents[3]


def contents(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def fill(store: Store, recipe: Recipe, name: str) -> Path:
    folder = make(recipe, name, store.folder, Origin())
    list(train(recipe, folder))
    return folder


def check_two_machines(url: str, place: Path, recipe: Recipe) -> None:
    """What the store is for, at any address."""
    here, there = Store(url, place / "here"), Store(url, place / "there")
    run = fill(here, recipe, "one")
    here.sync_all()
    there.sync_all()
    assert contents(there.folder / "one") == contents(run) and len(contents(run)) > 8
    (row,) = runs(there.folder)
    assert (row.status.state, row.status.step, row.fault) == ("finished", recipe.schedule.steps, "")

    set_rate(there.folder / "one", 0.5)  # what a person orders elsewhere comes to the run
    there.sync_all()
    here.sync_all()
    assert read_order(run / "control.json").lr == 0.5

    (run / "snapshots" / "step-0000000.safetensors").unlink()  # as a run thins out what it keeps
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "loss": 1.0, "seconds": 9.0}\n')
    here.sync_all()
    there.sync_all()
    assert contents(there.folder / "one") == contents(run)

    rename("one", "two", there.folder)
    there.sync_all()
    here.sync_all()
    assert [path.name for path in here.folder.iterdir() if not path.name.startswith(".")] == ["two"]
    undo_delete(list_deleted(here.folder)[0].token, here.folder)  # what another machine took away can be had back
    delete("two", here.folder)
    here.sync_all()
    there.sync_all()
    assert {row.name for row in runs(there.folder)} == {row.name for row in runs(here.folder)} == {"one"}


def test_two_machines_have_the_same_runs(recipe: Recipe, tmp_path: Path) -> None:
    check_two_machines(f"file://{tmp_path}/store", tmp_path, recipe)


def test_a_store_that_is_not_there_takes_nothing_away(recipe: Recipe, tmp_path: Path) -> None:
    here = Store(f"file://{tmp_path}/store", tmp_path / "here")
    fill(here, recipe, "one")
    here.sync_all()
    os.rename(tmp_path / "store", tmp_path / "unmounted")
    (tmp_path / "store").mkdir()
    for sync in (here.sync_all, partial(here.sync, "one")):
        with pytest.raises(here.failures, match="the store is not there"):
            sync()
    assert [row.name for row in runs(here.folder)] == ["one"]
    with pytest.raises(ValueError, match="an address that fsspec reads, got 'nothing://x'"):
        Store("nothing://x", tmp_path / "here")


def test_who_trains_writes_and_hears_what_is_asked_elsewhere(recipe: Recipe, tmp_path: Path) -> None:
    here, there = (Store(f"file://{tmp_path}/store", tmp_path / name) for name in ("here", "there"))
    run = fill(here, recipe, "one")
    here.sync("one")
    there.sync_all()
    status = (run / "status.json").read_text()
    for folder, text in ((run, "here"), (there.folder / "one", "there")):
        (folder / "control.json").write_text(f'{{"mode": "{"stop" if text == "there" else "run"}"}}')
        (folder / "log.txt").write_text(text)
    there.sync("one")
    trained = status.replace('"finished"', '"running"')
    assert trained != status
    (run / "status.json").write_text(trained)
    assert stores.is_trained_here(run)  # by this process
    here.sync("one")
    assert read_order(run / "control.json").mode == "stop" and (run / "log.txt").read_text() == "here"
    there.sync("one")
    assert contents(there.folder / "one") == contents(run)


def test_two_runs_of_one_name_stay_apart(recipe: Recipe, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here, there = (Store(f"file://{tmp_path}/store", tmp_path / name) for name in ("here", "there"))
    fill(here, recipe, "one")
    mine = make(recipe, "one", there.folder, Origin())
    before = contents(mine)
    here.sync_all()
    there.sync_all()
    assert contents(mine) == before and "rename the one here" in caplog.text
    rename("one", "mine", there.folder)
    there.sync_all()
    here.sync_all()
    assert {row.name for row in runs(here.folder)} == {row.name for row in runs(there.folder)} == {"one", "mine"}


def test_what_else_lies_in_a_store_is_no_run(recipe: Recipe, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    there = tmp_path / "store"
    here = Store(f"file://{there}", tmp_path / "here")
    here.sync_all()
    for file in ("notes.txt", "texts/large.bin", "weights/latest/model.safetensors", "results/status.json"):
        (there / file).parent.mkdir(exist_ok=True, parents=True)
        (there / file).write_bytes(b"theirs")
    (there / "empty").mkdir()
    (here.folder / "drafts").mkdir()
    (here.folder / "drafts" / "mine.txt").write_text("not for others")
    before = contents(there)
    make(recipe, "texts", here.folder, Origin())  # one of the same name stays apart
    for sync in (here.sync_all, partial(here.sync, "texts"), here.sync_all):
        sync()
    assert "rename the run here" in caplog.text
    assert contents(there) == before and {row.name for row in runs(here.folder)} == {"texts"}
    assert {path.name for path in here.folder.iterdir() if not path.name.startswith(".")} == {"drafts", "texts"}
    with pytest.raises(ValueError, match="there is no run called 'drafts'"):
        delete("drafts", here.folder)
    delete("texts", here.folder)
    here.sync_all()
    assert contents(there) == before


def test_a_training_keeps_itself_in_the_store(recipe_path: Path, tmp_path: Path) -> None:
    url, copies = f"file://{tmp_path}/store", tmp_path / "copies"
    environment = os.environ | {"LOUPE_RUNS": url, "LOUPE_RUNS_COPY": str(copies), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "engine", "train", str(recipe_path), "--quiet", "--out", str(copies / "one")]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=120)
    there = Store(url, tmp_path / "there")
    there.sync_all()
    status = read_status(RunFolder(there.folder / "one").status)
    assert status is not None and status.state == "finished"
    assert contents(there.folder / "one") == contents(copies / "one")


def answers(port: int) -> bool:
    with closing(socket.socket()) as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that speaks as S3 does."""
    pytest.importorskip("s3fs", reason="S3 needs requirements-store.txt")
    pytest.importorskip("moto.server", reason="a server of S3 for the test needs moto[server]")
    port = free_port()
    for name, value in (
        ("ACCESS_KEY_ID", "x"),
        ("SECRET_ACCESS_KEY", "x"),
        ("DEFAULT_REGION", "us-east-1"),
        ("ENDPOINT_URL", f"http://127.0.0.1:{port}"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: answers(port), 60)
        import s3fs

        s3fs.S3FileSystem().mkdir("lab")
        yield "s3://lab/runs"
    finally:
        server.kill()
        server.wait()


@pytest.mark.long
def test_two_machines_meet_in_s3(bucket: str, recipe: Recipe, tmp_path: Path) -> None:
    check_two_machines(bucket, tmp_path, recipe)
