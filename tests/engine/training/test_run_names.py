"""A step of a training run is a model everywhere: "run:NAME@STEP"."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.budget import budget
from engine.checkpoints import load
from engine.checkpoints.run_steps import name_step, split_name, weights
from engine.cli.main import main
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from engine.training import Recipe, RunFolder, train


@pytest.fixture
def run(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Left after step 7, in the folder of runs."""
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path / "runs"))
    library.checkpoint.cache_clear()
    for step in train(recipe, tmp_path / "runs" / "my run"):
        if step.step == 7:
            break
    return RunFolder(tmp_path / "runs" / "my run")


def test_a_step_opens_with_the_runs_tokenizer_and_its_own_weights(run: RunFolder) -> None:
    for step in run.snapshot_steps():
        name = f"run:my run@{step}"
        assert library.knows(name) and library.names(name)[-1] == name
        opened = library.checkpoint(name)
        assert opened.tokenizer is not None and opened.tokenizer.encode("the cat").ids
        assert torch.equal(opened.model.embed.tokens.weight, load(run.snapshot(step)).model.embed.tokens.weight)
    assert not any(name.startswith("run:") for name in library.names())


def test_the_name_alone_is_the_newest_step_and_the_latest_one_has_a_number_too(run: RunFolder) -> None:
    latest = load(run.path).model.embed.tokens.weight
    for name in ("run:my run", "run:my run@7"):
        assert torch.equal(library.checkpoint(name).model.embed.tokens.weight, latest)
    assert library.checkpoint_place("run:my run").weights == run.weights


@pytest.mark.parametrize(
    ("named", "parts"),
    [("my run", ("my run", None)), ("my run@7", ("my run", "7")), ("a@", ("a", "")), ("a@1@2", ("a", "1@2"))],
)
def test_a_runs_name_is_split_alike_wherever_it_stands(named: str, parts: tuple[str, str | None]) -> None:
    assert split_name(named) == split_name(f"run:{named}") == split_name(f"run: {named}") == parts
    assert parts[1] != "7" or split_name(name_step("my run", 7)) == parts


