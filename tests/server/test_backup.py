"""What a server keeps is backed up while it is used, and restored elsewhere; nothing is overwritten unasked."""

import io
import os
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from server import backup
from server.classes.steps import Step
from server.classes.store import Classes
from tests.browser.harness import ROOT


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Of the command, in a folder whose settings count."""
    folder.mkdir(exist_ok=True)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("LOUPE_")}
    return subprocess.run(
        [sys.executable, "-m", "server.backup", *arguments],
        cwd=folder,
        env={**outside, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def list_tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_a_server_moves_to_another_place(tmp_path: Path) -> None:
    here, there, archive = tmp_path / "here", tmp_path / "there", str(tmp_path / "all.tar.gz")
    run = here / "kept runs" / "my run"
    (run / "latest").mkdir(parents=True)
    (run / "latest" / "model.safetensors").write_bytes(b"weights")
    (run / "metrics.jsonl").write_text("{}\n")
    (here / "kept runs" / ".queue").mkdir()
    (here / "kept runs" / ".queue" / "lock").touch()
    (here / "elsewhere").mkdir()
    (here / "elsewhere" / "config.json").write_text("{}")
    (here / "models").mkdir()
    (here / "models" / "linked").symlink_to(here / "elsewhere")
    (here / "loupe.toml").write_text('runs = "kept runs"\nmax_edits = 7\n')
    classes = Classes(here / "kept runs" / ".classes.sqlite")
    code, _ = classes.start("a teacher", [Step("attention")])
    with closing(sqlite3.connect(here / "kept runs" / ".classes.sqlite")) as live:
        live.execute("BEGIN IMMEDIATE")  # somebody writes
        saved = call(here, archive)
    assert saved.returncode == 0, saved.stderr
    assert "is there already" in call(here, archive).stderr
    assert "ends with .tar.gz" in call(here, str(tmp_path / "all.zip")).stderr
    assert Path(archive).stat().st_mode & 0o077 == 0

    restored = call(there, "--restore", archive)
    assert restored.returncode == 0, restored.stderr
    tree = list_tree(there)
    database = tree.pop("kept runs/.classes.sqlite")
    assert database and tree == {
        "kept runs/my run/latest/model.safetensors": b"weights",
        "kept runs/my run/metrics.jsonl": b"{}\n",
        "models/linked/config.json": b"{}",
        "loupe.toml": (here / "loupe.toml").read_bytes(),
    }
    assert Classes(there / "kept runs" / ".classes.sqlite").find(code).owner == "a teacher"

    (there / "kept runs" / "new").mkdir()
    before = list_tree(there)
    assert "is there already; move it away" in call(there, "--restore", archive).stderr
    assert list_tree(there) == before and (there / "kept runs" / "new").is_dir()
    replaced = call(there, "--restore", "--replace", archive)
    assert replaced.returncode == 0, replaced.stderr
    in_use = {f"kept runs/.classes.sqlite{end}" for end in ("-wal", "-shm")}
    assert not (there / "kept runs" / "new").exists() and list_tree(there).keys() == before.keys() - in_use
    assert not [path for path in there.rglob("*") if "restore" in path.name]


@pytest.mark.parametrize("name", ["../outside", "runs/../../outside", "/outside", "other/file", "runs", "runs/link"])
def test_what_is_no_backup_touches_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, archive = tmp_path / "there", tmp_path / "bad.tar.gz"
    monkeypatch.setattr(backup, "places", lambda: {one: there / one for one in ("classes.sqlite", "runs", "models")})
    entries = [tarfile.TarInfo("models/config.json"), tarfile.TarInfo(name)]
    if name == "runs/link":
        entries[1].type, entries[1].linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(archive, "w:gz") as file:
        for entry in entries:
            file.addfile(entry, io.BytesIO())
    with pytest.raises(ValueError, match="which has no place here"):
        backup.restore(archive)
    archive.write_bytes(archive.read_bytes()[:-20])
    with pytest.raises(ValueError, match="must be a whole backup of Loupe|which has no place here"):
        backup.restore(archive)
    archive.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="must be a whole backup of Loupe"):
        backup.restore(archive)
    assert not list_tree(there) and not (tmp_path / "outside").exists()
