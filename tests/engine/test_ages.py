"""What is old is told by days that were noted: a clock that is set ahead deletes nothing, and days that pass do."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.ages import DAY, FILE
from engine.budget import budget
from engine.training.run import trash
from engine.training.run.origin import MADE, forget_halves
from engine.training.run.visitor_texts import DATA, expire_texts
from server.classes.steps import Step
from server.classes.store import Classes

NOON = 20_000.5 * DAY


def test_a_clock_set_ahead_deletes_nothing_and_days_that_pass_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    clock = [NOON]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    place = tmp_path / "classes.sqlite"
    code, _secret = Classes(place).start("teacher", [Step("walkthrough")])
    kept: dict[str, Callable[[], bool]] = {
        "texts": (tmp_path / DATA / "abc").exists,
        "trash": lambda: bool(trash.list_deleted()),
        "halves": (tmp_path / f"{MADE}1-elsewhere-abc").exists,
        "class": lambda: code in Classes(place).versions(),
    }
    (tmp_path / DATA / "abc").mkdir(parents=True)
    (tmp_path / f"{MADE}1-elsewhere-abc").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").touch()
    for name in (DATA + "/abc", f"{MADE}1-elsewhere-abc"):
        os.utime(tmp_path / name, (NOON, NOON))
    trash.delete("run")

    def left() -> set[str]:
        expire_texts()
        trash.empty()
        forget_halves(tmp_path)
        return {name for name, is_there in kept.items() if is_there()}

    assert left() == set(kept)
    clock[0] = NOON + 40 * DAY  # it jumps
    assert left() == left() == set(kept)
    clock[0] = NOON
    (tmp_path / FILE).write_bytes(b"9999-99-99\n\0\xff" * 9)  # damaged: no day is known
    stay = {1: set(kept), 2: set(kept) - {"halves"}, 7: {"texts", "class"}, 30: set[str]()}
    for day in range(1, 31):
        clock[0] = NOON + day * DAY + 1
        found = left()
        assert found == stay.get(day, found)
