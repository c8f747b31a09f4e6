from __future__ import annotations

import math
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
import transformers
from torch.nn import functional

from engine.analysis.pseudo import TOKENS, asked_of, pseudo_surprise, scores
from engine.checkpoints import Checkpoint
from engine.runtime.library import checkpoint
from engine.scoring.examples import UNASKED

TEXT = "It began to rain. Lily was not worried, because she had an umbrella."


def theirs(loaded: Checkpoint) -> Any:
    """transformers' own BertForMaskedLM, of the checkpoint as Loupe writes it."""
    with TemporaryDirectory() as folder:
        loaded.save(folder)
        return transformers.BertForMaskedLM.from_pretrained(folder).eval()


@pytest.mark.parametrize(("text", "second"), [(TEXT, ""), ("Lily had a red ball.", "She gave it to Max.")])
def test_each_token_is_as_probable_as_transformers_says_with_that_token_masked(text: str, second: str) -> None:
    loaded = checkpoint("tales-bert")
    model, tokenizer = theirs(loaded), loaded.tokenizer
    assert tokenizer is not None
    read = tokenizer.encode(text, second) if second else tokenizer.encode(text)
    found = pseudo_surprise(loaded, read.ids, read.segments)
    assert found.at.tolist() == [place for place, special in enumerate(read.special) if not special]
    for token, place in enumerate(found.at.tolist()):
        masked = torch.tensor([read.ids])
        masked[0, place] = tokenizer.mask_id
        with torch.no_grad():
            logits = model(masked, token_type_ids=torch.tensor([read.segments])).logits[0, place].double()
        own = logits.log_softmax(-1)
        assert float(found.log_probabilities[token]) == pytest.approx(float(own[read.ids[place]]), abs=1e-4)
        assert int(found.ranks[token]) == 1 + int((logits > logits[read.ids[place]]).sum())
        assert float(found.entropies[token]) == pytest.approx(float(-(own.exp() * own).sum()), abs=1e-4)
    assert found.perplexity == pytest.approx(math.exp(-float(found.log_probabilities.double().mean())), rel=1e-6)


def test_the_loss_of_training_on_the_same_rows_is_the_mean() -> None:
    loaded = checkpoint("tales-bert")
    assert loaded.tokenizer is not None
    ids = loaded.tokenizer.encode(TEXT).ids
    found = pseudo_surprise(loaded, ids)
    (examples,) = found.examples
    assert (examples.targets != UNASKED).sum(-1).tolist() == [1] * len(found.ids)
    logits = loaded.model(examples.ids)
    plain = functional.cross_entropy(logits.flatten(0, 1).double(), examples.targets.flatten(), ignore_index=UNASKED)
    assert found.training == pytest.approx(float(plain), rel=1e-5)
    assert found.mean == pytest.approx(float(plain), rel=1e-5)


def test_a_text_in_several_batches_is_the_text_in_one() -> None:
    loaded = checkpoint("tales-bert")
    assert loaded.tokenizer is not None
    ids = loaded.tokenizer.encode(" ".join([TEXT] * 7)).ids
    asked = asked_of(loaded, ids)
    assert len(asked) > TOKENS // len(ids) * 2
    found = pseudo_surprise(loaded, ids)
    alone = torch.cat([pseudo_surprise(loaded, ids, places=[place]).log_probabilities for place in asked])
    torch.testing.assert_close(found.log_probabilities, alone, atol=1e-4, rtol=0)


def test_a_mask_of_the_texts_own_is_not_asked_for_and_stays_hidden() -> None:
    loaded = checkpoint("tales-bert")
    assert loaded.tokenizer is not None
    ids = loaded.tokenizer.encode("It began to [MASK].").ids
    place = ids.index(loaded.tokenizer.mask_id or 0)
    found = pseudo_surprise(loaded, ids)
    assert place not in found.at.tolist()
    assert set(found.examples[0].ids[:, place].tolist()) == {loaded.tokenizer.mask_id}


def test_what_cannot_be_scored_is_refused_with_a_sentence() -> None:
    loaded = checkpoint("tales-bert")
    assert loaded.tokenizer is not None
    with pytest.raises(ValueError, match="predicts masked tokens"):
        pseudo_surprise(checkpoint("stories"), [1, 2, 3])
    with pytest.raises(ValueError, match="write a word"):
        pseudo_surprise(loaded, loaded.tokenizer.encode("").ids)
    with pytest.raises(ValueError, match="at most 256 tokens"):
        pseudo_surprise(loaded, [9] * 257)
    assert not scores(Checkpoint(loaded.model))
