"""Losses and gradients in float64 against TRL's own methods, called with a stand-in for its trainer, and, for what TRL
does not have (values, advantages and rewards of PPO), against the papers' formulas, token by token.
"""

from collections import defaultdict
from math import log
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.training.objectives.kinds.dpo import score_dpo
from engine.training.objectives.kinds.grpo import group_advantages, score_grpo
from engine.training.objectives.kinds.kto import mismatch, score_kto
from engine.training.objectives.kinds.orpo import log1mexp, score_orpo
from engine.training.objectives.kinds.ppo import (
    Rollout,
    adapt_beta,
    estimate_advantages,
    evaluate_rollout,
    score_ppo,
    token_rewards,
    whiten,
)
from engine.training.objectives.kinds.reward import score_rewards
from engine.training.policy.kl import entropy_of, log_probs_of, masked_mean, masked_sum

BATCH, POS, VOCAB = 6, 5, 9
LENGTHS = [5, 3, 1, 4, 2, 5]
MASK = torch.arange(POS) < torch.tensor(LENGTHS)[:, None]
EXACT = {"atol": 1e-9, "rtol": 0.0}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def pretend_trainer(**options: Any) -> SimpleNamespace:
    """What the loss of one of TRL's trainers reads of its trainer."""

    def same(tensor: Tensor, **_: Any) -> Tensor:
        return tensor

    accelerator = SimpleNamespace(
        device=torch.device("cpu"), num_processes=1, gather=same, gather_for_metrics=same, reduce=same
    )
    return SimpleNamespace(
        accelerator=accelerator,
        model=SimpleNamespace(training=False),
        aux_loss_enabled=False,
        _metrics={"eval": defaultdict(list)},
        _total_train_tokens=0,
        **options,
    )


def check(ours: Tensor, theirs: Tensor, found: Tensor, expected: Tensor) -> None:
    """Compares two losses, and the gradients of what they were made from."""
    torch.testing.assert_close(found, expected, **EXACT)
    (gradient,), (right,) = torch.autograd.grad(found, ours), torch.autograd.grad(expected, theirs)
    assert right.abs().max() > 1e-3
    torch.testing.assert_close(gradient, right, **EXACT)


def twice(values: Tensor) -> tuple[Tensor, Tensor]:
    return values.clone().requires_grad_(), values.clone().requires_grad_()


def test_the_loss_of_a_reward_model_is_trls() -> None:
    from trl import RewardTrainer

    ours, theirs = twice(random(2 * BATCH) * 2)
    trainer = pretend_trainer(args=SimpleNamespace(center_rewards_coefficient=None))
    expected = RewardTrainer.compute_loss(trainer, lambda **_: SimpleNamespace(logits=theirs[:, None]), {})
    found = score_rewards(*ours.chunk(2))
    check(ours, theirs, found["loss"], expected)
    for name in ("accuracy", "margin"):
        assert float(found[name]) == pytest.approx(trainer._metrics["eval"][name][0], abs=1e-7)
    assert 0 < found["accuracy"] < 1


@pytest.mark.parametrize("beta", [0.1, 1.5])
def test_the_loss_of_dpo_is_trls(beta: float) -> None:
    from trl import DPOTrainer
    from trl.trainer.utils import selective_log_softmax

    ours, theirs = twice(random(BATCH, POS, VOCAB))
    ids, mask = random(BATCH, POS, seed=1).argsort(1), MASK
    reference = random(BATCH, seed=2) - 6
    chosen, rejected = masked_sum(log_probs_of(ours, ids), mask, 1).chunk(2)
    found = score_dpo(chosen, rejected, *reference.chunk(2), beta)
    trainer = pretend_trainer(
        ld_alpha=None, precompute_ref_logps=True, f_divergence_type="reverse_kl", loss_types=["sigmoid"],
        loss_weights=[1.0], beta=beta, use_weighting=False,
    )  # fmt: skip
    outputs = SimpleNamespace(
        log_probs=selective_log_softmax(theirs, ids, row_mask=mask),
        entropy=mask.double(),
        mean_logits=mask.double(),
        is_top1=mask,
    )
    inputs = {
        "completion_mask": torch.cat([torch.zeros(BATCH, 1, dtype=torch.int64), mask.long()], 1),
        "input_ids": torch.cat([ids[:, :1], ids], 1),
        "ref_chosen_logps": reference.chunk(2)[0],
        "ref_rejected_logps": reference.chunk(2)[1],
    }
    expected = DPOTrainer._compute_loss(trainer, lambda **_: outputs, inputs, False)
    check(ours, theirs, found["loss"], expected)
    names = {"accuracies": "accuracy", "margins": "margin", "chosen": "chosen_reward", "rejected": "rejected_reward"}
    for theirs_name, name in names.items():
        assert float(found[name]) == pytest.approx(trainer._metrics["eval"][f"rewards/{theirs_name}"][0], abs=1e-7)


