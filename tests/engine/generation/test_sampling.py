import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from engine.generation.sampling import HEAD, Sampling, distribution, draw, effective_choices, entropy, rank, skip_draws
from tests.engine.tiny import normal

cuts = st.sampled_from([1e-9, 0.1, 0.5, 0.9, 0.999, 1.0])


def theirs(logits: Tensor, sampling: Sampling, before: list[int]) -> Tensor:
    """What transformers' processors leave, in the order that `generate(do_sample=True)` has them."""
    found = LogitsProcessorList()
    if sampling.repetition_penalty != 1:
        found.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    if sampling.temperature != 1:
        found.append(TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k:
        found.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        found.append(TopPLogitsWarper(sampling.top_p))
    found.append(MinPLogitsWarper(sampling.min_p))
    if sampling.typical_p < 1:
        found.append(TypicalLogitsWarper(sampling.typical_p))
    return found(torch.tensor([before]), logits[None].clone())[0].softmax(-1)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.integers(-6, 6).map(lambda i: i / 2), min_size=1, max_size=60)  # with many ties
    | st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=60),
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.1, 0.7, 1.0, 3.0]),
        top_k=st.integers(0, 14),
        top_p=cuts,
        min_p=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
        typical_p=cuts,
        repetition_penalty=st.sampled_from([1.0, 1.2, 5.0, 0.5]),
    ),
    st.lists(st.integers(0, 70), min_size=1, max_size=9),
)
def test_every_distribution_equals_that_of_transformers(
    numbers: list[float], sampling: Sampling, before: list[int]
) -> None:
    logits = torch.tensor(numbers)
    stages = distribution(logits, sampling, before)
    torch.testing.assert_close(stages.probabilities, theirs(logits, sampling, before), atol=1e-5, rtol=0)
    assert stages.shares.sum().item() == pytest.approx(1, abs=1e-5)
    kept = (stages.in_top_k, stages.in_top_p, stages.in_min_p, stages.in_typical)
    for wider, narrower in zip(kept, kept[1:], strict=False):
        assert not (narrower & ~wider).any()
    assert stages.in_typical.any()
    assert not stages.probabilities[~stages.in_typical].any()


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0, 6.0])
def test_a_vocabulary_whose_tail_is_not_sorted_is_cut_as_if_it_were(p: float, spread: float) -> None:
    logits = normal(4, 3 * HEAD) * spread
    together = distribution(logits, Sampling(top_p=p)).probabilities
    for row, one in zip(together, logits, strict=True):
        torch.testing.assert_close(row, theirs(one, Sampling(top_p=p), [0]), atol=1e-5, rtol=0)


def test_with_no_setting_the_distribution_is_the_softmax_to_the_last_bit() -> None:
    logits = normal(3, 50) * 5
    stages = distribution(logits, Sampling(), before=[1, 2])
    assert torch.equal(stages.probabilities, logits.softmax(-1))
    assert stages.penalized is stages.scaled is logits
    assert all(one.all() for one in (stages.in_top_k, stages.in_top_p, stages.in_min_p, stages.in_typical))


def test_all_that_equal_the_last_of_the_top_k_stay() -> None:
    stages = distribution(torch.tensor([1.0, 5.0, 1.0, 1.0, 0.0]), Sampling(top_k=2))
    assert stages.in_top_k.tolist() == [True, True, True, True, False]


def test_min_p_is_a_share_of_the_most_probable_and_typical_p_is_nearest_to_the_entropy() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    assert distribution(logits, Sampling(min_p=0.6)).in_min_p.tolist() == [True, True, False, False]
    assert distribution(logits, Sampling(min_p=1.0)).in_min_p.tolist() == [True, False, False, False]
    # entropy 1.28 nats; surprises 0.92, 1.20, 1.61, 2.30: the second is nearest, then the third, then the first
    assert distribution(logits, Sampling(typical_p=0.3)).in_typical.tolist() == [False, True, False, False]
    assert distribution(logits, Sampling(typical_p=0.45)).in_typical.tolist() == [False, True, True, False]


def test_the_repetition_penalty_divides_what_is_positive_and_multiplies_the_rest_once_each() -> None:
    stages = distribution(torch.tensor([2.0, -2.0, 3.0, 0.0]), Sampling(repetition_penalty=2.0), [0, 1, 0, 9])
    assert stages.penalized.tolist() == [1.0, -4.0, 3.0, 0.0]
    assert stages.logits.tolist() == [2.0, -2.0, 3.0, 0.0]


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


@pytest.mark.parametrize("size", [3, 17, 1000, 40_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_draws_that_are_passed_over_leave_the_numbers_of_those_that_follow(size: int, dtype: torch.dtype) -> None:
    drawing, passing = (torch.Generator().manual_seed(5) for _ in "ab")
    probabilities = (normal(6, size) * 3).softmax(-1).to(dtype)
    drawn = [draw(one, drawing) for one in probabilities]
    skip_draws(3, probabilities[0], passing)
    assert [draw(one, passing) for one in probabilities[3:]] == drawn[3:]


def test_entropy_counts_choices_and_a_rank_counts_what_is_greater() -> None:
    assert effective_choices(torch.full((2, 8), 1 / 8)).tolist() == pytest.approx([8, 8])
    assert effective_choices(torch.tensor([1.0, 0.0])).item() == 1
    p = torch.tensor([0.035, 0.259, 0.706])
    assert entropy(p).item() == pytest.approx(-sum(x * math.log(x) for x in p.tolist()), abs=1e-6)
    assert [rank(torch.tensor([2.0, 4.0, 5.0, 4.0]), id) for id in range(4)] == [4, 2, 1, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.1}, r"output temperature must be 0 \(greedy\) or more, got -0.1"),
        ({"temperature": float("nan")}, "got nan"),
        ({"temperature": float("inf")}, "got inf"),
        ({"top_k": -1}, r"top-k must be 0 \(all\) or more, got -1"),
        ({"top_p": 0.0}, "top-p must be above 0 and at most 1, got 0.0"),
        ({"top_p": 1.1}, "top-p must be above 0 and at most 1, got 1.1"),
        ({"typical_p": 0.0}, "typical-p must be above 0 and at most 1, got 0.0"),
        ({"min_p": 1.5}, r"min-p must lie in 0..1, got 1.5"),
        ({"min_p": float("nan")}, r"min-p must lie in 0..1, got nan"),
        ({"repetition_penalty": 0.0}, r"repetition penalty must be above 0 \(1: none\), got 0.0"),
    ],
)
def test_a_setting_out_of_range_says_its_range(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sampling(**settings)  # type: ignore[arg-type]
