"""Unigram: the most probable pieces, SentencePiece's spaces, a vocabulary that does not change by chance."""

import json
from itertools import product
from math import inf

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from engine.data.stories import story
from engine.tokenizers import FastTokenizer, train

TEXTS = [story(1, index) for index in range(300)]
TRAINED = train("unigram", TEXTS, 400)


def scores(tokenizer: FastTokenizer) -> dict[str, float]:
    return dict(json.loads(tokenizer.fast.to_str())["model"]["vocab"])


def test_a_text_is_its_most_probable_pieces() -> None:
    """Against the best of every way to cut each word, by the sum of the pieces' log probabilities."""
    score = scores(TRAINED)
    text = "the unhappy dog swimmingly remembered upon marmalade"
    ids = TRAINED.encode(text, special=False).ids
    found = [score[entry] for entry in map(TRAINED.fast.id_to_token, ids) if entry is not None]
    expected = 0.0
    for word in text.split():
        entry = "\u2581" + word
        best = [0.0] + [-inf] * len(entry)
        for end in range(1, len(entry) + 1):
            best[end] = max(best[start] + score.get(entry[start:end], -inf) for start in range(end))
        expected += best[-1]
    assert len(found) > 20
    assert sum(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("text", ["the dog\n  sat ", "", "The\tdog<|endoftext|>the dog", story(2, 0)])
def test_a_text_that_does_not_begin_with_a_space_comes_back(text: str) -> None:
    assert TRAINED.decode(TRAINED.encode(text).ids) == text.replace("\n", "<unk>").replace("\t", "<unk>")


def test_a_word_is_the_same_piece_wherever_it_stands() -> None:
    encoding = TRAINED.encode("the the")
    assert encoding.pieces == ("\u00b7the", "\u00b7the")
    assert encoding.spans == ((0, 3), (3, 7))


def test_what_was_never_seen_is_one_unknown_that_stands_for_text() -> None:
    encoding = TRAINED.encode("the 🦉🦉 sat")
    at = encoding.pieces.index("<unk>")
    assert encoding.spans[at] == (4, 6)
    assert not encoding.special[at]


def test_training_again_gives_the_same_pieces_and_scores() -> None:
    assert [scores(train("unigram", TEXTS, 400)) for _ in range(3)] == [scores(TRAINED)] * 3
    assert list(scores(TRAINED).values())[2:] == sorted(list(scores(TRAINED).values())[2:], reverse=True)


def test_a_vocabulary_has_room_for_every_character_or_is_refused() -> None:
    assert TRAINED.vocab_size == 400
    characters = {character for text in TEXTS for character in text} - {" "} | {"\u2581"}
    assert characters <= scores(TRAINED).keys()
    with pytest.raises(ValueError, match="raise vocab_size"):
        train("unigram", TEXTS, len(characters))


def build_metaspace(scheme: str, split: bool, token: AddedToken) -> FastTokenizer:
    """A Unigram as T5's, ALBERT's and Llama's are; "normalizer" is Llama's first form, which spells spaces there."""
    units = ["▁", "▁the", "the", "▁cat", "cat", *"theca.<>x"]
    fast = Tokenizer(models.Unigram([("<unk>", 0.0), *((unit, -5.0 / len(unit)) for unit in dict.fromkeys(units))], 0))
    if scheme == "normalizer":
        steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        fast.normalizer = normalizers.Sequence(steps)
        fast.decoder = decoders.Replace("▁", " ")
    else:
        words = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=split)
        fast.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), words]) if split else words
        fast.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    (fast.add_special_tokens if token.special else fast.add_tokens)([token])
    return FastTokenizer(fast)


@pytest.mark.parametrize("scheme", ["always", "first", "never", "normalizer"])
def test_tokens_around_an_added_one_are_the_text_at_their_spans(scheme: str) -> None:
    emptied = 0
    for split, *flags in product((True, False), repeat=6):
        names = ("lstrip", "rstrip", "single_word", "special", "normalized")
        tokenizer = build_metaspace(scheme, split, AddedToken("<x>", **dict(zip(names, flags, strict=True))))
        for text in ("the cat<x>the hat", "<x> that", "  a  <x>  cat <x>", "a<x>at.<x>", "<x><x>thé", "tä<x>ähe hat"):
            found = tokenizer.encode(text)
            covered = 0
            offsets = tokenizer.fast.encode(text).offsets
            for id, (start, end), theirs in zip(found.ids, found.spans, offsets, strict=True):
                assert start >= covered and not text[covered:start].strip(), (text, flags, found)
                assert tokenizer.decode([id]).strip() == text[start:end].strip() or id == tokenizer.unknown_id
                assert (start, end) == theirs or (start == end == theirs[0] and tokenizer.decode([id]).strip() == "")
                emptied += (start, end) != theirs
                covered = end
            assert not text[covered:].strip()
            pair = tokenizer.encode("hat", text, special=False)
            assert tuple((start - 4, end - 4) for start, end in pair.spans[-len(found) :]) == found.spans
    assert bool(emptied) == (scheme != "never")
