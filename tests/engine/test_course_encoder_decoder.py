"""Encoder, decoder, both: attention across as the model makes it, the shift, and a target given or written."""

import pytest
import torch

from engine.course.encoder_decoder import (
    LONGEST,
    attend_across,
    gap_to_forced,
    guess_each,
    guess_from_before,
    shifted_right,
    teacher_forced,
    write_words,
)
from engine.inputs.readers import read_translation
from engine.runtime import library

BOTH, TEXT = "translate-en-fr", "My father has a red car."
HALF = ("Mon", "·père", "·a", "·une", "·voiture", "·rouge", ".")


def pieces(ids: list[int]) -> list[str]:
    tokenizer = library.checkpoint(BOTH).tokenizer
    assert tokenizer is not None
    return [tokenizer.piece(id) for id in ids]


def read(text: str = TEXT):  # type: ignore[no-untyped-def]
    found = read_translation(library.checkpoint(BOTH), text, "", LONGEST)
    return found.read, found.target


def test_queries_come_from_the_decoder_and_the_rest_from_the_encoder() -> None:
    source, target = read()
    trace = library.traces.trace(BOTH, source, target=target)
    for layer in range(3):
        for head in range(6):
            found = attend_across(BOTH, source.ids, target.ids, layer, head)
            assert len(found.q) == len(target) == 8 and len(found.k) == len(found.v) == len(source) == 7
            for name in ("pattern", "z"):
                kept = trace[f"decoder.blocks.{layer}.cross_attn.{name}"][0]
                kept = kept[head] if name == "pattern" else kept[:, head]
                assert torch.allclose(getattr(found, name), kept, atol=1e-5)


def test_the_aligning_head_looks_at_the_word_that_is_translated() -> None:
    source, target = read()
    measured = library.checkpoint(BOTH).card["measured"]["alignment"]
    found = attend_across(BOTH, source.ids, target.ids, measured["layer"], measured["head"])
    looked = [source.pieces[at] for at in found.pattern.argmax(-1).tolist()]
    assert looked[:6] == ["My", "·father", "·has", "·a", "·car", "·red"]  # car and red are crossed


def test_what_is_read_is_what_is_asked_shifted_right() -> None:
    source, target = read()
    given, asked = shifted_right(library.checkpoint(BOTH), source, target)
    assert pieces(given) == ["<s>", *HALF] and pieces(asked) == [*HALF, "</s>"]
    assert given[1:] == asked[:-1]


def test_given_words_are_read_whatever_it_says_and_its_own_give_the_same_logits() -> None:
    checkpoint = library.checkpoint(BOTH)
    source, _ = read()
    written = write_words(checkpoint, source)
    assert pieces(written.ids) == [*HALF, "</s>"] and pieces(written.read) == ["<s>", *HALF]
    forced = teacher_forced(checkpoint, source, checkpoint.target("Mon père veut une voiture rouge."))
    assert pieces(forced.says)[2] == "·a" and pieces(forced.read)[3] == "·veut"
    assert forced.shares[2] < 0.01 < forced.shares[3]
    for text in (TEXT, "🦉 猫", "x", "The dog is big and the cat is small.", "the the the the the the the the the the"):
        source, _ = read(text)
        assert gap_to_forced(checkpoint, source, write_words(checkpoint, source)) < 1e-3


@pytest.mark.parametrize(("name", "count"), [("tales-bert", 7), ("everyday", 6)])
def test_an_encoder_guesses_each_token_and_a_decoder_each_next_one(name: str, count: int) -> None:
    checkpoint = library.checkpoint(name)
    assert checkpoint.tokenizer is not None
    assert len(guess_each(checkpoint, checkpoint.tokenizer.encode(TEXT)).ids) == count


def test_what_is_cut_away_after_a_hidden_token_is_not_read() -> None:
    encoder = library.checkpoint("tales-bert")
    one, other = (encoder.tokenizer.encode(f"the king loved his {word}") for word in ("wife", "men"))
    same = len(one.ids) - 2  # all but the last word and [SEP]
    right = guess_from_before(encoder, one)
    assert len(right) == len(guess_each(encoder, one).ids) == one.special.count(False)
    assert right[: same - 1] == guess_from_before(encoder, other)[: same - 1]
    read = torch.tensor([[*one.ids[:-2], encoder.tokenizer.mask_id, one.ids[-1]]])  # of the last it is the same text
    assert right[-1] == (int(encoder.model(read)[0, -2].argmax()) == one.ids[-2])
    cut = one.truncate(3)  # without [SEP]
    assert len(guess_from_before(encoder, cut)) == cut.special.count(False)
