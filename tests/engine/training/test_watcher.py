"""A run that is watched learns what one that is not learns, and says what was seen of it."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.training import Recipe, RunFolder, Step, one_step, pause, read_status, resume, train
from engine.training.probe import watch as watch_module
from engine.training.probe.answer import read_answer
from engine.training.probe.frames import Frame, read_frames
from engine.training.probe.probe import Probe, read_probe, watch
from engine.training.probe.probe_frame import record_frame
from engine.training.probe.question import question
from engine.training.probe.snapshot_frames import frame_files
from engine.training.probe.watch import (
    BINS,
    Histogram,
    WatchFile,
    WatchLine,
    histogram,
    line,
    part_of,
    read_line,
    read_lines,
)
from engine.training.probe.watcher import PACE, SHARE, Watcher


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at every step, and the probe read at each."""
    monkeypatch.setattr("engine.training.probe.watcher.PACE", 0.0)
    monkeypatch.setattr("engine.training.probe.watcher.LINE_PACE", 0.0)
    monkeypatch.setattr("engine.training.probe.watcher.SHARE", 1e9)


def frames(run: RunFolder, probe: Probe | None = None) -> tuple[Frame, ...]:
    probe = probe or read_probe(run.path)
    assert probe is not None
    return read_frames(frame_files(run.path, probe)[0]).frames


def paused(run: RunFolder) -> bool:
    status = read_status(run.status)
    return status is not None and status.state == "paused"


def weights(run: RunFolder) -> dict[str, torch.Tensor]:
    return load(run.path).model.state_dict()


