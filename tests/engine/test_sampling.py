import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sampling import Sampling, distribution, draw

numbers = st.lists(st.integers(-6, 6).map(lambda i: i / 2), min_size=1, max_size=12)  # with many ties
temperatures = st.sampled_from([0.0, 0.1, 0.7, 1.0, 3.0])
cuts = st.sampled_from([1e-9, 0.1, 0.5, 0.9, 0.999, 1.0])


def naive(logits: list[float], sampling: Sampling) -> tuple[np.ndarray, list[int]]:
    """The final probabilities and the ids kept, one token after another, ties to the smaller id."""
    if sampling.temperature == 0:
        best = int(np.argmax(logits))
        return np.eye(len(logits))[best], [best]
    shares = np.exp((np.array(logits) - max(logits)) / sampling.temperature)
    shares /= shares.sum()
    ranked = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if sampling.top_k:
        ranked = ranked[: sampling.top_k]
    left = shares[ranked].sum()
    kept: list[int] = []
    for i in ranked:
        kept.append(i)
        if sampling.top_p < 1 and shares[kept].sum() / left >= sampling.top_p - 1e-6:
            break
    final = np.zeros(len(logits))
    final[kept] = shares[kept] / shares[kept].sum()
    return final, kept


@settings(max_examples=300, deadline=None)
@given(numbers, temperatures, st.integers(0, 14), cuts)
def test_the_stages_equal_a_naive_implementation(logits: list[float], temperature: float, k: int, p: float) -> None:
    sampling = Sampling(temperature, k, p)
    stages = distribution(torch.tensor(logits), sampling)
    final, kept = naive(logits, sampling)
    if temperature > 0:
        reached = np.sort(naive(logits, Sampling(temperature, k))[0])[::-1].cumsum()
        if np.abs(reached - p).min() < 1e-5 and p < 1:
            return  # the sum lands on p itself, where float32 and float64 may differ by one token
    assert torch.nonzero(stages.probabilities).flatten().tolist() == sorted(kept)
    np.testing.assert_allclose(stages.probabilities.numpy(), final, atol=1e-6)
    assert stages.shares.sum().item() == pytest.approx(1, abs=1e-6)
    assert not (stages.in_top_p & ~stages.in_top_k).any()
    assert stages.in_top_k.sum() == (len(logits) if k == 0 else min(k, len(logits)))


def test_ties_at_the_edge_of_top_k_go_to_the_smaller_id() -> None:
    stages = distribution(torch.tensor([1.0, 5.0, 1.0, 1.0]), Sampling(top_k=2))
    assert stages.in_top_k.tolist() == [True, True, False, False]


def test_top_p_never_leaves_nothing_and_takes_shares_of_what_top_k_left() -> None:
    logits = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()
    assert distribution(logits, Sampling(top_p=1e-9)).in_top_p.tolist() == [True, False, False, False]
    # of the first three, the first two are 0.75 / 0.9 = 0.83
    assert distribution(logits, Sampling(top_k=3, top_p=0.8)).in_top_p.sum() == 2
    assert distribution(logits, Sampling(top_p=0.8)).in_top_p.sum() == 3


@pytest.mark.parametrize("temperature", [0.0, 1e-40, 1e-300])
def test_at_no_temperature_the_first_of_the_largest_has_it_all(temperature: float) -> None:
    stages = distribution(torch.tensor([[1.0, 7.0, 7.0, -2.0]]), Sampling(temperature))
    assert stages.probabilities.tolist() == [[0.0, 1.0, 0.0, 0.0]]


def test_every_row_of_a_batch_is_cut_by_itself() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.0], [0.0, 9.0, 8.9]])
    together = distribution(logits, Sampling(0.8, 2, 0.9))
    for row in range(2):
        alone = distribution(logits[row], Sampling(0.8, 2, 0.9))
        assert torch.equal(together.probabilities[row], alone.probabilities)


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.tensor([0.0, 0.2, 0.5, 0.3])
    drawn = np.bincount([draw(probabilities, generator) for _ in range(4000)], minlength=4) / 4000
    assert drawn[0] == 0
    np.testing.assert_allclose(drawn, probabilities, atol=4 * math.sqrt(0.25 / 4000))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.1}, r"output temperature must be 0 \(greedy\) or more, got -0.1"),
        ({"temperature": float("nan")}, "got nan"),
        ({"temperature": float("inf")}, "got inf"),
        ({"top_k": -1}, r"top-k must be 0 \(all\) or more, got -1"),
        ({"top_p": 0.0}, "top-p must be above 0 and at most 1, got 0.0"),
        ({"top_p": 1.1}, "top-p must be above 0 and at most 1, got 1.1"),
    ],
)
def test_a_setting_out_of_range_says_its_range(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sampling(**settings)  # type: ignore[arg-type]