@pytest.mark.parametrize("moved", [4.0, -4.0])  # from the reference point, which is 0 for the second
def test_the_loss_of_kto_is_trls(moved: float) -> None:
    from trl import KTOTrainer
    from trl.trainer.utils import selective_log_softmax

    ours, theirs = twice(random(BATCH, POS, VOCAB))
    ids, beta, weights = random(BATCH, POS, seed=1).argsort(1), 0.4, (1.3, 0.7)
    reference, mixed = random(BATCH, seed=2) - 6, random(BATCH, seed=3) - 6
    chosen, rejected = (masked_sum(log_probs_of(ours, ids), MASK, 1) - reference).chunk(2)
    point = torch.tensor(moved, dtype=torch.float64).clamp(min=0)
    found = score_kto(chosen, rejected, point, beta, *weights)
    trainer = pretend_trainer(
        beta=beta, calculate_KL=True, loss_type="kto", precompute_ref_logps=True, desirable_weight=weights[0],
        undesirable_weight=weights[1], _compute_kl_logps=lambda *_: mixed + moved, _tp_size=1,
    )  # fmt: skip
    outputs = SimpleNamespace(
        log_probs=selective_log_softmax(theirs, ids, row_mask=MASK),
        entropy=MASK.double(),
        mean_logits=MASK.double(),
    )
    whole = torch.cat([torch.ones(BATCH, 1, dtype=torch.int64), MASK.long()], 1)
    inputs = {
        "label": torch.arange(BATCH) < BATCH // 2,
        "input_ids": torch.cat([ids[:, :1], ids], 1),
        "completion_mask": whole * (torch.arange(POS + 1) > 0),
        "attention_mask": whole,
        "ref_logps": reference,
        "ref_KL_logps": mixed,
    }
    expected = KTOTrainer._compute_loss(trainer, lambda **_: outputs, inputs, False)
    check(ours, theirs, found["loss"], expected)
    for theirs_name, name in {"chosen": "chosen_reward", "rejected": "rejected_reward"}.items():
        assert float(found[name]) == pytest.approx(trainer._metrics["eval"][f"rewards/{theirs_name}"][0], abs=1e-7)


def test_an_answer_of_the_reference_point_is_the_prompts_of_another_pair() -> None:
    rows = torch.arange(24).view(4, 6)
    lengths, prompts = torch.tensor([6, 5, 4, 6]), torch.tensor([2, 2, 3, 3])
    at = torch.arange(6)
    stands, answer = at < lengths[:, None], (at < lengths[:, None]) & (at >= prompts[:, None])
    ids, there, theirs = mismatch(rows, stands, answer, 99, 5)
    assert ids[there].tolist() == [0, 1, 15, 6, 7, 21, 22, 23, 12, 13, 14, 2, 3, 18, 19, 20, 8, 9]
    assert ids[theirs].tolist() == [15, 21, 22, 23, 2, 3, 8, 9]


