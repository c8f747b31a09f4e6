import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.training import Recipe, RunFolder, train
from engine.training.launch.pace import time_left
from engine.training.probe.frames import Frame, FrameFile
from engine.training.probe.probe import Probe, read_probe, watch
from engine.training.probe.snapshot_frames import frame_files, frames_of_snapshots
from engine.training.run.live import Live, thin_lines
from engine.training.run.marks import marks


@pytest.fixture
def run(recipe: Recipe, tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    list(train(recipe, made.path))
    return made


def steps(frames: tuple[Frame, ...]) -> list[int]:
    return [one.step for one in frames]


def test_the_first_answer_is_everything_and_the_next_nothing(run: RunFolder) -> None:
    live = Live(run.path)
    first = live.since()
    assert list(first.metrics) == run.read_metrics()
    assert set(run.snapshot_steps()) <= set(steps(first.frames)) and first.watched
    assert first.status is not None and first.status.state == "finished" and first.seconds_left == 0
    assert first.answer is not None and first.answer.probe == read_probe(run.path) and first.answer.pieces
    assert not first.anew and not first.fault
    second = live.since(first.cursor)
    assert (second.metrics, second.frames, second.watched, second.anew) == ((), (), (), frozenset())
    assert second.cursor == first.cursor and second.marks == first.marks


def test_a_reader_that_polls_while_the_run_goes_on_is_told_each_thing_once(recipe: Recipe, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    live, cursor = Live(run.path), None
    told: dict[str, list[int]] = {"metrics": [], "frames": [], "watched": []}
    for _ in train(recipe, run.path):
        update = live.since(cursor)
        cursor = update.cursor
        told["metrics"] += [one["step"] for one in update.metrics]
        told["frames"] += steps(update.frames)
        told["watched"] += [one.step for one in update.watched]
        assert not update.anew
    whole = live.since()
    assert told["metrics"] == [one["step"] for one in run.read_metrics()]
    assert told["frames"] == steps(whole.frames)
    assert told["watched"] == [one.step for one in whole.watched]


def test_two_readers_of_one_run_do_not_take_from_each_other(run: RunFolder) -> None:
    live = Live(run.path)
    late = live.since()
    run.log({"step": 13, "loss": 1.0, "seconds": 9.0})
    assert [one["step"] for one in live.since(late.cursor).metrics] == [13]
    assert len(live.since().metrics) == len(late.metrics) + 1
    assert [one["step"] for one in live.since(late.cursor).metrics] == [13]


def test_a_run_that_was_rewound_is_told_anew(run: RunFolder) -> None:
    live = Live(run.path)
    before = live.since()
    run.rewind(4)
    probe = read_probe(run.path)
    assert probe is not None
    FrameFile(frame_files(run.path, probe)[0]).rewind(4)
    after = live.since(before.cursor)
    assert {"metrics", "frames"} <= after.anew
    assert [one["step"] for one in after.metrics] == [0, 1, 2, 3, 4] and max(steps(after.frames)) <= 4
    assert len(live.lines) == 5 and max(live.scores) <= 4


def test_another_probe_brings_its_own_frames_and_their_past(run: RunFolder) -> None:
    live = Live(run.path)
    before = live.since()
    watch(run.path, Probe("the mat"))
    without = live.since(before.cursor)
    assert without.frames == () and "frames" in without.anew
    assert without.answer is not None and without.answer.probe == Probe("the mat")
    list(frames_of_snapshots(run.path, Probe("the mat")))
    past = live.since(without.cursor)
    assert steps(past.frames) == run.snapshot_steps() and "frames" in past.anew
    assert live.since(past.cursor).frames == ()


def test_a_damaged_probe_and_no_run_at_all_are_told_and_not_raised(run: RunFolder, tmp_path: Path) -> None:
    (run.path / "probe.json").write_text("{half")
    update = Live(run.path).since()
    assert "probe.json" in update.fault and update.answer is None and update.metrics
    nothing = Live(tmp_path / "none").since()
    assert nothing.status is None and nothing.metrics == () and nothing.seconds_left is None and not nothing.fault


def test_what_happened_is_written_down_at_the_end_as_a_reader_finds_it(run: RunFolder) -> None:
    update = Live(run.path).since()
    written = json.loads((run.path / "marks.json").read_text())
    assert [one["sentence"] for one in written] == [one.sentence for one in update.marks]
    assert list(update.marks) == marks(run.read_metrics(), update.frames)


def test_thousands_of_lines_are_thinned_and_keep_their_extremes() -> None:
    lines: list[dict[str, Any]] = [{"step": i, "loss": 5 - i / 4000, "grad_norm": 1.0} for i in range(8000)]
    lines[4321]["loss"], lines[6543]["grad_norm"], lines[777]["held_out_loss"] = 9.0, 99.0, 3.0
    left = thin_lines(lines)
    assert len(left) < 2500 and left == sorted(left, key=lambda one: one["step"])
    assert all(lines[i] in left for i in (0, 777, 4321, 6543, 7999))
    assert thin_lines(lines[:900]) == lines[:900]


def test_time_left_is_read_from_the_recent_pace() -> None:
    slow = [{"step": i, "seconds": 10.0 * i} for i in range(200)]
    fast = [{"step": 200 + i, "seconds": 2000 + 0.5 * i} for i in range(150)]
    assert time_left(slow + fast, 449) == pytest.approx(100 * 0.5)
    assert time_left(fast[:1], 449) is None and time_left(fast, 100) == 0


def test_slow_steps_are_logged_one_by_one(recipe: Recipe, tmp_path: Path, slow: Callable[[float], None]) -> None:
    slow(0.25)
    coarse = replace(recipe, log=replace(recipe.log, every=12, held_out_every=12, latest_every=12, snapshots=2))
    made = [step.step for step in train(coarse, tmp_path / "run")]
    gaps = [b - a for a, b in zip(made[1:], made[2:], strict=False)]
    assert max(gaps) <= 2  # at most half a second each


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    from engine.training.trainer import Trainer

    advance = Trainer.advance

    def slowed(seconds: float) -> None:
        def later(self: Trainer, *arguments: Any, **named: Any) -> Any:
            time.sleep(seconds)
            return advance(self, *arguments, **named)

        monkeypatch.setattr(Trainer, "advance", later)

    return slowed


def test_a_poll_without_news_is_cheap_after_a_long_run(run: RunFolder) -> None:
    with run.metrics.open("a") as file:
        file.writelines(json.dumps({"step": i, "loss": 1.0, "seconds": i}) + "\n" for i in range(13, 20_000))
    live = Live(run.path)
    cursor = live.since().cursor
    took = []
    for _ in range(20):
        began = time.thread_time()
        live.since(cursor)
        took.append(time.thread_time() - began)
    assert sorted(took)[10] < 0.005
