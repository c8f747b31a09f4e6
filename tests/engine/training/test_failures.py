"""What goes wrong is said in a sentence, and what is on the disk stays good."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from engine.checkpoints import load
from engine.training import Diverged, Recipe, RunFolder, TrainingFailed, read_status, set_rate, train
from engine.training.cluster.parallel import Peers
from engine.training.launch.machine import Plan
from engine.training.run import latest
from engine.training.run.atomic import sweep, write_json
from engine.training.run.failures import DiskFull, OutOfMemory, explain_failure
from engine.training.run.latest import read_progress
from engine.training.trainer import Trainer

FLOAT32 = Plan("cpu", None, scaled=False, compile=False, threads=1)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def trainer(recipe: Recipe, run: RunFolder) -> Trainer:
    run.adopt(recipe)
    return Trainer(recipe, run, FLOAT32, Peers())


def finite(file: Path) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in load_file(file).values())


def test_a_run_that_explodes_keeps_what_was_good_and_goes_on_from_there(
    recipe: Recipe, run: RunFolder, tmp_path: Path
) -> None:
    with pytest.raises(Diverged, match=r"^the (loss|gradient) must be a number, and is .+ at step \d"):
        for step in train(recipe, run.path):
            if step.step == 7:
                set_rate(run.path, 1e30)
    status, progress = read_status(run.status), read_progress(run.latest)
    assert status is not None and (status.state, status.cause) == ("failed", "not a number")
    assert "lower optimiser.lr from 0.01 to 0.003" in status.error
    assert progress is not None and progress.step == 5 and finite(run.latest / "model.safetensors")
    assert all(finite(run.snapshot(step)) for step in run.snapshot_steps())
    set_rate(run.path, None)
    list(train(recipe, run.path))
    list(train(recipe, tmp_path / "unbroken"))
    ours, theirs = (load(folder).model.state_dict() for folder in (run.path, tmp_path / "unbroken"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_gradient_that_is_no_number_never_reaches_the_weights(recipe: Recipe, run: RunFolder) -> None:
    learner = trainer(recipe, run)
    learner.advance()
    before = [p.detach().clone() for p in learner.model.parameters()]
    learner.model.blocks[0].attn.q.weight.register_hook(lambda grad: grad * float("inf"))  # type: ignore[union-attr]
    with pytest.raises(Diverged, match="the gradient must be a number, and is .* at step 2; lower optimiser.lr"):
        learner.advance()
    assert learner.step == 1
    assert all(torch.equal(a, b) for a, b in zip(before, learner.model.parameters(), strict=True))


def test_weights_that_are_no_numbers_never_replace_good_ones(recipe: Recipe, run: RunFolder) -> None:
    learner = trainer(recipe, run)
    learner.save_latest()
    good = (run.latest / "model.safetensors").read_bytes()
    learner.advance()
    with torch.no_grad():
        next(learner.model.parameters())[0, 0] = float("nan")
    with pytest.raises(Diverged, match="the greatest weight must be a number"):
        learner.save_latest()
    assert (run.latest / "model.safetensors").read_bytes() == good


def test_the_advice_is_of_what_the_recipe_leaves_to_change(recipe: Recipe, run: RunFolder) -> None:
    loose = replace(recipe, optimiser=replace(recipe.optimiser, lr=1e30, clip=0.0))
    with pytest.raises(Diverged, match="lengthen schedule.warmup from 3 to 12 or set optimiser.clip to 1.0"):
        list(train(loose, run.path))


@pytest.mark.parametrize("what", ["latest", "metrics"])
def test_a_full_disk_ends_the_run_in_a_sentence_and_it_goes_on_when_there_is_room(
    what: str, recipe: Recipe, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = False
    log, fsync = RunFolder.log, os.fsync

    def flush(file: int) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    def write(self: RunFolder, line: dict[str, object]) -> None:
        if full and what == "metrics":
            with self.metrics.open("a") as file:
                file.write('{"step": 7, "lo')
            raise OSError(errno.ENOSPC, "No space left on device")
        log(self, line)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(RunFolder, "log", write)
    with pytest.raises(DiskFull, match="^the disk is full, and a file of the run could not be written; make room"):
        for step in train(recipe, run.path):
            full = step.step >= 6
    status, progress = read_status(run.status), read_progress(run.latest)
    assert status is not None and (status.state, status.cause) == ("failed", "disk full")
    assert progress is not None and progress.step == 5 and load(run.path).tokenizer is not None
    assert [line["step"] for line in run.read_metrics()][:6] == list(range(6))
    assert not list(run.path.rglob("*.partial"))
    with pytest.raises(DiskFull):
        list(train(recipe, run.path))
    full = False
    list(train(recipe, run.path))
    list(train(recipe, tmp_path / "unbroken"))
    ours, theirs = (load(folder).model.state_dict() for folder in (run.path, tmp_path / "unbroken"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert [line["step"] for line in run.read_metrics()] == list(range(13))


def test_on_a_full_disk_a_small_file_is_written_over_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "status.json"
    write_json(path, {"long": "x" * 100})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    write_json(path, {"a": 1})
    assert path.read_text() == '{\n "a": 1\n}\n'
    with pytest.raises(OSError, match="No space left"):
        write_json(tmp_path / "other.json", {})
    assert os.listdir(tmp_path) == ["status.json"]


def test_too_little_memory_is_said_with_the_amount_and_what_to_lower(
    recipe: Recipe, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = Trainer.advance

    def greedy(self: Trainer, *arguments: float | None, **options: bool) -> object:
        if self.step == 6:
            torch.empty(2**50)
        return advance(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "advance", greedy)
    with pytest.raises(OutOfMemory, match="no room for 4,294,967,296 MiB more; raise batch.accumulate from 1"):
        list(train(recipe, run.path))
    status, progress = read_status(run.status), read_progress(run.latest)
    assert status is not None and (status.state, status.cause) == ("failed", "out of memory")
    assert "a step of 4 x 8 tokens through 1 layer of width 16" in status.error
    assert progress is not None and progress.step == 5


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not tell how much a process has")
def test_a_process_that_may_have_no_more_memory_says_so_in_a_sentence(recipe_path: Path, run: RunFolder) -> None:
    recipe_path.write_text(recipe_path.read_text().replace("size = 4\n", "size = 400_000\n"))
    code = f"""
