"""BPE equals the library's vocabulary; WordPiece's score is not frequency; Unigram loses what costs least."""

import random
from collections import Counter
from fractions import Fraction
from math import exp, log

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from engine.course.vocabulary import (
    bpe_of_library,
    by_likelihood,
    expected_uses,
    find_seeds,
    learn_merges,
    learn_unigram,
    log_likelihood,
    maximise,
    unigram_of_library,
    wordpiece_of_library,
)
from engine.data.stories import story

HUGS = " ".join(["hug"] * 10 + ["pug"] * 5 + ["pun"] * 12 + ["bun"] * 4 + ["hugs"] * 5)


@pytest.mark.parametrize("seed", range(12))
def test_bpe_is_the_librarys_on_random_texts(seed: int) -> None:
    choose = random.Random(seed)
    letters = "abc" if seed % 2 else "abcdefgh 猫🦉"
    words = ["".join(choose.choice(letters) for _ in range(choose.randint(1, 9))) for _ in range(30)]
    text = " ".join(words)
    learned = learn_merges(text, "bpe", 60)
    assert learned.entries(60)[len(learned.alphabet) :] == bpe_of_library(text, 60)[: len(learned.steps)]


@pytest.mark.parametrize("index", range(3))
def test_bpe_is_the_librarys_on_stories(index: int) -> None:
    text = story(3, index)
    learned = learn_merges(text, "bpe", 80)
    assert learned.entries(80)[len(learned.alphabet) :] == bpe_of_library(text, 80)


def test_bpe_merges_what_sennrich_merges() -> None:
    text = " ".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)
    merged = [step.pairs[0] for step in learn_merges(text, "bpe", 4).steps]
    assert [(pair.entry, pair.count) for pair in merged] == [("es", 9), ("est", 9), ("lo", 7), ("low", 7)]


def test_wordpiece_merges_by_its_score_and_not_by_frequency() -> None:
    """hug 10, pug 5, pun 12, bun 4, hugs 5: u and g stand together 20 times, g and s 5 times, s never without g."""
    learned = learn_merges(HUGS, "wordpiece")
    step = learned.steps[0]
    assert (step.pairs[0].first, step.pairs[0].second) == ("##g", "##s")
    assert (step.pairs[0].count, step.pairs[0].firsts, step.pairs[0].seconds) == (5, 20, 5)
    assert (step.symbols, step.total) == (113, 77)
    assert step.pairs[0].score == Fraction(5, 77) / (Fraction(20, 113) * Fraction(5, 113))
    assert by_likelihood(5, 20, 5, 77, 113) == step.pairs[0].score
    assert max(step.pairs, key=lambda pair: pair.count).entry == "##ug"
    assert learn_merges(HUGS, "bpe").steps[0].pairs[0].entry == "ug"
    assert all(one.score >= other.score for one, other in zip(step.pairs, step.pairs[1:], strict=False))


def test_the_librarys_wordpiece_merges_by_frequency() -> None:
    fast = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    symbols = {*"bhpugns", "##u", "##g", "##n", "##s"}  # a letter that was seen inside may begin a word yet
    trainer = trainers.WordPieceTrainer(vocab_size=len(symbols) + 3, show_progress=False)
    fast.train_from_iterator([HUGS], trainer)
    assert set(fast.get_vocab()) - symbols == {"##ug", "##un", "hug"} == set(wordpiece_of_library(HUGS, 3))
    scored = learn_merges(HUGS, "wordpiece")
    assert set(scored.entries(3)) - symbols != {"##ug", "##un", "hug"}


def cuts(word: str) -> list[list[str]]:
    if not word:
        return [[]]
    return [[word[:end], *rest] for end in range(1, len(word) + 1) for rest in cuts(word[end:])]


def test_unigram_sums_over_every_cut() -> None:
    words = Counter({"hugs": 2, "hug": 1})
    p = maximise(dict.fromkeys(["h", "u", "g", "s", "hu", "ug", "hug", "gs"], 1.0))
    total, uses = 0.0, Counter[str]()
    for word, count in words.items():
        weights = {tuple(cut): exp(sum(log(p[x]) for x in cut)) for cut in cuts(word) if all(x in p for x in cut)}
        total += count * log(sum(weights.values()))
        for cut, weight in weights.items():
            for piece in cut:
                uses[piece] += count * weight / sum(weights.values())
    assert sum(count * log_likelihood(word, p) for word, count in words.items()) == pytest.approx(total)
    assert expected_uses(words, p) == pytest.approx(uses)


def test_unigram_removes_the_piece_of_the_least_loss_and_keeps_letters() -> None:
    learned = learn_unigram(HUGS)
    assert set(learned.seeds) == set(find_seeds(Counter(HUGS.split())))
    for step in learned.steps:
        assert all(piece.loss >= -1e-9 for piece in step.pieces)
        assert step.pieces[0].loss <= min(piece.loss for piece in step.pieces) + 1e-8
        assert step.pieces[0].entry not in step.probabilities
        assert set(learned.letters) <= set(step.probabilities)
    assert learned.entries(len(learned.steps)) == list(learned.letters)
    words = Counter(HUGS.split())
    p = maximise(dict.fromkeys([*learned.letters, *learned.seeds], 1.0))
    before = sum(count * log_likelihood(word, p) for word, count in words.items())
    p = maximise(expected_uses(words, p))
    assert sum(count * log_likelihood(word, p) for word, count in words.items()) > before


@pytest.mark.parametrize("text", ["ab", "aaaa", "猫坐在垫子上。猫", "🦉🦉 👩‍🚀👩‍🚀", "a" * 200, "x " * 50 + "xy"])
def test_any_text_is_learned_from(text: str) -> None:
    for kind in ("bpe", "wordpiece"):
        assert learn_merges(text, kind).steps
    learned = learn_unigram(text)
    assert len(learned.entries(0)) == len(learned.letters) + len(learned.seeds)
    assert isinstance(unigram_of_library(text, len(learned.letters)), list)