def test_the_engine_and_the_command_line_read_a_runs_name_as_the_pages_do(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {name: library.checkpoint(name) for name in ("run:my run", "run:my run@7", "run:my run@0")}
    monkeypatch.setattr(budget, "runs_folder", run.path.parent.name)
    monkeypatch.setattr(sys.modules[load.__module__], "ROOT", run.path.parents[1])  # where a path is looked for too
    monkeypatch.chdir(run.path)  # in which there is no folder of runs
    for name, checkpoint in known.items():
        opened = load(name).model.embed.tokens.weight
        assert torch.equal(opened, checkpoint.model.embed.tokens.weight)
    assert main(["generate", "run:my run", "the", "--max-tokens", "1", "--greedy"]) == 0 and capsys.readouterr().out
    with pytest.raises(FileNotFoundError, match="there is no run called 'none'; those here are my run."):
        load("run:none")


def test_while_the_run_goes_on_its_name_opens_what_is_newest_and_its_traces_are_new(
    run: RunFolder, recipe: Recipe
) -> None:
    before, text = library.checkpoint("run:my run"), Encoding.from_ids([1, 2, 3])
    seen = library.traces.trace("run:my run", text)
    assert library.checkpoint("run:my run") is before and library.checkpoint.has("run:my run")
    for _ in train(recipe, run.path):
        pass
    assert not library.checkpoint.has("run:my run")
    after = library.checkpoint("run:my run")
    assert torch.equal(after.model.embed.tokens.weight, load(run.checkpoint).model.embed.tokens.weight)
    assert not torch.equal(after.model.embed.tokens.weight, before.model.embed.tokens.weight)
    assert not torch.equal(library.traces.trace("run:my run", text)["logits"], seen["logits"])
    assert library.knows("run:my run@12")


def test_an_answer_about_a_run_is_computed_anew_once_it_has_gone_on(run: RunFolder, recipe: Recipe) -> None:
    answers, made = library.Answers(budget=10**6), []

    def make() -> bytes:
        made.append(1)
        return b"x"

    for _ in range(2):
        answers.answer({"model": "run:my run"}, make)
    assert len(made) == 1
    for _ in train(recipe, run.path):
        pass
    answers.answer({"model": "run:my run"}, make)
    assert len(made) == 2


def test_a_run_begun_again_under_the_same_name_is_another_model(run: RunFolder, recipe: Recipe) -> None:
    from engine.training.run.fork import reset

    first = library.checkpoint("run:my run@5" if 5 in run.snapshot_steps() else "run:my run@2")
    step = 5 if 5 in run.snapshot_steps() else 2
    reset("my run", run.path.parent)
    assert not library.knows(f"run:my run@{step}")
    other = replace(recipe, optimiser=replace(recipe.optimiser, lr=0.1))
    run.recipe.unlink()
    for _ in train(other, run.path):
        pass
    second = library.checkpoint(f"run:my run@{step}")
    assert not torch.equal(first.model.embed.tokens.weight, second.model.embed.tokens.weight)


@pytest.mark.parametrize("name", ["", "none", "../my run", "/etc@0", ".queue", "my run/latest"])
def test_what_no_run_is_called_is_no_model(run: RunFolder, name: str) -> None:
    assert not library.knows(f"run:{name}")
    with pytest.raises(ValueError, match=r"there is no run called '.*'; those here are my run\."):
        library.checkpoint(f"run:{name}")


@pytest.mark.parametrize("step", ["", "-1", "x", "1@2", "9" * 5000, "٧"])
def test_what_is_no_step_is_no_model(run: RunFolder, step: str) -> None:
    assert not library.knows(f"run:my run@{step}")
    with pytest.raises(ValueError, match="a step of the run 'my run' must be a whole number, got "):
        library.checkpoint(f"run:my run@{step}")


def test_a_step_that_was_not_kept_is_no_model_and_the_nearest_are_named(run: RunFolder) -> None:
    step = run.snapshot_steps()[-1] + 1
    assert not library.knows(f"run:my run@{step}")
    told = f"kept no weights of step {step}; the nearest that it kept are those of {step - 1}"
    with pytest.raises(ValueError, match=told):
        library.checkpoint(f"run:my run@{step}")


def test_a_run_without_what_makes_it_one_is_no_model(run: RunFolder) -> None:
    with pytest.raises(ValueError, match="there is no model called 'my run'"):
        library.checkpoint("my run")


def test_a_latest_that_is_damaged_leaves_the_snapshots(run: RunFolder) -> None:
    run.weights.write_bytes(b"damaged")
    newest = run.snapshot_steps()[-1]
    assert weights("my run", run.path.parent) == run.snapshot(newest)


def test_a_run_without_weights_is_none_and_odd_files_are_no_snapshots(run: RunFolder) -> None:
    place = run.path.parent
    (place / "empty").mkdir()
    (place / ".deleted").mkdir()
    (run.snapshots / "step-abc.safetensors").touch()
    (run.snapshots / ".step-0000009.safetensors.1.partial").touch()
    assert weights("empty", place) is None
    assert library.kept_runs() == {"my run": [*run.snapshot_steps(), 7]}


def test_a_run_and_a_snapshot_open_as_checkpoints(run: RunFolder) -> None:
    assert load(run.path).tokenizer is not None
    assert load(str(run.path)).tokenizer is not None
    snapshot = load(run.snapshot(0))
    assert snapshot.tokenizer is not None and snapshot.config == load(run.path).config


def test_a_step_of_a_classifier_knows_the_names_of_its_classes(tmp_path: Path) -> None:
    from engine.training import read_recipe

    recipe = read_recipe(Path(__file__).parents[3] / "assets" / "recipes" / "digits-vit.toml")
    for step in train(replace(recipe, log=replace(recipe.log, held_out_batches=1)), tmp_path / "digits"):
        if step.step == 0:
            break
    opened = load(RunFolder(tmp_path / "digits").snapshot(0))
    assert opened.labels == tuple("0123456789") and opened.processor is not None
