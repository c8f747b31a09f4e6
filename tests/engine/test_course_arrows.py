"""The model of two dimensions, and what its words gather: arrows whose sums are the model's own numbers."""

import pytest
import torch

from engine import load, run
from engine.course.arrows import flatten, gather
from engine.course.averaging import weighted_average
from engine.course.plane import PRONOUNS, plane_config, sentences


def test_the_shipped_model_knows_who_is_meant_because_its_head_looks_at_the_name() -> None:
    checkpoint = load("plane")
    assert checkpoint.config == plane_config() and checkpoint.report.ok
    for words in sentences():
        trace = run(checkpoint.model, checkpoint.tokenizer.encode(" ".join(words[:-1])))  # type: ignore[union-attr]
        assert checkpoint.tokenizer.piece(int(trace["logits"][0, -1].argmax())) == words[-1] == PRONOUNS[words[0]]  # type: ignore[union-attr]
        assert float(trace["blocks.0.attn.pattern"][0, 0, -1, 0]) > 0.9


@pytest.mark.parametrize(("name", "text"), [("plane", "Tom saw the cat and"), ("everyday", "The girl was thirsty")])
def test_what_the_words_gather_in_all_heads_is_what_attention_adds(name: str, text: str) -> None:
    checkpoint = load(name)
    trace = run(checkpoint.model, checkpoint.tokenizer.encode(text))  # type: ignore[union-attr]
    heads = [gather(checkpoint.model, trace, 0, head) for head in range(checkpoint.config.attention.heads)]
    added = sum(found.weights @ found.carried for found in heads)
    torch.testing.assert_close(added, trace["blocks.0.attn.out"][0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(heads[0].begin, trace["blocks.0.resid_pre"][0])


def test_arrows_of_two_directions_add_up_and_hold_the_share_that_is_said() -> None:
    vectors = torch.randn(6, 20, generator=torch.Generator().manual_seed(0))
    flat = flatten(vectors)
    weights = torch.full((1, 6), 1 / 6)
    torch.testing.assert_close(weights @ flat.vectors, (weights @ vectors) @ flat.directions.T)
    assert flat.share == pytest.approx(float(flat.vectors.square().sum() / vectors.square().sum()), rel=1e-5)
    within = vectors[:, :2] @ torch.randn(2, 20, generator=torch.Generator().manual_seed(1))
    assert flatten(within).share == pytest.approx(1.0)
    assert torch.equal(flatten(vectors[:, :2]).vectors, vectors[:, :2])


def test_weights_and_numbers_of_ones_own_are_multiplied_in_batches_too() -> None:
    assert weighted_average(torch.tensor([0.1, 0.3, 0.6]), torch.tensor([[2.0], [5], [9]])).item() == pytest.approx(7.1)
    batch = torch.arange(12.0).view(2, 3, 2)
    assert weighted_average(torch.eye(3), batch).shape == batch.shape
