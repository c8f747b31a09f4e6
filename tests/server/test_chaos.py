"""Visitors act while workers are killed and files are damaged (bench/chaos.py has the long form)."""

import pytest

from bench.chaos import main

pytestmark = pytest.mark.long


def test_nobody_meets_a_traceback_while_processes_die_and_files_are_damaged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOUPE_RUNS", "")  # which it sets
    assert main(seed=3, minutes=0.5) == 0, capsys.readouterr().out