def test_watching_does_not_change_what_is_learned(
    recipe: Recipe, run: RunFolder, tmp_path: Path, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in train(recipe, run.path):
        watch(run.path, Probe("the dog"[: 2 + step.step % 5]) if step.step % 3 else Probe("Ω"))
    assert len(list((run.path / "frames").glob("*.bin"))) > 3
    blind = RunFolder(tmp_path / "blind")
    monkeypatch.setattr(Watcher, "begin", lambda self, trainer: None)
    monkeypatch.setattr(Watcher, "wants", lambda self, step: False)
    list(train(recipe, blind.path))
    assert not (blind.path / "frames").exists()
    ours, theirs = weights(run), weights(blind)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    same = ("step", "loss", "accuracy", "held_out_loss", "grad_norm")
    told = [[{name: one[name] for name in same} for one in each.read_metrics()] for each in (run, blind)]
    assert told[0] == told[1]


def test_every_snapshot_has_a_frame_and_it_is_what_the_snapshot_says(recipe: Recipe, run: RunFolder) -> None:
    list(train(recipe, run.path))
    probe = read_probe(run.path)
    assert probe is not None and probe.text
    seen = {one.step: one for one in frames(run) if one.kept}
    assert sorted(seen) == run.snapshot_steps()
    for step, one in seen.items():
        checkpoint = load(run.snapshot(step))
        again = record_frame(checkpoint, question(probe, checkpoint, recipe), step).tensors
        for name, tensor in one.tensors.items():
            assert torch.allclose(tensor.float(), again[name].float(), atol=1e-6, equal_nan=True), name


def test_a_probe_that_cannot_be_read_is_answered_and_training_goes_on(
    recipe: Recipe, run: RunFolder, eager: None
) -> None:
    for step in train(recipe, run.path):
        if step.step == 3:
            watch(run.path, Probe("Ωmega"))
        if step.step == 8:
            watch(run.path, Probe("cat"))
    answer = read_answer(run, Probe("Ωmega"))
    assert "no token for 'Ω'" in answer.error and answer.pieces == ()
    assert read_answer(run, Probe("cat")).pieces == ("c", "a", "t") and not read_answer(run, Probe("cat")).error
    assert [one.step for one in frames(run, Probe("cat"))] == [9, 10, 11, 12]
    assert not frames(run, Probe("Ωmega"))
    steps = [one["step"] for one in read_lines(run.path / "watch.jsonl")]
    assert steps == list(range(13))  # weights are watched all the same


def test_a_damaged_probe_file_does_not_stop_a_run(recipe: Recipe, run: RunFolder, eager: None) -> None:
    for step in train(recipe, run.path):
        if step.step == 3:
            (run.path / "probe.json").write_text("{half")
    assert run.read_metrics()[-1]["step"] == 12


def test_another_probe_is_seen_while_the_run_is_paused(recipe: Recipe, run: RunFolder) -> None:
    def follow(steps: Iterator[Step]) -> None:
        for step in steps:
            if step.step == 3:
                pause(run.path)

    thread = threading.Thread(target=follow, args=(train(recipe, run.path),))
    thread.start()
    try:
        end = time.monotonic() + 20
        while not paused(run):
            assert time.monotonic() < end
            time.sleep(0.01)
        watch(run.path, Probe("a dog"))
        while not frames(run, Probe("a dog")):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert [one.step for one in frames(run, Probe("a dog"))] == [3]
    finally:
        resume(run.path)
        thread.join(20)


def test_the_step_at_which_a_run_rests_is_seen(recipe: Recipe, run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.training.probe.watcher.PACE", 1e9)  # no look because of the time
    monkeypatch.setattr("engine.training.probe.watcher.LINE_PACE", 0.0)
    seldom = replace(recipe, log=replace(recipe.log, snapshots=2))

    def follow(steps: Iterator[Step]) -> None:
        for step in steps:
            if step.step == 3:
                pause(run.path)

    def wait_for(step: int) -> None:
        end = time.monotonic() + 20
        while not (paused(run) and frames(run)[-1].step == step == read_lines(run.path / "watch.jsonl")[-1]["step"]):
            assert time.monotonic() < end, [one.step for one in frames(run)]
            time.sleep(0.01)

    thread = threading.Thread(target=follow, args=(train(seldom, run.path),))
    thread.start()
    try:
        wait_for(3)
        one_step(run.path)
        wait_for(4)
        assert [one.step for one in frames(run)] == [0, 3, 4]
        assert read_lines(run.path / "watch.jsonl")[-1]["gradients"]
    finally:
        resume(run.path)
        thread.join(20)


def test_a_run_that_goes_on_from_an_earlier_step_forgets_what_was_seen_after_it(
    recipe: Recipe, run: RunFolder, eager: None
) -> None:
    whole = list(train(recipe, run.path))
    assert [one.step for one in frames(run)] == list(range(13)) == [one.step for one in whole]
    before = {one.step: one for one in frames(run)}
    again = RunFolder(run.path.with_name("again"))
    for step in train(recipe, again.path):
        if step.step == 7:
            break
    file = frame_files(again.path, read_probe(again.path) or Probe("x"))[0]
    with file.open("ab") as torn:  # of a start that was killed at step 9
        torn.write(file.read_bytes()[:50])
    list(train(recipe, again.path))
    assert [one.step for one in frames(again)] == list(range(13))
    for one in frames(again):
        assert all(torch.equal(t, before[one.step].tensors[n]) or t.isnan().any() for n, t in one.tensors.items())
    assert [one["step"] for one in read_lines(again.path / "watch.jsonl")] == list(range(13))


def test_looks_keep_to_their_share_of_the_time() -> None:
    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    clock = Clock()
    watcher = Watcher(RunFolder("nowhere"), frozenset(), clock)
    watcher.next_ask = 1e9
    looking, looks = 0.0, 0
    while clock.now < 600:
        clock.now += 0.01  # a step
        if watcher.wants(1):
            began = clock.now
            clock.now += 0.05
            looking, looks = looking + 0.05, looks + 1
            watcher._wait(began)
    assert looking / clock.now <= 1.05 * SHARE and looks > 100
    clock.now += 1000
    began = clock.now
    clock.now += 0.001
    watcher._wait(began)
    assert watcher.next_look - clock.now == pytest.approx(PACE)


def test_gradients_weights_and_activations_are_told_part_by_part(recipe: Recipe, run: RunFolder, eager: None) -> None:
    list(train(recipe, run.path))
    told = [read_line(one) for one in read_lines(run.path / "watch.jsonl")]
    assert [one.step for one in told] == list(range(13)) and not told[0].gradients
    for one, logged in zip(told[1:], run.read_metrics()[1:], strict=True):
        assert {"embed", "blocks.0", "head"} == set(one.gradients)
        whole = sum(norm**2 for norm in one.gradients.values()) ** 0.5
        assert whole == pytest.approx(logged["grad_norm"], rel=1e-5)
    last, model = told[-1], load(run.path).model
    assert set(last.weights) == {"embed", "blocks.0.attn", "blocks.0.mlp", "head"}
    parts: dict[str, list[torch.Tensor]] = {}
    for name, parameter in model.named_parameters():
        parts.setdefault(part_of(name), []).append(parameter.detach().flatten())
    for name, tensors in parts.items():
        values = torch.cat(tensors)
        drawn = last.weights[name]
        assert (drawn.low, drawn.high) == (float(values.min()), float(values.max()))
        assert sum(drawn.counts) == len(values) and len(drawn.counts) == BINS
    assert set(last.activations) == set(last.certain) == set(last.quiet) == {"blocks.0"}
    assert all(0 <= share <= 1 for each in (last.certain, last.quiet) for share in each.values())


def test_a_histogram_counts_what_is_finite() -> None:
    values = torch.tensor([0.0, 1.0, 1.0, 4.0, torch.nan, torch.inf])
    found = histogram([values[:3], values[3:]])
    assert (found.low, found.high, sum(found.counts)) == (0.0, 4.0, 4)
    assert found.counts[0] == 1 and found.counts[10] == 2 and found.counts[-1] == 1
    assert sum(histogram([torch.full((7,), 3.0)]).counts) == 7
    assert histogram([torch.tensor([torch.nan])]) == Histogram(0.0, 0.0, (0,) * BINS)


def test_lines_stay_within_their_bound_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "MAX_LINES", 30)
    file = WatchFile(tmp_path / "watch.jsonl")
    one = WatchLine(0, {"embed": 1.5}, {"head": Histogram(0.0, 1.0, (1, 2))}, kept=True)
    assert read_line(json.loads(json.dumps(line(one)))) == one
    for step in range(200):
        file.append(replace(one, step=step, kept=step < 5))
        assert len(read_lines(file.path)) <= 30
    steps = [each["step"] for each in read_lines(file.path)]
    assert steps[:5] == [0, 1, 2, 3, 4] and steps[-1] == 199


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("embed.tokens.weight", "embed"),
        ("encoder.embed.tokens.weight", "embed"),
        ("blocks.3.attn.q.weight", "blocks.3.attn"),
        ("blocks.3.norm1.weight", "blocks.3.attn"),
        ("blocks.3.mlp.out.bias", "blocks.3.mlp"),
        ("blocks.3.norm2.weight", "blocks.3.mlp"),
        ("decoder.blocks.0.cross_attn.k.weight", "decoder.blocks.0.attn"),
        ("final_norm.weight", "head"),
        ("head.unembed.weight", "head"),
    ],
)
def test_a_parameter_belongs_to_a_part(name: str, part: str) -> None:
    assert part_of(name) == part