def test_the_loss_of_orpo_is_the_chosen_answers_own_and_trls_odds_ratio() -> None:
    from trl.experimental.orpo import ORPOTrainer, orpo_trainer

    ours, theirs = twice(random(BATCH, POS, VOCAB) * 3)
    ids = random(BATCH, POS, seed=1).argsort(1)
    means, other = (masked_mean(log_probs_of(one, ids), MASK, 1) for one in (ours, theirs))
    found = score_orpo(*means.chunk(2), 0.3)
    trainer = pretend_trainer(beta=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "float", Tensor.double)  # which it rounds to
        losses, _, _, _, log_odds = ORPOTrainer.odds_ratio_loss(trainer, *other.chunk(2))
    check(ours, theirs, found["loss"], -other.chunk(2)[0].mean() - losses.mean())
    assert float(found["margin"]) == pytest.approx(float(log_odds), abs=1e-12)
    near = torch.tensor([-1e-12, -0.5, -40.0], dtype=torch.float64)
    torch.testing.assert_close(log1mexp(near), orpo_trainer.log1mexp(near), **EXACT)


def test_the_first_loss_of_dpo_is_ln_2() -> None:
    chosen, rejected = random(2, BATCH)
    found = score_dpo(chosen, rejected, chosen, rejected, 0.3)
    assert float(found["loss"]) == pytest.approx(log(2), abs=1e-15)
    assert not any(found[name] for name in ("accuracy", "margin", "chosen_reward", "rejected_reward"))


def trls_grpo(log_probs: Tensor, inputs: dict[str, Any], **options: Any) -> tuple[Tensor, dict[str, list[float]]]:
    from trl import GRPOTrainer

    options = {"beta": 0.0, "weighted_kl": False, "entropy_coef": 0.0, "entropies": MASK.double()} | options
    trainer = pretend_trainer(
        top_entropy_quantile=1.0, off_policy_mask_threshold=None, importance_sampling_level="token",
        args=SimpleNamespace(use_bias_correction_kl=options["weighted_kl"], delta=None), loss_type=options["loss_type"],
        beta=options["beta"], epsilon_low=0.2, epsilon_high=0.2, use_vllm=False, use_adaptive_entropy=False,
        _entropy_bonus_enabled=bool(options["entropy_coef"]), entropy_coef=options["entropy_coef"],
        _get_per_token_logps_and_entropies=lambda *_, **__: (log_probs, options["entropies"], None),
    )  # fmt: skip
    ids = torch.zeros(BATCH, POS)
    shapes = {"prompt_ids": ids, "prompt_mask": ids, "completion_ids": ids, "completion_mask": MASK.long()}
    return GRPOTrainer._compute_loss(trainer, None, shapes | inputs), trainer._metrics["eval"]


@pytest.mark.parametrize("weighted_kl", [False, True])
@pytest.mark.parametrize("beta", [0.04, 1.0])
def test_the_loss_of_grpo_is_trls(beta: float, weighted_kl: bool) -> None:
    drawn, reference, advantages = random(BATCH, POS) - 2, random(BATCH, POS, seed=1) - 2, random(BATCH, seed=2)
    ours, theirs = twice(drawn + random(BATCH, POS, seed=3) / 3)
    inputs = {"advantages": advantages, "old_per_token_logps": drawn, "ref_per_token_logps": reference}
    expected, metrics = trls_grpo(theirs, inputs, beta=beta, weighted_kl=weighted_kl, loss_type="grpo")
    found = score_grpo(ours, drawn, reference, advantages, MASK, beta, weighted_kl=weighted_kl)
    check(ours, theirs, found["loss"], expected)
    assert float(found["kl"]) == pytest.approx(metrics["kl"][0], abs=1e-9)
    assert float(found["clip_fraction"]) == pytest.approx(metrics["clip_ratio/region_mean"][0], abs=1e-6)
    assert 0 < found["clip_fraction"] < 1


