import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.training import (
    Diverged,
    Recipe,
    RunFolder,
    Step,
    one_step,
    pause,
    read_recipe,
    read_status,
    resume,
    set_rate,
    stop,
    train,
)
from engine.training.launch.queue import SLOT, Queue, Ticket
from engine.training.recipe.schedule import learning_rate, snapshot_steps
from engine.training.run.control import Order, begin_anew, read_order
from engine.training.run.journal import GAVE_WAY, early

ROOT = Path(__file__).parents[3]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def state(run: RunFolder) -> tuple[str, int]:
    status = read_status(run.status)
    return ("", 0) if status is None else (status.state, status.step)


def wait_for(run: RunFolder, wanted: tuple[str, int]) -> None:
    end = time.monotonic() + 10
    while state(run) != wanted:
        assert time.monotonic() < end, f"waited for {wanted}, and it is {state(run)}"
        time.sleep(0.01)


def test_what_is_logged_is_what_was_yielded(recipe: Recipe, run: RunFolder) -> None:
    steps = list(train(recipe, run.path))
    assert [step.step for step in steps] == list(range(13))
    assert run.read_metrics() == [asdict(step) for step in steps]
    assert [step.lr for step in steps[1:]] == [learning_rate(n, recipe.schedule, 1e-2) for n in range(1, 13)]
    assert [step.tokens for step in steps] == [32 * n for n in range(13)]
    assert steps[0].loss is None and steps[0].held_out_loss is not None
    assert steps[6].held_out_loss is not None


def test_the_untrained_model_is_no_better_than_a_guess_and_training_makes_it_so(recipe: Recipe, run: RunFolder) -> None:
    longer = replace(recipe, schedule=replace(recipe.schedule, steps=80), log=replace(recipe.log, every=80))
    steps = {step.step: step for step in train(longer, run.path)}
    vocabulary = load(run.path).config.vocab_size
    untrained = steps[0].held_out_loss
    assert untrained is not None and 0 <= untrained - torch.tensor(vocabulary).log().item() < 1
    last = steps[80]
    assert last.held_out_loss is not None and last.held_out_loss < 1.5
    assert last.held_out_accuracy is not None and last.held_out_accuracy > 0.5


def test_what_is_held_out_is_measured_early_too_but_seldom() -> None:
    steps = snapshot_steps(1000, 40)
    assert early(steps, 50) == {0, 1, 2, 4, 9, 18, 40, 1000} <= steps
    assert early(steps, 1) == {0, 1000}


def test_the_compiler_is_not_loaded_by_what_does_not_train(recipe: Recipe, tmp_path: Path) -> None:
    """It takes longer than all that the command line imports."""
    list(train(recipe, tmp_path / "run"))
    code = f"""
import sys
import engine.cli.main
from engine import load
load({str(tmp_path / "run" / "checkpoint")!r})
print([name for name in ("torch._dynamo", "torch._inductor", "sympy", "transformers") if name in sys.modules])
"""
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert said == "[]\n"


def test_the_folder_is_as_described_and_everything_in_it_opens(recipe: Recipe, run: RunFolder) -> None:
    steps = list(train(recipe, run.path))
    assert read_recipe(run.recipe) == recipe
    assert state(run) == ("finished", 12)
    assert set(run.snapshot_steps()) == snapshot_steps(12, 5)
    snapshots = [load(run.snapshot(step)) for step in run.snapshot_steps()]
    assert all(snapshot.tokenizer is not None for snapshot in snapshots)
    finished = load(run.checkpoint)
    assert torch.equal(snapshots[-1].model.embed.tokens.weight, finished.model.embed.tokens.weight)
    assert not torch.equal(snapshots[0].model.embed.tokens.weight, finished.model.embed.tokens.weight)
    card = json.loads((run.checkpoint / "card.json").read_text())
    assert card["steps"] == 12 and card["tokens"] == 384
    assert card["loss"]["held_out"] == pytest.approx(steps[-1].held_out_loss)
    assert isinstance(card["sample"], str) and card["sample"]


def test_a_paused_run_takes_single_steps_and_goes_on(recipe: Recipe, run: RunFolder) -> None:
    seen: list[Step] = []

    def train_and_pause(steps: Iterator[Step]) -> None:
        for step in steps:
            seen.append(step)
            if step.step == 3:
                pause(run.path)

    coarse = replace(recipe, log=replace(recipe.log, every=3, snapshots=2))
    thread = threading.Thread(target=train_and_pause, args=(train(coarse, run.path),))
    thread.start()
    try:
        wait_for(run, ("paused", 3))
        one_step(run.path)
        wait_for(run, ("paused", 4))
        one_step(run.path)
        one_step(run.path)
        wait_for(run, ("paused", 6))
        assert load(run.path).config == load(run.snapshot(0)).config  # latest/ is there to be looked at
    finally:
        resume(run.path)
        thread.join(10)
    assert [step.step for step in seen] == [0, 3, 4, 5, 6, 9, 10, 12]  # 10: latest/ is saved
    assert state(run) == ("finished", 12)


