"""What a person asks of a run, in control.json."""

from pathlib import Path

import pytest

from engine.training.run.control import (
    SEEN,
    Order,
    Orders,
    begin_anew,
    n_steps,
    one_step,
    pause,
    read_order,
    set_rate,
    stop,
)
from engine.training.run.status import Status, write_status


def test_steps_that_are_asked_for_add_up(tmp_path: Path) -> None:
    write_status(tmp_path / "status.json", Status("paused", 40, 100))
    n_steps(tmp_path, 10)
    assert read_order(tmp_path / "control.json") == Order("pause", 50)
    n_steps(tmp_path, 10)
    one_step(tmp_path)
    assert read_order(tmp_path / "control.json") == Order("pause", 61)
    with pytest.raises(ValueError, match="the number of steps must be at least 1, got 0"):
        n_steps(tmp_path, 0)


def test_a_new_start_forgets_the_last_order_but_not_the_learning_rate(tmp_path: Path) -> None:
    set_rate(tmp_path, 0.5)
    stop(tmp_path)
    begin_anew(tmp_path)
    assert read_order(tmp_path / "control.json") == Order("run", 0, 0.5)


def test_an_order_given_after_a_launcher_began_anew_is_not_forgotten_by_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SEEN, str(begin_anew(tmp_path)))
    orders = Orders(tmp_path / "control.json")
    orders.clear()
    assert orders.now() == Order()
    pause(tmp_path)
    orders.clear()
    assert orders.now() == Order("pause")
    monkeypatch.delenv(SEEN)
    orders.clear()
    assert orders.now() == Order()


def test_a_control_file_that_was_taken_away_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEEN, "1")
    Orders(tmp_path / "control.json").clear()
    assert read_order(tmp_path / "control.json") == Order()