def test_advantages_of_a_group_are_trls() -> None:
    from trl.trainer.utils import nanstd

    rewards = random(3, 5)  # of which n / (n - 1) is exact in the float32 in which TRL has it
    centred = rewards - torch.nanmean(rewards, dim=1, keepdim=True)  # as in _generate_and_score_completions
    torch.testing.assert_close(group_advantages(rewards, scale=False), centred, **EXACT)
    scaled = centred / (nanstd(rewards, dim=1, keepdim=True) + 1e-4)
    torch.testing.assert_close(group_advantages(rewards), scaled, **EXACT)
    assert not group_advantages(torch.ones(2, 3)).any()
    with pytest.raises(ValueError, match="two or more answers to compare, got 1"):
        group_advantages(torch.ones(2, 1))


# --- PPO ---

ANSWERS = st.lists(st.tuples(st.integers(0, 2), st.integers(2, 6)), min_size=1, max_size=4)  # from pos to pos


def new_rollout() -> Rollout:
    log_probs, values = random(BATCH, POS) - 2, random(BATCH, POS, seed=1)
    return evaluate_rollout(log_probs, random(BATCH, POS, seed=2) - 2, values, random(BATCH, seed=3), MASK, 0.1)


@pytest.mark.parametrize("entropy_weight", [0.0, 0.3])
def test_the_policy_loss_of_ppo_is_trls_mean_over_tokens(entropy_weight: float) -> None:
    from trl.trainer.utils import selective_log_softmax

    rollout = new_rollout()
    logits, ids = random(BATCH, POS, VOCAB, seed=4), random(BATCH, POS, seed=5).argsort(1)
    rollout = Rollout(
        log_probs_of(logits, ids) + random(BATCH, POS) / 3, rollout.values, rollout.advantages, rollout.returns, MASK
    )
    ours, theirs = twice(logits)
    inputs = {"advantages": rollout.advantages, "old_per_token_logps": rollout.log_probs}
    expected, metrics = trls_grpo(
        selective_log_softmax(theirs, ids),
        inputs,
        loss_type="bnpo",
        entropy_coef=entropy_weight,
        entropies=torch.distributions.Categorical(logits=theirs).entropy(),
    )
    found = score_ppo(
        rollout,
        log_probs_of(ours, ids),
        rollout.values,
        value_weight=0.0,
        entropy=entropy_of(ours),
        entropy_weight=entropy_weight,
    )
    check(ours, theirs, found["loss"], expected)
    assert float(found["clip_fraction"]) == pytest.approx(metrics["clip_ratio/region_mean"][0], abs=1e-6)
    assert float(found["entropy"]) == pytest.approx(metrics["entropy"][0], abs=1e-9)


def test_the_loss_of_ppo_is_the_papers_token_by_token() -> None:
    rollout = new_rollout()
    now = torch.stack([rollout.log_probs, rollout.values]) + random(2, BATCH, POS, seed=6) / 3
    ours, theirs = twice(now)
    found = score_ppo(rollout, *ours, value_weight=0.5)
    policy, value, kl, clipped, cut = [], [], [], 0, 0
    for row, length in enumerate(LENGTHS):
        for pos in range(length):
            ratio = (theirs[0, row, pos] - rollout.log_probs[row, pos]).exp()
            advantage, old, target = (t[row, pos] for t in (rollout.advantages, rollout.values, rollout.returns))
            bounded = max(min(ratio, 1.2), 0.8)
            policy.append(-min(ratio * advantage, bounded * advantage))
            new = theirs[1, row, pos]
            near = old + max(min(new - old, 0.2), -0.2)
            value.append(max((new - target) ** 2, (near - target) ** 2) / 2)
            kl.append(ratio - 1 - ratio.log())
            clipped += bool(bounded * advantage < ratio * advantage)
            cut += bool((near - target) ** 2 > (new - target) ** 2)
    tokens = sum(LENGTHS)
    check(ours, theirs, found["loss"], sum(policy, start=torch.tensor(0.0)) / tokens + 0.5 * sum(value) / tokens)
    torch.testing.assert_close(found["policy_loss"], sum(policy).detach() / tokens, **EXACT)
    torch.testing.assert_close(found["value_loss"], sum(value).detach() / tokens, **EXACT)
    torch.testing.assert_close(found["approx_kl"], sum(kl).detach() / tokens, **EXACT)
    assert 0 < clipped < tokens and 0 < cut < tokens
    assert float(found["clip_fraction"]) == pytest.approx(clipped / tokens)
    assert float(found["value_clip_fraction"]) == pytest.approx(cut / tokens)


