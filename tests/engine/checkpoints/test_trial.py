"""Uploads are tried in a process of their own before the server opens them."""

from __future__ import annotations

import resource
import shutil
import time
from pathlib import Path

import pytest

from engine.checkpoints import shipped_names, trial
from engine.checkpoints.locate import SHIPPED
from engine.checkpoints.trial import check_upload
from tests.engine.checkpoints.mutate import described


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / shipped_names()[0], tmp_path / "upload"))


def test_an_ordinary_upload_passes_without_a_second_engine(upload: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    check_upload(upload)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    assert 0.01 < spent < 1.5  # PyTorch alone would take more to import


def test_a_tokenizer_that_takes_too_much_memory_or_time_is_refused(
    upload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "MEMORY", 2**24)
    with pytest.raises(ValueError, match=r"must read a short text within 20 s and .* and does not; do not trust"):
        check_upload(upload)
    monkeypatch.undo()
    monkeypatch.setattr(trial, "PATIENCE", 0.001)
    with pytest.raises(ValueError, match="must read a short text"):
        check_upload(upload)


def test_a_tokenizer_in_the_header_of_the_weights_is_tried_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cat").mkdir()
    described(tmp_path / "cat")
    check_upload(tmp_path / "cat")
    monkeypatch.setattr(trial, "MEMORY", 2**24)
    with pytest.raises(ValueError, match="must read a short text"):
        check_upload(tmp_path / "cat")


def test_what_has_no_tokenizer_or_does_not_open_is_left_to_the_opening(tmp_path: Path) -> None:
    started = time.monotonic()
    check_upload(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    check_upload(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    check_upload(tmp_path)
    assert time.monotonic() - started < 30
