"""Loss: cross-entropy and perplexity by hand, p - y as autograd has it, and the 80/10/10 rule counted."""

import math

import pytest
import torch

from engine.analysis.surprise import surprise
from engine.course.loss import count_hidden, follows, gradients, gradients_at, masked_loss, most_moved
from engine.runtime import library
from engine.scoring.examples import UNASKED
from engine.training.examples.masked import ANOTHER, CHOSEN, FOLLOWS, marks_of, masked_windows

TEXT = "Once upon a time, there was a girl named Anna."
FIRST = "Max lost his red kite. He was sad."


def tokenizer_of(name: str):  # type: ignore[no-untyped-def]
    return library.checkpoint(name).tokenizer


def test_perplexity_is_e_to_the_mean_loss_in_nats() -> None:
    checkpoint, ids = library.checkpoint("stories"), tokenizer_of("stories").encode(TEXT).ids
    found = surprise(checkpoint, ids)
    losses = [gradients_at("stories", ids, at).loss for at in range(1, len(ids))]
    assert losses == pytest.approx((-found.log_probabilities).tolist(), abs=1e-4)
    assert found.mean == pytest.approx(sum(losses) / len(losses), abs=1e-4)
    assert found.perplexity == pytest.approx(math.exp(found.mean)) == pytest.approx(2 ** (found.mean / math.log(2)))
    assert found.mean == pytest.approx(found.training, abs=1e-5)


def test_the_gradient_at_the_logits_is_p_minus_y() -> None:
    found = gradients(torch.tensor([2.0, 4.0, 5.0]), 1)
    assert [round(value, 4) for value in found.by_hand.tolist()] == [0.0351, -0.7405, 0.7054]
    assert found.loss == pytest.approx(-math.log(0.2595), abs=1e-3)
    ids = tokenizer_of("stories").encode(TEXT).ids
    for at in range(1, len(ids)):
        found = gradients_at("stories", ids, at)
        assert found.gap < 1e-14 and abs(float(found.by_hand.sum())) < 1e-12
        assert float(found.by_hand.norm()) <= math.sqrt(2) and found.y.argmax() == ids[at]
        shown = most_moved(found, 7)
        assert shown[0] == ids[at] and len(set(shown)) == 7
    even = gradients(torch.zeros(50), 3)
    assert even.loss == pytest.approx(math.log(50)) and math.exp(even.loss) == pytest.approx(50)


@pytest.mark.parametrize("text", [TEXT, "Max gave the red ball to Anna.", "sad"])
def test_hidden_words_are_80_10_10_of_15_percent(text: str) -> None:
    tokenizer, draws = tokenizer_of("tales-bert"), 4000
    marks = marks_of(tokenizer)
    ids = [id for id in tokenizer.encode(text).ids if id in set(marks.ordinary.tolist())]
    drawn = masked_windows(torch.tensor([ids] * draws), marks, torch.Generator().manual_seed(0))
    found = count_hidden(drawn.ids, drawn.targets, marks.mask, draws * len(ids))
    assert found.chosen == draws * max(1, round(CHOSEN * len(ids)))
    assert found.masked + found.replaced + found.kept == found.chosen
    shares = [count / found.chosen for count in (found.masked, found.replaced, found.kept)]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.015)
    asked = drawn.targets != UNASKED
    whole = torch.tensor([marks.cls, *ids, marks.sep]).expand_as(drawn.ids)
    assert torch.equal(drawn.ids[~asked], whole[~asked])


def test_only_hidden_words_are_asked() -> None:
    marks = marks_of(tokenizer_of("tales-bert"))
    ids = [id for id in tokenizer_of("tales-bert").encode(TEXT).ids if id not in (marks.cls, marks.sep)]
    drawn = masked_windows(torch.tensor([ids]), marks, torch.Generator().manual_seed(1))
    shares, loss = masked_loss("tales-bert", drawn.ids, drawn.targets)
    asked = drawn.targets[0] != UNASKED
    assert loss == pytest.approx(float(-shares[asked].log().mean()), abs=1e-4)


def test_a_next_sentence_is_told_from_another() -> None:
    tokenizer = tokenizer_of("tales-bert")
    goes_on = follows("tales-bert", tokenizer.encode(FIRST, "The kite was in a tree, and Max was happy again."))
    other = follows("tales-bert", tokenizer.encode(FIRST, "Then Perseus flew over the sea with the head of Medusa."))
    assert goes_on[FOLLOWS] > 0.9 and other[ANOTHER] > 0.7
    assert float(goes_on.sum()) == pytest.approx(1)
