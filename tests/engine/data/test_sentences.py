"""Sentences: whole, in order, and cut into the two tasks without losing a letter."""

import re

import pytest

from engine.data.sentences import pair, sentences, span
from engine.data.stories import story

COUNT = 1500
FOLLOWS = "001000111110110000000001"  # of pairs 0, 1, 2, ... of seed 3


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"Snow!" Ravi shouted. He ran.', 2),
        ('"Snow!" Ravi ran outside.', 2),
        ('"Why?" asked Tom. He left.', 2),
        ('"I\'m sorry. I did not know," said Tom. "Go." He left.', 3),
        ('"See you, Clara!" From that day on, they were friends.', 2),
        ('"What now?" Ravi thought. "Go home," said Ada\'s mom.', 2),
        ('"What now?" Ravi thought for a while.', 2),
        ('"Can I go?" Ada\'s dad asked. "No." "Why?" "It is late!"', 4),
        ("Crash! The tower fell.", 2),
        ("One", 1),
    ],
)
def test_where_a_sentence_ends(text: str, count: int) -> None:
    assert len(sentences(text)) == count
    assert " ".join(sentences(text)) == text


def test_every_story_is_its_sentences_and_each_is_whole() -> None:
    for index in range(COUNT):
        told = sentences(story(5, index))
        assert " ".join(told) == story(5, index)
        for sentence in told:
            assert re.fullmatch(r'["A-Z].*[.!?]"?', sentence), sentence
            assert sentence.count('"') % 2 == 0, sentence


def test_a_pair_that_follows_stands_in_its_story_and_another_does_not() -> None:
    pairs = [pair(3, index) for index in range(COUNT)]
    for index, each in enumerate(pairs):
        told = story(3, index)
        assert each.first in told
        assert (f"{each.first} {each.second}" in told) == each.follows
        assert 1 <= len(sentences(each.first)) <= 3 and 1 <= len(sentences(each.second)) <= 3
    assert sum(each.follows for each in pairs) == pytest.approx(COUNT / 2, abs=3.5 * COUNT**0.5 / 2)


def test_neither_kind_of_second_passage_opens_a_story() -> None:
    opening = re.compile("Once upon a time|Long ago|There was once")
    assert sum(bool(opening.match(story(3, index))) for index in range(COUNT)) > COUNT / 20
    assert not any(opening.match(pair(3, index).second) for index in range(COUNT))


def test_a_gap_and_what_is_around_it_are_a_passage_of_the_story() -> None:
    gaps = [span(3, index) for index in range(COUNT)]
    for index, gap in enumerate(gaps):
        passage = gap.before + gap.span + gap.after
        assert passage in story(3, index)
        assert 2 <= len(sentences(passage)) <= len(sentences(story(3, index)))
        assert not gap.before.endswith(" ") and not gap.span.endswith(" ") and gap.span.strip()
        assert not re.search(r"\w$", gap.before) or gap.span[0] in " "
        assert not re.search(r"\w$", gap.span) or not re.match(r"\w", gap.after)


def test_gaps_have_every_length_from_a_word_to_twelve_and_whole_sentences() -> None:
    gaps = [span(3, index) for index in range(COUNT)]
    whole = [gap for gap in gaps if gap.span.strip() in sentences(gap.before + gap.span + gap.after)]
    assert len(whole) == pytest.approx(COUNT / 4, abs=4 * (COUNT * 3 / 16) ** 0.5)
    lengths = {len(re.findall(r"\w+(?:['-]\w+)*", gap.span)) for gap in gaps if gap not in whole}
    assert lengths == set(range(1, 13))


def test_the_draws_are_those_of_every_other_machine() -> None:
    assert "".join("01"[pair(3, index).follows] for index in range(24)) == FOLLOWS
    assert pair(3, 1) == pair(3, 1) != pair(4, 1)
    assert span(3, 1) == span(3, 1) != span(4, 1)
