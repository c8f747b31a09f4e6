"""Trainings on the device: of all weights, an adapter, a policy; in bfloat16, compiled, in two processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints import load
from engine.training import Recipe, RunFolder, read_status, train
from engine.training.launch.machine import Abilities, plan
from engine.training.policy import learner as learners
from engine.training.recipe.recipe import Lora, Machine, Train
from tests.engine.training.policy.test_learning import recipe as of_preferences
from tests.engine.training.starting import together
from tests.engine.training.test_trainer import trainer
from tests.gpu.conftest import Card

# What only a card does is tried on the CPU by `make test-long`, so that it is no code that never ran.
DEVICES = [pytest.param("cuda", marks=pytest.mark.gpu), pytest.param("cpu", marks=pytest.mark.long)]
BF16: dict[str, Any] = {"precision": "bfloat16", "compile": "off", "threads": 1}


def plain(recipe: Recipe, folder: Path) -> Recipe:
    """Dropout draws other numbers on another device."""
    return replace(recipe, model=replace(recipe.model, dropout=0.0))


def adapted(recipe: Recipe, folder: Path) -> Recipe:
    base = folder / "base"
    for _ in train(plain(recipe, folder), base):
        pass
    lora = Lora(rank=2, targets=("attn.q", "mlp.out"))
    return replace(plain(recipe, folder), base=str(base / "checkpoint"), train=Train("lora"), lora=lora)


def policy(parts: str) -> Callable[[Recipe, Path], Recipe]:
    return lambda recipe, folder: of_preferences(folder, "ppo", parts)


KINDS: dict[str, Callable[[Recipe, Path], Recipe]] = {
    "all": plain,
    "lora": adapted,
    "ppo": policy("all"),
    "ppo, lora": policy("lora"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_updates_come_to_the_numbers_of_the_cpu(
    kind: str, recipe: Recipe, place: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = KINDS[kind](recipe, tmp_path)
    if "ppo" in kind:
        draw, smiled = learners.draw_answers, load(asked.base).tokenizer.encode(" smiled").ids[-1]

        def likeliest(model: Any, prompts: Any, most: int, seed: int, temperature: float, *more: Any) -> Any:
            """Each device draws by numbers of its own. Every second answer smiles, for which it is rewarded: where all
            rewards are equal, what is left of the advantages is rounding, scaled up to a deviation of 1."""
            drawn = draw(model, prompts, most, seed, 0.0, *more)
            return [(smiled, *one[1:]) if row % 2 else one for row, one in enumerate(drawn)]

        monkeypatch.setattr(learners, "draw_answers", likeliest)
    here, other = trainer(asked, tmp_path / "cpu"), place.trainer(asked, tmp_path / "there")
    for _ in range(2 if "ppo" in kind else 4):
        with place.there():
            found = other.advance().read()
        expected = here.advance().read()
        assert found.scores == {name: pytest.approx(value, 1e-3, 1e-3) for name, value in expected.scores.items()}
        assert found.grad_norm == pytest.approx(expected.grad_norm, 1e-3)
    assert next(other.model.parameters()).device == place.device != here.device
    with place.there():
        assert other.measure(1) == {name: pytest.approx(value, 1e-2, 1e-2) for name, value in here.measure(1).items()}


@pytest.mark.parametrize("device", DEVICES)
def test_a_run_in_bfloat16_learns_as_in_float32_and_goes_on_where_it_was_left(
    device: Any, recipe: Recipe, tmp_path: Path
) -> None:
    whole = list(train(plain(recipe, tmp_path), tmp_path / "float32"))
    rounded = replace(plain(recipe, tmp_path), machine=Machine(device, **BF16))
    for step in train(rounded, tmp_path / "left"):
        if step.step == 6:
            break
    steps = list(train(rounded, tmp_path / "left"))
    status = read_status(RunFolder(tmp_path / "left").status)
    assert status is not None and (status.state, status.step) == ("finished", 12)
    assert steps[-1].held_out_loss == pytest.approx(whole[-1].held_out_loss, rel=0.03)
    assert whole[-1].held_out_loss < whole[0].held_out_loss - 0.5
    assert load(tmp_path / "left" / "checkpoint").report.ok


@pytest.mark.parametrize("device", DEVICES)
def test_an_adapter_of_a_run_in_bfloat16_is_added_to_its_base(device: Any, recipe: Recipe, tmp_path: Path) -> None:
    asked = replace(adapted(recipe, tmp_path), machine=Machine(device, **BF16))
    list(train(asked, tmp_path / "run"))
    run = tmp_path / "run"
    base, opened, made = (load(path) for path in (asked.base, run / "adapter" / "run", run / "checkpoint"))
    before, merged = base.model.state_dict(), opened.model.state_dict()
    moved = {name for name, tensor in merged.items() if not torch.equal(tensor, before[name])}
    assert moved == {"blocks.0.attn.q.weight", "blocks.0.mlp.out.weight"}
    for name, tensor in made.model.state_dict().items():
        torch.testing.assert_close(merged[name], tensor, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_a_policy_draws_and_learns_in_bfloat16(device: Any, tmp_path: Path) -> None:
    steps = list(train(replace(of_preferences(tmp_path, "ppo"), machine=Machine(device, **BF16)), tmp_path / "run"))
    assert len(steps) == 5 and all(torch.isfinite(torch.tensor(step.loss)) for step in steps[1:])
    assert steps[0].also["held_out_kl"] == 0.0 != steps[-1].also["held_out_kl"]
    samples = [sample for line in RunFolder(tmp_path / "run").read_samples() for sample in line["samples"]]
    assert len(samples) == 50 and all(0 < sample["length"] <= 6 for sample in samples)


@pytest.mark.parametrize("device", DEVICES)
def test_compiled_updates_come_to_the_losses_of_eager_ones(device: Any, recipe: Recipe, tmp_path: Path) -> None:
    losses: list[list[float]] = []
    for compiled in ("off", "on"):
        machine = Machine(device, precision="float32", compile=compiled, threads=1)
        asked = replace(plain(recipe, tmp_path), machine=machine)
        made = trainer(asked, tmp_path / compiled, plan(machine, Abilities.of_this_machine()))
        losses.append([float(made.advance().loss) for _ in range(4)])
        stays = made.compilation.forward is made.compilation.eager
        assert not made.compilation.notes and stays == (compiled == "off")
    assert losses[1] == pytest.approx(losses[0], rel=5e-3)  # TF32 on a card


@pytest.mark.parametrize("device", DEVICES)
def test_two_processes_come_to_the_losses_of_one(device: Any, recipe_path: Path, tmp_path: Path) -> None:
    """On one card they share it, and Gloo adds up; on two NCCL does."""
    text = recipe_path.read_text().replace("dropout = 0.1\n", "").replace("lr = 1e-2", "lr = 1e-2\neps = 1e-4")
    machine = f'device = "{device}"\nprecision = "float32"\ncompile = "off"'
    recipe_path.write_text(text.replace('device = "cpu"', machine))
    together(recipe_path, tmp_path / "one", 1)
    together(recipe_path, tmp_path / "two", 2)
    alone, shared = (
        [line["loss"] for line in RunFolder(tmp_path / name).read_metrics() if line["loss"] is not None]
        for name in ("one", "two")
    )
    assert len(alone) == 12 and shared == pytest.approx(alone, rel=5e-3)
