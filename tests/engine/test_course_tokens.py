"""Six ways to cut a text: what is shared, what is lost, and a vocabulary that is cut short is one learned shorter."""

from itertools import islice

import pytest

from engine.course.tokens import KINDS, are_unknown, comes_back, cut, lengths, shrink, tokenizer_of
from engine.data.stories import stories
from engine.tokenizers import train

STEM = "phone, phones, phoned"
CHINESE, EMOJI = "猫坐在垫子上。", "🦉👩‍🚀"


def test_every_kind_is_of_its_kind() -> None:
    assert [tokenizer_of(kind).kind for kind in KINDS] == list(KINDS)


def test_a_stem_is_shared_by_pieces_and_not_by_words() -> None:
    assert len(set(cut("word", STEM).ids)) == 3 and sum(are_unknown("word", cut("word", STEM))) == 3
    assert list(cut("char", STEM).pieces) == [c.replace(" ", "·") for c in STEM]
    assert cut("byte", STEM).ids == tuple(STEM.encode())
    for kind in ("bpe", "wordpiece", "unigram"):
        pieces = cut(kind, STEM).pieces
        assert len(pieces) < len(STEM) and len(set(pieces)) < len(pieces)


@pytest.mark.parametrize("text", [CHINESE, EMOJI, "Max saw a zyzzyva."])
def test_bytes_and_byte_level_bpe_lose_nothing(text: str) -> None:
    for kind in ("byte", "bpe"):
        assert not any(are_unknown(kind, cut(kind, text))) and comes_back(kind, text)
    assert len(cut("byte", text)) == len(text.encode())


def test_the_other_kinds_have_an_unknown_token() -> None:
    for kind in ("word", "char", "wordpiece", "unigram"):
        assert any(are_unknown(kind, cut(kind, CHINESE))) and not comes_back(kind, CHINESE)
    assert are_unknown("wordpiece", cut("wordpiece", CHINESE)) == [True] * len(CHINESE)


def test_a_vocabulary_cut_short_is_what_a_shorter_training_learns() -> None:
    texts = list(islice(stories(1), 60))
    for kind, size in (("bpe", 300), ("wordpiece", 200)):
        short, long = train(kind, texts, size), train(kind, texts, 400)
        assert shrink(long, size).fast.get_vocab() == short.fast.get_vocab()
        for text in islice(stories(2), 10):
            assert shrink(long, size).encode(text).ids == short.encode(text).ids


def test_more_entries_never_cost_more_tokens_of_bpe() -> None:
    found = lengths("Max gave the red ball to Anna.")
    counts = [tokens for kind, _, tokens in found if kind == "bpe"]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]
    sizes = [size for kind, size, _ in found if kind == "bpe"]
    assert sizes[0] == 257 and sizes[-1] == 1024
