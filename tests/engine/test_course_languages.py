"""Two ways to cut a language: the corpus is parallel, the cost follows the data, and cuts are those of the library."""

from itertools import combinations

import pytest

from engine.course.languages import (
    ALL,
    KINDS,
    LANGUAGES,
    best_cuts,
    count_tokens,
    learn_vocabulary,
    learned_texts,
    mark_spaces,
    measured,
    piece_scores,
)
from engine.data.corpora import read_corpus
from engine.tokenizers.pieces import SPACE as DRAWN


def test_every_language_has_the_same_sentences_and_a_main_one_most() -> None:
    corpus = read_corpus("languages/sentences")
    for part in ("learned", "measured"):
        assert tuple(corpus[part]) == LANGUAGES
        assert len({len(sentences) for sentences in corpus[part].values()}) == 1
        assert all(len(set(sentences)) == len(sentences) for sentences in corpus[part].values())
    whole = len(corpus["learned"]["en"])
    assert len(learned_texts("fi")) == whole + len(LANGUAGES) - 1 and len(learned_texts(ALL)) == whole * len(LANGUAGES)
    assert not {*learned_texts(ALL)} & {text for one in LANGUAGES for text in measured(one)}


@pytest.mark.parametrize("main", LANGUAGES)
def test_a_sentence_costs_least_in_the_language_that_was_learned_and_there_more_when_all_were(main: str) -> None:
    for number in range(len(measured(main))):
        cost = {one: count_tokens("bpe", main, measured(one)[number]).tokens for one in LANGUAGES}
        assert min(cost, key=cost.__getitem__) == main and 1.5 * cost[main] < max(cost.values())
        assert count_tokens("bpe", ALL, measured(main)[number]).tokens > cost[main]


def test_bytes_write_every_text_and_pieces_only_what_they_learned() -> None:
    owl = count_tokens("bpe", "en", "🦉")
    assert owl == (4, 0, 1, 4)
    assert count_tokens("unigram", "en", "🦉").unknown == 1 and count_tokens("unigram", ALL, "the cat").unknown == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_is_decoded_to_the_same_sentence(kind: str) -> None:
    tokenizer = learn_vocabulary(kind, ALL)
    for text in (measured(one)[0] for one in LANGUAGES):
        assert tokenizer.decode(tokenizer.encode(text, special=False).ids) == text


@pytest.mark.parametrize("word", ["mother", "Wasser", "在花园里", "puutarha"])
def test_the_best_cuts_are_those_among_all_and_the_library_takes_the_first(word: str) -> None:
    text, scores = mark_spaces(word), piece_scores(ALL)
    places = [at for count in range(len(text)) for at in combinations(range(1, len(text)), count)]
    every = [[text[i:j] for i, j in zip((0, *at), (*at, len(text)), strict=True)] for at in places]
    sums = sorted((sum(map(scores.__getitem__, way)) for way in every if {*way} <= scores.keys()), reverse=True)
    found = best_cuts(text, ALL, 4)
    assert [way.score for way in found] == pytest.approx(sums[:4])
    pieces = learn_vocabulary("unigram", ALL).encode(word, special=False).pieces
    assert [piece.replace("▁", DRAWN) for piece in found[0].pieces] == list(pieces)
