"""The load of experts against transformers and by hand, and a training that keeps it or lets it fall."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from engine.checkpoints import load
from engine.model.layers.experts import Routing, recorded_routing
from engine.training import read_recipe, train
from engine.training.balance import expert_load, expert_shares, router_z, token_information
from tests.engine import tiny


def routing(logits: torch.Tensor, used: int) -> Routing:
    probs = logits.softmax(-1)
    return Routing(logits, probs, probs.topk(used, -1).indices)


@pytest.mark.parametrize("used", [1, 2, 5])
def test_the_load_is_transformers_for_each_expert_of_a_token(used: int) -> None:
    logits = tiny.normal(2, 30, 5, seed=used)
    theirs = load_balancing_loss_func((logits.flatten(0, 1),), 5, used)
    torch.testing.assert_close(expert_load([routing(logits, used)]), theirs / used)
    assert sum(expert_shares([routing(logits, used)])) == pytest.approx(1)
    z = sum(math.log(sum(math.exp(x) for x in row)) ** 2 for row in logits.flatten(0, 1).tolist()) / 60
    assert float(router_z([routing(logits, used)])) == pytest.approx(z, rel=1e-5)


def test_information_is_that_of_the_expert_where_the_token_decides_and_none_where_it_does_not() -> None:
    ids = torch.arange(8).repeat(50)[None]
    by_token, by_place = ids % 4, (torch.arange(400)[None] // 8) % 4
    for chosen, bits in ((by_token, 2.0), (by_place, 0.0), (torch.where(ids < 4, 0, by_place), 0.5488)):
        found = token_information([(ids, [Routing(torch.zeros(0), torch.zeros(0), chosen[..., None])])])
        assert found == pytest.approx(bits, abs=0.05)


def trained(recipe_path: Path, weight: float) -> tuple[list[dict[str, float]], Path]:
    experts = "mlp = { d_mlp = 16, experts = { count = 4, used = 1 } }"
    text = recipe_path.read_text().replace("mlp = { d_mlp = 32 }", experts)
    text = text.replace("[data.text]", f"[objective]\nload_weight = {weight}\n\n[data.text]")
    path = recipe_path.with_name(f"load {weight}.toml")
    path.write_text(text.replace("steps = 12", "steps = 60").replace("lr = 1e-2", "lr = 3e-2"))
    run = path.with_suffix("")
    return [{"loss": step.loss, **step.also} for step in train(read_recipe(path), run) if step.loss], run


def test_a_model_with_experts_learns_evenly_and_without_the_load_in_its_loss_less_so(
    recipe_path: Path,
) -> None:
    (even, run), (free, _) = trained(recipe_path, 1.0), trained(recipe_path, 0.0)
    assert even[-1]["loss"] < even[0]["loss"]
    last = [sum(step["expert_load"] for step in steps[-20:]) / 20 for steps in (even, free)]
    assert last[0] < last[1]
    assert 0.99 < last[0] < 1.2
    shares = [even[-1][f"expert_share_{expert}"] for expert in range(4)]
    assert sum(shares) == pytest.approx(1) and max(shares) < 0.6
    assert 0 <= even[-1]["held_out_expert_information"] <= 2
    checkpoint = load(run)
    with recorded_routing() as found:
        checkpoint.model(torch.tensor([[1, 2, 3]]))
    assert [one.chosen.shape[-1] for one in found] == [1]
