"""Head scores against patterns whose scores are known by construction."""

import math

import pytest
import torch

from engine.analysis.heads import head_scores, induction
from engine.hooks import HookPoint
from engine.trace import Trace


def trace_of(pattern: torch.Tensor) -> Trace:
    """A trace that holds one layer's pattern, batch head pos key."""
    hook = HookPoint("blocks.0.attn.pattern", "batch head pos key")
    return Trace({hook.name: pattern}, {hook.name: hook}, torch.zeros(1, pattern.shape[-1], dtype=torch.long))


def test_a_head_that_looks_back_one_token_scores_one_on_previous_and_zero_on_itself() -> None:
    pattern = torch.zeros(1, 1, 4, 4)
    pattern[0, 0, 0, 0] = 1
    for pos in range(1, 4):
        pattern[0, 0, pos, pos - 1] = 1
    scores = head_scores(trace_of(pattern))
    assert scores.previous.item() == 1
    assert scores.own.item() == 0
    assert scores.first.item() == pytest.approx(1 / 3)  # only position 1 looks at position 0
    assert scores.entropy.item() == 0


def test_even_attention_has_the_entropy_of_its_row_length() -> None:
    pattern = torch.tril(torch.ones(4, 4))
    pattern = (pattern / pattern.sum(-1, keepdim=True))[None, None]
    expected = sum(math.log2(n) for n in range(2, 5)) / 3
    assert head_scores(trace_of(pattern)).entropy.item() == pytest.approx(expected)


def test_one_token_leaves_every_score_undefined() -> None:
    scores = head_scores(trace_of(torch.ones(1, 1, 1, 1)))
    assert all(value.isnan().all() for value in vars(scores).values())


def test_induction_reads_the_tokens_after_every_earlier_occurrence() -> None:
    ids = torch.tensor([5, 7, 5, 9, 5])  # position 2 repeats 0, so key 1; position 4 repeats 0 and 2, so keys 1 and 3
    pattern = torch.zeros(2, 5, 5)
    pattern[0, 2, 1], pattern[0, 4, 1], pattern[0, 4, 3] = 1.0, 0.25, 0.5
    pattern[1, 2, 0] = pattern[1, 4, 4] = 1.0
    assert induction(pattern, ids).tolist() == [0.875, 0.0]


def test_without_a_repeat_there_is_no_induction_score() -> None:
    assert induction(torch.ones(1, 2, 2), torch.tensor([1, 2])).isnan().all()