def test_a_paused_run_gives_its_place_to_one_that_waits_and_goes_on_in_its_turn(
    recipe: Recipe, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(run.path.parent)

    def enter(name: str) -> Ticket:
        with queue.lock():
            return queue.take_ticket(name, 1)

    mine, waiting = enter("mine"), None
    monkeypatch.setenv(SLOT, str(queue.turn(mine.path)))
    for step in train(recipe, run.path):
        if step.step == 3:
            waiting = enter("theirs")
            assert queue.turn(waiting.path) is None  # it trains, and keeps its place
        if step.step == 4:
            pause(run.path)
    status = read_status(run.status)
    assert status is not None and (status.state, status.step, status.cause) == ("stopped", 4, "gave way")
    assert status.can_resume and status.error == GAVE_WAY
    assert waiting is not None
    theirs = queue.turn(waiting.path)
    assert theirs is not None and queue.names() == []
    assert [step.step for step in train(recipe, run.path)][0] == 5
    assert state(run) == ("finished", 12)
    list(train(recipe, tmp_path / "whole"))
    ours, whole = (load(RunFolder(path).checkpoint).model for path in (run.path, tmp_path / "whole"))
    assert all(map(torch.equal, ours.parameters(), whole.parameters()))
    for descriptor in (theirs, mine.descriptor, waiting.descriptor):
        os.close(descriptor)


def test_a_stop_saves_and_the_next_start_runs_again(recipe: Recipe, run: RunFolder) -> None:
    for step in train(recipe, run.path):
        if step.step == 4:
            stop(run.path)
    assert state(run) == ("stopped", 4)
    assert [step.step for step in train(recipe, run.path)][0] == 5
    assert state(run) == ("finished", 12)


def test_a_new_learning_rate_holds_from_the_next_step_until_it_is_given_back(recipe: Recipe, run: RunFolder) -> None:
    rates = {}
    for step in train(recipe, run.path):
        rates[step.step] = step.lr
        if step.step == 4:
            set_rate(run.path, 0.125)
        if step.step == 7:
            set_rate(run.path, None)
    assert [rates[n] for n in (5, 6, 7)] == [0.125] * 3
    assert rates[4] == learning_rate(4, recipe.schedule, 1e-2)
    assert rates[8] == learning_rate(8, recipe.schedule, 1e-2)


NESTED = "[" * 100_000
GARBAGE = {
    '{"mode": "halt"}': "mode must be one of run, pause, stop, got 'halt'",
    '{"mode": "run", "colour": "red"}': "colour is not a known key",
    '{"until": "soon", "lr": true}': "until must be a whole number, got 'soon'; lr must be a number, got True",
    '{"lr": NaN}': "lr must be at least 0, got nan",
    '{"lr": 1' + "0" * 400 + "}": "int too large",
    "[]": "it must hold a table, got []",
    NESTED: "it nests too deeply to be read",
    "\x00\x01": "Expecting value",
}


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: text[:30])
def test_what_cannot_be_read_of_an_order_is_ignored_and_said(
    recipe: Recipe, run: RunFolder, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = set()
    for step in train(recipe, run.path):
        if step.step == 2:
            run.control.write_text(text)
        if step.step > 3:
            said.add(read_status(run.status).notice)
    status = read_status(run.status)
    assert status is not None and status.state == "finished"
    assert all(one.startswith("control.json is ignored") and GARBAGE[text] in one for one in said) and said
    assert GARBAGE[text] in capsys.readouterr().err
    assert begin_anew(run.path) and read_order(run.control) == Order()  # a next start


def test_what_can_be_read_of_an_order_counts(recipe: Recipe, run: RunFolder) -> None:
    run.path.mkdir(parents=True, exist_ok=True)
    run.control.write_text('{"lr": 0.25, "mode": "halt", "colour": 1}')
    assert read_order(run.control) == Order(lr=0.25)


@pytest.mark.parametrize("text", [*GARBAGE, '{"state": "bored"}', '{"state": "running", "pid": -5}', '{"step": 1e999}'])
def test_a_status_that_cannot_be_read_keeps_no_run_from_being_resumed(
    recipe: Recipe, run: RunFolder, text: str
) -> None:
    for step in train(recipe, run.path):
        if step.step == 6:
            stop(run.path)
    run.status.write_text(text)
    status = read_status(run.status)
    assert (
        status is not None and status.can_resume and status.error.startswith(("status.json is ignored", "its process"))
    )
    assert list(train(recipe, run.path))[-1].step == recipe.schedule.steps
    status = read_status(run.status)
    assert status is not None and (status.state, status.notice) == ("finished", "")


def test_an_unknown_key_of_a_status_is_ignored_and_said(recipe: Recipe, run: RunFolder) -> None:
    list(train(recipe, run.path))
    run.status.write_text(json.dumps(json.loads(run.status.read_text()) | {"colour": "red"}))
    status = read_status(run.status)
    assert status is not None and status.state == "finished"
    assert status.notice.startswith("status.json is ignored in part: colour is not a known key")


def test_a_run_that_diverges_says_at_which_step(recipe: Recipe, run: RunFolder) -> None:
    mad = replace(recipe, optimiser=replace(recipe.optimiser, lr=1e30, clip=0.0))
    said = "is (not a number|infinite) at step [0-9]+; lower optimiser.lr from 1e\\+30"
    with pytest.raises(Diverged, match=said) as end:
        list(train(mad, run.path))
    status = read_status(run.status)
    assert status is not None and status.state == "failed" and "lower optimiser.lr" in status.error
    failed = int(str(end.value).split("at step ")[1].split(";")[0])
    assert status.step == failed - 1 > 0  # updates that were made, though the last heartbeat was before the first


def test_bfloat16_keeps_weights_in_float32_and_trains(recipe: Recipe, run: RunFolder) -> None:
    half = replace(recipe, machine=replace(recipe.machine, precision="bfloat16"))
    steps = list(train(half, run.path))
    assert load(run.path).model.embed.tokens.weight.dtype == torch.float32
    first, last = steps[1].loss, steps[-1].loss
    assert first is not None and last is not None and last < first