def test_a_tokens_reward_is_the_price_of_its_kl_and_the_last_ones_the_score_too() -> None:
    mask = torch.tensor([[False, True, True, False], [True, True, True, True], [False] * 4])
    policy, reference = random(2, 3, 4)
    scores = torch.tensor([5.0, -7.0, 9.0]).double()
    found = token_rewards(policy, reference, scores, mask, 0.5)
    expected = torch.where(mask, (reference - policy) / 2, 0)
    expected[0, 2] += 5
    expected[1, 3] -= 7
    torch.testing.assert_close(found, expected, **EXACT)


@given(ANSWERS, st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_advantages_are_the_papers_sums(answers: list[tuple[int, int]], gamma: float, lam: float, seed: int) -> None:
    rewards, values = random(2, len(answers), 6, seed=seed)
    mask = torch.tensor([[start <= pos < end for pos in range(6)] for start, end in answers])
    found = estimate_advantages(rewards, values, mask, gamma, lam)
    for row, (start, end) in enumerate(answers):
        following = [*values[row, :end].tolist(), 0.0]
        surprises = [float(rewards[row, t]) + gamma * following[t + 1] - following[t] for t in range(end)]
        for t in range(6):
            expected = sum((gamma * lam) ** (k - t) * surprises[k] for k in range(t, end)) if t >= start else 0
            assert float(found[row, t]) == pytest.approx(expected, abs=1e-9)


def test_a_rollout_has_white_advantages_and_returns_that_are_not() -> None:
    log_probs, reference, values = random(3, BATCH, POS)
    scores = random(BATCH, seed=8)
    found = evaluate_rollout(log_probs, reference, values, scores, MASK, 0.1, 0.9, 0.8)
    advantages = estimate_advantages(token_rewards(log_probs, reference, scores, MASK, 0.1), values, MASK, 0.9, 0.8)
    torch.testing.assert_close(found.returns[MASK], (advantages + values)[MASK], **EXACT)
    white, raw = found.advantages[MASK], advantages[MASK]
    torch.testing.assert_close(white, (raw - raw.mean()) / raw.std(correction=0), atol=1e-7, rtol=0)
    assert not found.advantages[~MASK].any() and not found.returns[~MASK].any()
    assert not whiten(torch.full_like(values, 3.0), MASK).any()


def test_padding_is_not_read() -> None:
    """Whatever stands there, losses and gradients are the same."""

    def scores(padding: float) -> tuple[Tensor, ...]:
        tensors = [torch.where(MASK, random(BATCH, POS, seed=seed), padding) for seed in range(5)]
        log_probs, values = (tensor.requires_grad_() for tensor in tensors[:2])
        rollout = evaluate_rollout(*tensors[2:], random(BATCH), MASK, 0.1)
        ppo = score_ppo(rollout, log_probs, values, entropy=log_probs, entropy_weight=0.1)
        grpo = score_grpo(log_probs, tensors[2], tensors[3], random(BATCH), MASK, 0.1)
        gradients = torch.autograd.grad(ppo["loss"] + grpo["loss"], [log_probs, values])
        return *ppo.values(), *grpo.values(), *gradients

    for found, expected in zip(scores(torch.nan), scores(0.0), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize(("kl", "expected"), [(6.0, 0.2), (6.6, 0.202), (60.0, 0.204), (5.4, 0.198), (0.0, 0.196)])
def test_beta_follows_the_kl(kl: float, expected: float) -> None:
    assert adapt_beta(0.2, kl, 6.0, 1000, 10_000) == pytest.approx(expected)
