"""The experts: against a worked example, the model that was trained, the trainer's load, and counted weights."""

import pytest
import torch

from engine.course.experts import (
    EXPERTS,
    READ,
    choose_experts,
    count_in_use,
    count_sizes,
    load,
    mix_experts,
    train_router,
)
from engine.model.config import MLP, Experts
from engine.model.layers.experts import Routing, make_mlp
from engine.training.balance import expert_load
from pages.learn.lessons.experts.lesson import OTHERS, TEXT, WEIGHT


def test_the_best_two_are_mixed_by_their_shares_and_the_others_are_nowhere() -> None:
    logits = torch.tensor([0.3, 0.05, 0.5, 0.15]).log()
    assert float(mix_experts(logits, torch.tensor([[1.0], [-1.0]]))) == pytest.approx(0.625 - 0.375)


@pytest.mark.parametrize("place", [0, READ - 1])
def test_a_token_gets_what_the_layer_computes(place: int) -> None:
    training = train_router(TEXT, WEIGHT, used=2, steps=20)
    read = TEXT[-READ:]
    found = choose_experts(training, read, place)
    layer = training.model.blocks[0].mlp
    with torch.no_grad():
        alone = [layer.experts(found.read[None, None], torch.full((1, 1, 1), one))[0, 0, 0] for one in range(EXPERTS)]
    by_hand = mix_experts(found.logits, torch.stack([alone[one] for one in found.chosen]))
    torch.testing.assert_close(found.out, by_hand)
    torch.testing.assert_close(found.out, layer(found.read[None, None])[0, 0].detach())
    assert found.chosen == found.logits.argsort(descending=True)[:2].tolist()


def test_the_load_is_that_of_the_trainer_and_its_gradient_pushes_the_busiest_down() -> None:
    logits = torch.randn(2, 5, EXPERTS, generator=torch.Generator().manual_seed(0)) + torch.tensor([2.0, 0, 0, 0])
    logits.requires_grad_()
    routed = Routing(logits, logits.softmax(-1), logits.argmax(-1, keepdim=True))
    torch.testing.assert_close(load(routed), expert_load([routed]))
    load(routed).backward()
    assert logits.grad is not None and logits.grad.sum((0, 1)).argmax() == 0
    even = torch.full((1, EXPERTS, EXPERTS), 1 / EXPERTS)
    assert float(load(Routing(even, even, torch.arange(EXPERTS)[None, :, None]))) == pytest.approx(1)
    one = torch.eye(EXPERTS)[[0, 0]][None]
    assert float(load(Routing(one, one, one.argmax(-1, keepdim=True)))) == pytest.approx(EXPERTS)


@pytest.mark.parametrize("text", [TEXT, OTHERS[0]])
def test_without_the_load_one_expert_gets_much_more_and_with_it_none_does(text: str) -> None:
    free, fair = (train_router(text, weight) for weight in (0.0, WEIGHT))
    assert float(free.last_shares.max()) > 0.4 > 0.38 > float(fair.last_shares.max())
    assert count_in_use(fair.last_shares) == EXPERTS > count_in_use(free.last_shares)
    assert (fair.kinds.sum(-1) > 0).all() and fair.losses[-1] < 0.5 * fair.losses[0]


def test_held_and_used_are_the_weights_of_a_layer() -> None:
    config = MLP(12, bias=False, experts=Experts(count=8, used=2))
    layer, sizes = make_mlp(config, 6), count_sizes(8, 2, 6, 12)
    assert sizes.held == sum(weight.numel() for weight in layer.parameters())
    assert sizes.used == sizes.held - 6 * sizes.expert and sizes.router == layer.router.weight.numel()
