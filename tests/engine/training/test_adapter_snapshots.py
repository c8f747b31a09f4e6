"""Snapshots of a training of an adapter: they hold what learned alone, and open as the whole model."""

from dataclasses import replace
from pathlib import Path
from shutil import copy2, rmtree

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import load
from engine.checkpoints import save_weights
from engine.checkpoints.adapter_snapshot import read_matrices
from engine.model.transformer import Transformer
from engine.training import read_recipe, train
from engine.training.base.base import read_transfer
from engine.training.probe.snapshot_frames import load_weights
from engine.training.run.folder import RunFolder
from engine.training.run.fork import fork
from engine.training.run.snapshots import count_parameters
from tests.engine.training.policy.test_learning import recipe as preference_recipe
from tests.engine.training.test_adapter import LORA
from tests.engine.training.test_fine_tuning import save_base, write_recipe_file
from tests.engine.training.test_trainer import trainer

PREFERRED = Path("assets/preferences/recorded")
STEPS = 4


def same(one: Transformer, other: Transformer) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.fixture(params=["next", "classification"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> RunFolder:
    save_base(tmp_path / "gpt2", "gpt2")
    recipe = read_recipe(write_recipe_file(tmp_path, "gpt2", request.param, LORA))
    list(train(replace(recipe, log=replace(recipe.log, snapshots=STEPS + 1)), tmp_path / "run"))
    return RunFolder(tmp_path / "run")


def test_a_snapshot_holds_no_tensor_of_the_base_and_opens_as_the_model_in_training(run: RunFolder) -> None:
    began = read_transfer(run.path)
    assert began is not None
    taught = trainer(read_recipe(run.recipe), run.path)  # at the last step
    for step in run.snapshot_steps():
        stored = load_file(run.snapshot(step))
        assert {name for name in stored if not name.startswith("adapter.")} == set(began.new)
    opened = load(run.snapshot(STEPS))
    assert same(opened.model, taught.result) and same(opened.model, load(run.weights).model)
    ids = torch.tensor([[5, 6, 7, 8]])
    assert torch.equal(opened.model(ids), load(run.weights).model(ids))
    assert opened.tokenizer is not None and count_parameters(run) == sum(p.numel() for p in opened.model.parameters())
    first = load(run.snapshot(0))
    assert not same(first.model, opened.model)
    assert load_weights(first, run.snapshot(STEPS)) and same(first.model, opened.model)
    with torch.no_grad():
        for parameter in taught.model.parameters():
            parameter += 1 if parameter.requires_grad else 0
    taught.restore(run.snapshot(STEPS))
    assert same(taught.result, opened.model)


def test_a_whole_snapshot_opens_too_and_a_fork_of_it_keeps_whole_ones(run: RunFolder, tmp_path: Path) -> None:
    """As runs kept them before: the adapter is in the weights."""
    step = run.snapshot_steps()[2]
    before = load(run.snapshot(step))
    save_weights(before.model, run.snapshot(step))
    assert same(load(run.snapshot(step)).model, before.model)
    fork("run", step, "child", folder=tmp_path)
    child = RunFolder(tmp_path / "child")
    list(train(read_recipe(child.recipe), child.path))
    assert same(load(child.snapshot(step)).model, before.model)
    assert load_file(child.snapshot(STEPS)).keys() == before.model.state_dict().keys()
    assert same(load(child.snapshot(STEPS)).model, load(child.weights).model)


def test_a_fork_goes_on_with_the_adapter_of_a_snapshot(run: RunFolder, tmp_path: Path) -> None:
    step = run.snapshot_steps()[2]
    fork("run", step, "child", folder=tmp_path)
    child = RunFolder(tmp_path / "child")
    begun = trainer(read_recipe(child.recipe), child.path)
    stored, state = load_file(run.snapshot(step)), begun.model.state_dict()
    assert all(torch.equal(state[name], stored[name]) for name in stored)
    assert same(begun.result, load(child.weights).model) and same(begun.result, load(run.snapshot(step)).model)
    list(train(read_recipe(child.recipe), child.path))
    assert load_file(child.snapshot(STEPS)).keys() == stored.keys()
    assert same(load(child.snapshot(STEPS)).model, load(child.weights).model)


def test_what_a_snapshot_lacks_is_one_sentence(run: RunFolder, tmp_path: Path) -> None:
    file, base = run.snapshot(STEPS), tmp_path / "gpt2" / "model.safetensors"
    tensors = load_file(base)
    name = next(name for name in tensors if name.endswith("wpe.weight"))
    save_file({**tensors, name: tensors[name] + 1}, base, {"format": "pt"})
    with pytest.raises(ValueError, match="with the weights that the run began with, and got others; restore them"):
        load(file)
    rmtree(base.parent)
    with pytest.raises(ValueError, match=r"needs the base of its run, '.*gpt2', which does not open .* bring it back"):
        load(file)
    copy2(file, tmp_path)
    with pytest.raises(ValueError, match="must lie in the folder of its run"):
        load(tmp_path / file.name)
    assert load(run.weights).model.config.layers == 2  # latest/ is whole


def test_the_value_head_of_ppo_is_in_its_snapshots_and_goes_on_in_a_fork(tmp_path: Path) -> None:
    list(train(preference_recipe(tmp_path, "ppo", "lora"), tmp_path / "run"))
    run = RunFolder(tmp_path / "run")
    step = next(kept for kept in run.snapshot_steps() if 0 < kept < 4)
    stored = load_file(run.snapshot(step))
    assert stored["value.weight"].any() and all(name.startswith(("adapter.", "value.")) for name in stored)
    assert load(run.snapshot(step)).model.state_dict().keys() == load(tmp_path / "base").model.state_dict().keys()
    fork("run", step, "child", folder=tmp_path)
    begun = trainer(read_recipe(tmp_path / "child" / "recipe.toml"), tmp_path / "child")
    assert torch.equal(begun.model.get_submodule("value").weight, stored["value.weight"])


@pytest.mark.parametrize("name", ["dpo", "grpo", "ppo", "ppo-free"])
def test_a_recorded_run_keeps_its_adapter_alone(name: str) -> None:
    run = RunFolder(PREFERRED / name)
    (step,) = run.snapshot_steps()
    stored, base = load_file(run.snapshot(step)), load("stories").model
    assert all(name.startswith(("adapter.", "value.")) for name in stored)
    opened = load(run.snapshot(step)).model.state_dict()
    moved = {name for name, tensor in base.state_dict().items() if not torch.equal(tensor, opened[name])}
    assert moved == {f"{name}.weight" for name in read_matrices(stored)}