import resource, sys
from pathlib import Path
from engine.cli.main import main
have = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (have + 2**29, have + 2**29))
sys.exit(main(["train", {str(recipe_path)!r}, "--out", {str(run.path)!r}, "--quiet"]))
"""
    root = Path(__file__).parents[3]
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    status = read_status(run.status)
    assert status is not None and (status.state, status.cause) == ("failed", "out of memory"), ended.stderr
    assert ended.returncode == 1 and ended.stderr == f"loupe: {status.error}\n"
    assert "a step of 400000 x 8 tokens" in status.error and "MiB more; raise batch.accumulate from 1" in status.error


@pytest.mark.parametrize(
    ("error", "expected", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"), OutOfMemory, "2.00 GiB"),
        (MemoryError("Unable to allocate 3.5 GiB for an array"), OutOfMemory, "3.5 GiB"),
        (MemoryError(), OutOfMemory, "there was no room;"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), DiskFull, "make room"),
        (SafetensorError("I/O error: No space left on device (os error 28)"), DiskFull, "make room"),
        (OSError(errno.EACCES, "Permission denied"), None, ""),
        (RuntimeError("shapes do not fit"), None, ""),
    ],
)
def test_causes_are_told_apart(
    error: BaseException, expected: type[TrainingFailed] | None, said: str, recipe: Recipe
) -> None:
    known = explain_failure(error, recipe)
    assert (known if known is None else type(known)) == expected
    assert known is None or said in str(known)


def test_what_a_killed_process_had_begun_to_write_is_swept_away(tmp_path: Path) -> None:
    gone = tmp_path / ".model.safetensors.999999999-1.partial"
    ours = tmp_path / f".control.json.{os.getpid()}-1.partial"
    for path in (gone, ours, tmp_path / "model.safetensors"):
        path.write_text("x")
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [ours.name, "model.safetensors"]


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (["latest/model.safetensors"], "latest/model.safetensors must be whole, and was cut off; the run went on from"),
        (["latest/optimiser-*"], "latest/optimiser-0000009.safetensors must be whole, and was cut off; the run went"),
        (["latest/*", "snapshots/*"], "as are all snapshots; the run began again at step 0."),
    ],
)
def test_a_run_goes_on_from_what_is_whole_where_a_file_was_half_written(
    cut: list[str], said: str, recipe: Recipe, run: RunFolder
) -> None:
    for step in train(recipe, run.path):
        if step.step == 9:
            break
    newest = run.snapshot_steps()[-1]
    for file in [run.snapshot(newest), *(file for pattern in cut for file in run.path.glob(pattern))]:
        os.truncate(file, file.stat().st_size // 2)
    whole = run.snapshot_steps()[-2] if len(cut) == 1 else 0
    steps = list(train(recipe, run.path))
    assert [step.step for step in steps] == [*([0] if whole == 0 else []), *range(whole + 1, 13)]
    status = read_status(run.status)
    assert status is not None and status.state == "finished"
    (told,) = [one for one in status.chosen if one.startswith("Mended")]
    assert said in told and (not whole or f"from step {whole}, with the optimiser's memory begun anew" in told)
    assert [line["step"] for line in run.read_metrics()] == list(range(13))
    assert all(finite(run.snapshot(step)) for step in run.snapshot_steps()) and load(run.path).tokenizer is not None


def test_a_training_waits_for_a_disk_that_stalls_and_others_see_that_it_is_there(
    recipe: Recipe, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalls, goes_on, save = Event(), Event(), latest.save_file

    def save_late(*given: Any) -> None:
        stalls.set()
        assert goes_on.wait(30)
        save(*given)

    monkeypatch.setattr(latest, "save_file", save_late)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(lambda: list(train(recipe, run.path)))
        assert stalls.wait(30)
        status, progress = read_status(run.status), read_progress(run.latest)
        assert status is not None and status.state == "running" and not ended.done()
        assert progress is None and load(run.snapshot(0)).tokenizer is not None
        goes_on.set()
        assert ended.result()[-1].step == 12
    list(train(recipe, tmp_path / "unbroken"))
    ours, theirs = (load(folder).model.state_dict() for folder in (run.path, tmp_path / "unbroken"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
