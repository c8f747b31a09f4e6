"""Log-probabilities, KL and entropy against PyTorch's and TRL's, and the estimators' expectations, exact over a small
vocabulary."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.scoring.score import AT_ONCE
from engine.training.policy import kl

DRAW = torch.Generator().manual_seed(3)
POLICY, REFERENCE = torch.randn(2, 2, 3, 7, dtype=torch.float64, generator=DRAW) * 2  # batch pos vocab
IDS = torch.randint(7, (2, 3), generator=DRAW)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_probabilities_are_trls_with_their_gradient(temperature: float) -> None:
    """TRL's trainers divide the logits of policy, old policy and reference by the temperature of the draws."""
    from trl.trainer.utils import entropy_from_logits, selective_log_softmax

    ours, theirs = POLICY.clone().requires_grad_(), POLICY.clone().requires_grad_()
    found, expected = kl.log_probs_of(ours, IDS, temperature), selective_log_softmax(theirs / temperature, IDS)
    entropy = entropy_from_logits(POLICY / temperature)
    torch.testing.assert_close(kl.entropy_of(POLICY, temperature), entropy, atol=1e-12, rtol=0)
    (found**2).sum().backward()
    (expected**2).sum().backward()
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_probabilities_of_a_large_vocabulary_are_log_softmax_bit_for_bit(dtype: torch.dtype) -> None:
    vocab = AT_ONCE // 3  # three rows at a time
    logits = torch.randn(2, 4, vocab, generator=DRAW).to(dtype) + 40
    ids = torch.randint(vocab, (2, 4), generator=DRAW)
    expected = logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    assert torch.equal(kl.log_probs_of(logits, ids), expected)


def test_rows_come_a_few_at_a_time() -> None:
    rows: list[int] = []
    kl.map_rows(lambda part: rows.append(len(part)) or part[:, 0], torch.zeros(2, 4, AT_ONCE // 3))
    assert rows == [3, 3, 2]


def test_entropy_and_kl_are_those_of_torchs_distributions_and_of_trl() -> None:
    from trl.trainer.utils import entropy_from_logits

    policy, reference = (torch.distributions.Categorical(logits=each) for each in (POLICY, REFERENCE))
    exact = torch.distributions.kl_divergence(policy, reference)
    torch.testing.assert_close(kl.entropy_of(POLICY), policy.entropy(), atol=1e-12, rtol=0)
    torch.testing.assert_close(kl.entropy_of(POLICY), entropy_from_logits(POLICY), atol=1e-12, rtol=0)
    torch.testing.assert_close(kl.kl_of(POLICY, REFERENCE), exact, atol=1e-12, rtol=0)


def test_tensors_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(2, 2\)"):
        kl.log_probs_of(POLICY, IDS[:, 1:])
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(1, 3\)"):
        kl.kl_of(POLICY, REFERENCE[:1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_equal_logits_have_a_kl_of_exactly_0(dtype: torch.dtype) -> None:
    logits = POLICY.to(dtype)
    log_probs = kl.log_probs_of(logits, IDS)
    assert not kl.kl_of(logits, logits.clone()).any()
    assert not any(estimate(log_probs, log_probs.clone()).any() for estimate in (kl.k1, kl.k3))


def expectation(estimate, policy: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Mean of an estimator over the tokens that the policy would draw: each of the vocabulary by its probability."""
    log_p, log_q = policy.log_softmax(-1), reference.log_softmax(-1)
    return (log_p.exp() * estimate(log_p, log_q)).sum(-1)


def test_k1_and_k3_are_unbiased() -> None:
    exact = kl.kl_of(POLICY, REFERENCE)
    for estimate in (kl.k1, kl.k3):
        torch.testing.assert_close(expectation(estimate, POLICY, REFERENCE), exact, atol=1e-12, rtol=0)


@given(st.floats(-20, 0), st.floats(-20, 0))
@settings(deadline=None)
def test_k3_is_never_negative_and_that_of_trl(policy: float, reference: float) -> None:
    p, q = torch.tensor([policy, reference], dtype=torch.float64)
    assert kl.k3(p, q) >= 0
    torch.testing.assert_close(kl.k3(p, q), torch.exp(q - p) - (q - p) - 1, atol=1e-12, rtol=1e-12)


def test_what_the_mask_leaves_out_is_not_read() -> None:
    values = torch.tensor([[1.0, 2.0, torch.inf], [4.0, torch.nan, torch.nan]], requires_grad=True)
    mask = values.isfinite()
    mean = kl.masked_mean(values, mask)
    mean.backward()
    assert mean.item() == pytest.approx(7 / 3)
    assert values.grad is not None and torch.equal(values.grad, mask / 3)
    assert kl.masked_mean(values, mask, 1).tolist() == [1.5, 4.0]
    assert kl.masked_sum(values, mask, 1).tolist() == [3.0, 4.0]
    assert kl.masked_mean(values, torch.zeros_like(mask)) == 0
