"""Uploads are tried in a process of their own before the server opens them."""

from __future__ import annotations

import json
import pickle
import resource
import shutil
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.checkpoints import shipped_names, trial
from engine.checkpoints.locate import SHIPPED
from engine.checkpoints.save import FILE
from engine.checkpoints.trial import check_upload
from tests.engine.checkpoints.mutate import CHECKPOINTS

LACKS_WEIGHTS = r"^the weights must open within .* s and .* of memory besides their own, and do not; do not trust"
LACKS_TOKENIZER = r"^the tokenizer must read a short text within .* s and .* and does not; do not trust it"


@pytest.fixture(autouse=True)
def nothing_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("open_weights", "read_llama2c", "read_tokenizer", "unpack_header"):
        monkeypatch.delattr(trial, name)  # in this process alone


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / shipped_names()[0], tmp_path / "upload"))


def write_pickle(path: Path, content: bytes) -> None:
    """PyTorch's file with another pickle in it."""
    torch.save({"a": torch.zeros(3)}, path.with_suffix(".good"))
    with zipfile.ZipFile(path.with_suffix(".good")) as good, zipfile.ZipFile(path, "w") as bomb:
        for item in good.infolist():
            bomb.writestr(item.filename, content if item.filename.endswith("data.pkl") else good.read(item))
    path.with_suffix(".good").unlink()


def test_an_ordinary_upload_passes_in_little_time(upload: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    check_upload(upload)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    assert 0.1 < spent < 5  # seconds; 1.1 where nobody else computes, nearly all of it to import PyTorch


@pytest.mark.long
@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_every_format_passes(kind: str, tmp_path: Path) -> None:
    CHECKPOINTS[kind](tmp_path)
    check_upload(tmp_path)


def test_a_table_whose_names_all_collide_costs_the_trial_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Multiples of 2^61 - 1 have the same hash, so each new one is compared with all before it."""
    numbers = (pickle.encode_long(number * (2**61 - 1)) for number in range(1, 200_000))
    entries = b"".join(b"\x8a" + bytes([len(number)]) + number + b"N" for number in numbers)
    write_pickle(tmp_path / "model.pth", b"\x80\x02}(" + entries + b"u.")
    monkeypatch.setattr(trial, "SECONDS", 2)
    with pytest.raises(ValueError, match=LACKS_WEIGHTS):
        check_upload(tmp_path)


def test_a_file_that_is_scanned_again_and_again_costs_the_trial_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pickle(tmp_path / "model.pth", b"\x80\x02" + b"N0" * 2**20 + b"N.")
    with zipfile.ZipFile(tmp_path / "model.pth", "a") as bomb:
        for number in range(9):
            bomb.writestr(f"{number}/data.pkl", b"\x80\x02" + b"N0" * (2**21 - 9) + b"N.")
    monkeypatch.setattr(trial, "SECONDS", 2)
    with pytest.raises(ValueError, match=LACKS_WEIGHTS):
        check_upload(tmp_path)


def test_numbers_without_end_are_refused_in_the_readers_sentence(tmp_path: Path) -> None:
    """A file from before PyTorch 1.6, whose memory is taken before its numbers are read."""
    torch.save({"a": torch.zeros(3)}, tmp_path / "model.pt", _use_new_zipfile_serialization=False)
    content = (tmp_path / "model.pt").read_bytes()
    assert content.count(b"cpuq\x06K\x03") == 1
    content = content.replace(b"cpuq\x06K\x03", b"cpuq\x06\x8a\x05" + (2**33).to_bytes(5, "little"))
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.pt must be a PyTorch file of tensors and nothing else, and does not"):
        check_upload(tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (struct.pack("<Q", 2**62) + b"{}" + bytes(9), "must be a safetensors file, and does not begin like one"),
        (b"no weights", "must be a safetensors file, and does not begin like one"),
        (struct.pack("<Q", 200_005) + b'{"a":' + b"[" * 200_000, "is a damaged safetensors file: its header does not"),
    ],
    ids=["length", "text", "nested"],
)
def test_a_file_of_weights_that_is_none_is_refused_in_the_readers_sentence(
    content: bytes, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=rf"model\.safetensors {sentence}"):
        check_upload(tmp_path)


def test_a_trial_that_does_not_end_is_ended(upload: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "PATIENCE", 0.001)
    with pytest.raises(ValueError, match=LACKS_WEIGHTS):
        check_upload(upload)


@pytest.mark.parametrize("carried", [False, True])
def test_a_tokenizer_that_takes_too_much_memory_is_refused(
    carried: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one in the header of the weights."""
    vocabulary = {f"entry number {number}": number for number in range(50_000)}
    text = json.dumps({"version": "1.0", "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "entry"}})
    save_file({"a": torch.zeros(3)}, tmp_path / "model.safetensors", {FILE + "tokenizer.json": text} if carried else {})
    if not carried:
        (tmp_path / "tokenizer.json").write_text(text)
    check_upload(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(trial, "MEMORY", 2**24)
    with pytest.raises(ValueError, match=LACKS_TOKENIZER):
        check_upload(tmp_path)
    assert not any(scratch.iterdir())  # what the process had unpacked is gone with it


def test_what_has_no_tokenizer_or_no_weights_is_left_to_the_opening(upload: Path, tmp_path: Path) -> None:
    check_upload(tmp_path)
    (upload / "tokenizer.json").write_text("{")
    check_upload(upload)
    (upload / "tokenizer.json").unlink()
    check_upload(upload)
