"""What is uploaded: the files of a checkpoint or a zip of them, and what only looks like it."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoints import Checkpoint, load, unpack
from engine.checkpoints.unpack import CHUNK
from engine.runtime.run import run
from engine.tokenizers.kinds.word import train
from tests.engine import tiny

MIB = 2**20


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("saved") / "cat"
    tokenizer = train(["the cat sat on the mat"])
    Checkpoint(tiny.model(tiny.config(vocab_size=tokenizer.vocab_size)), tokenizer, {"title": "A cat"}).save(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    made.seek(0)
    return made


def sent(files: dict[str, bytes]) -> list[tuple[str, BinaryIO]]:
    return [(name, io.BytesIO(data)) for name, data in files.items()]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("top", ["", "my-model/"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_of_a_checkpoint_opens_as_it_was(saved: dict[str, bytes], top: str, method: int, tmp_path: Path) -> None:
    files = {top + name: data for name, data in saved.items()}
    found = unpack([("cat.zip", zipped(files, method))], tmp_path / "new")
    assert found.notes == ()
    assert {path.name: path.read_bytes() for path in found.folder.iterdir()} == saved
    checkpoint = load(found.folder)
    assert checkpoint.tokenizer is not None and checkpoint.card == {"title": "A cat"}


def test_files_sent_one_by_one_are_the_same(saved: dict[str, bytes], tmp_path: Path) -> None:
    folder = unpack(sent(saved), tmp_path).folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == saved
    weights = {"any name.safetensors": saved["model.safetensors"], "config.json": saved["config.json"]}
    alone = load(unpack(sent(weights), tmp_path / "alone").folder)
    assert run(alone.model, [1, 2])["logits"].equal(run(load(folder).model, [1, 2])["logits"])


def test_what_belongs_to_no_checkpoint_is_left_out_and_named(saved: dict[str, bytes], tmp_path: Path) -> None:
    more = {
        "train.py": b"import os",
        "__MACOSX/._config.json": b"x",
        "old/config.json": b"{}",
        "run.sh": b"",
        "a.exe": b"",
    }
    found = unpack([("cat.zip", zipped(saved | more))], tmp_path)
    assert names(tmp_path) == saved.keys()
    assert found.notes == ("Left out as no part of a checkpoint: train.py, old/config.json, run.sh, a.exe.",)


@pytest.mark.parametrize(
    "name",
    [
        "../config.json",
        "a/../../config.json",
        "/etc/config.json",
        "C:config.json",
        "C:\\config.json",
        "..\\config.json",
        "config.json\0.txt",
        "a\nb/config.json",
        "con/config.json",
        "NUL.json",
        "\udcff.safetensors",
        "x" * 300 + ".safetensors",
        "..",
    ],
)
def test_names_that_lead_elsewhere_are_refused(name: str, saved: dict[str, bytes], tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with pytest.raises(ValueError, match="must have plain names of files, got .*; do not trust it"):
        unpack([*sent(saved), (name, io.BytesIO(b"{}"))], folder)
    assert names(tmp_path) == {"new"} and not names(folder)
    if name.isascii() and "\0" not in name:
        with pytest.raises(ValueError, match=r"cat.zip cannot be unpacked: .*must have plain names"):
            unpack([("cat.zip", zipped(saved | {name: b"{}"}))], folder)
        assert names(tmp_path) == {"new"} and not names(folder)


def entry(name: str, **changes: Any) -> io.BytesIO:
    """A zip with one file more, whose directory entry was changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.compress_type = changes.pop("compress_type", zipfile.ZIP_DEFLATED)
        archive.writestr(info, changes.pop("data", b"{}"))
        for key, value in changes.items():
            setattr(info, key, value)
    made.seek(0)
    return made


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (entry("config.json", external_attr=(stat.S_IFLNK | 0o777) << 16), "is a link or a device"),
        (entry("config.json", external_attr=(stat.S_IFCHR | 0o666) << 16), "is a link or a device"),
        (entry("config.json", flag_bits=1), "must not be encrypted, and 'config.json' is"),
        (entry("config.json", compress_type=zipfile.ZIP_LZMA), "must be packed as usual"),
        (entry("config.json", data=bytes(300 * MIB // 8)), r"bytes would become 39,321,600; do not trust it"),
        (entry("config.json", file_size=3), r"'config.json' in x.zip is damaged"),
        (entry("config.json", file_size=3 * MIB, compress_size=3 * MIB), r"'config.json' in x.zip is damaged"),
        (entry("config.json", CRC=1), r"'config.json' in x.zip is damaged .*CRC"),
        (io.BytesIO(b""), "x.zip must be a zip file"),
        (io.BytesIO(b"PK\3\4 is how they begin"), "x.zip must be a zip file"),
        (entry("readme.html"), "must hold the files of a checkpoint, got 'readme.html'"),
        (zipped({}), "must hold the files of a checkpoint, got nothing"),
        (zipped({"a/config.json": b"", "b/config.json": b""}), "must be of one checkpoint, got 2 folders"),
        (zipped({"vocab.txt": b"", "config.json": b"{}", "inner.zip": b""}), None),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_hostile_zip_is_one_sentence(archive: io.BytesIO, message: str | None, tmp_path: Path) -> None:
    archive.seek(0)
    if message is None:
        assert unpack([("x.zip", archive)], tmp_path).notes == ("Left out as no part of a checkpoint: inner.zip.",)
        return
    with pytest.raises(ValueError, match=message) as raised:
        unpack([("x.zip", archive)], tmp_path)
    assert "\n" not in str(raised.value)
    assert not names(tmp_path)


def test_names_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    data = bytearray(entry("mod\u00e9.safetensors").getvalue())
    packed = bytes(data).replace("mod\u00e9".encode(), b"mod\xe9\xe9")
    with pytest.raises(ValueError, match=r"x.zip must be a zip file.*utf-8"):
        unpack([("x.zip", io.BytesIO(packed))], tmp_path)
    unflagged = io.BytesIO(packed.replace(struct.pack("<H", 0x800), struct.pack("<H", 0)))
    with pytest.raises(ValueError, match=r"x.zip must name its files in UTF-8"):
        unpack([("x.zip", unflagged)], tmp_path)


def test_a_file_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must hold each file once, got 'Config.JSON.safetensors' twice"):
        unpack([("Config.JSON.safetensors", io.BytesIO()), ("config.json.safetensors", io.BytesIO())], tmp_path)


def test_a_directory_that_says_it_is_huge_is_not_read(tmp_path: Path) -> None:
    data = bytearray(zipped({"config.json": b"{}"}).getvalue())
    at = data.rfind(b"PK\5\6")
    struct.pack_into("<L", data, at + 12, 2**31)
    with pytest.raises(ValueError, match=r"x.zip must list its files in at most 4,194,304 bytes, got 2,147,483,648"):
        unpack([("x.zip", io.BytesIO(data))], tmp_path)


def test_more_than_the_limit_is_refused_by_what_is_said_and_by_what_comes(tmp_path: Path) -> None:
    data = bytes(range(256)) * (3 * MIB // 256)
    with pytest.raises(ValueError, match=r"an upload may hold 1,048,576 bytes, got 3,145,730; raise LOUPE_MAX_UPLOAD"):
        unpack([("x.zip", zipped({"a.bin": data, "config.json": b"{}"}))], tmp_path, most=MIB)
    with pytest.raises(ValueError, match=r"'a.bin' must be of at most 1,048,574 bytes"):
        unpack([("config.json", io.BytesIO(b"{}")), ("a.bin", io.BytesIO(data))], tmp_path, most=MIB)
    assert not names(tmp_path)


def test_no_file_is_in_memory_whole(tmp_path: Path) -> None:
    class Watched(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.largest = max(self.largest, len(data))
            return data

    file = Watched(bytes(5 * MIB))
    unpack([("a.bin", file)], tmp_path)
    assert file.largest == CHUNK


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
def test_an_upload_that_the_disk_has_no_room_for_is_not_called_damaged(
    saved: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "open", lambda *_: open("/dev/full", "wb"))
    with pytest.raises(ValueError, match="^the disk must have room for 'model.safetensors', and is full; try again"):
        unpack([("model.safetensors", io.BytesIO(saved["model.safetensors"]))], tmp_path)
    assert not names(tmp_path)


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(ValueError, match="must be empty"):
        unpack([("config.json", io.BytesIO(b"{}"))], tmp_path)
    assert names(tmp_path) == {"mine"}


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_damaged_zip_writes_nothing_outside_and_raises_nothing_else(
    saved: dict[str, bytes], tmp_path: Path, data: st.DataObject
) -> None:
    raw = bytearray(zipped({"cat/" + name: part for name, part in saved.items()}).getvalue())
    end = len(raw) - 1
    for at in data.draw(st.lists(st.one_of(st.integers(0, end), st.integers(end - 400, end)), min_size=1, max_size=4)):
        raw[at] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    folder = tmp_path / "new"
    try:
        unpack([("cat.zip", io.BytesIO(cut))], folder, most=MIB)
    except ValueError as error:
        assert "\n" not in str(error) and "cat" in str(error) or "upload" in str(error), error
        assert not folder.exists() or not names(folder)
    assert names(tmp_path) <= {"new"}
    for file in folder.iterdir() if folder.exists() else ():
        file.unlink()
