"""Which tokens of two texts belong together."""

from difflib import SequenceMatcher
from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.analysis.alignment import Alignment, by_characters, by_pieces, shared
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from tests.engine.tiny import normal

letters = st.text("abc", max_size=9)


def test_a_word_that_was_exchanged_stands_in_for_the_other_and_the_rest_is_the_same() -> None:
    first, second = "Max gave the ball to Anna .".split(), "Anna gave the ball to Max .".split()
    found = by_pieces(first, second)
    assert [(group.first, group.second) for group in found.groups] == [((i,), (i,)) for i in range(7)]
    assert [group.same for group in found.groups] == [False, True, True, True, True, False, True]


def test_a_word_that_was_put_in_has_no_partner() -> None:
    found = by_pieces("the dog sat".split(), "the very old dog sat".split())
    assert found.first == ((0,), (1,), (2,)) and found.second == ((0,), (3,), (4,))
    assert found.lengths == (3, 5)


@given(letters, letters)
def test_a_longest_common_subsequence_is_found(first: str, second: str) -> None:
    def subsequences(text: str) -> set[tuple[str, ...]]:
        return {chosen for size in range(len(text) + 1) for chosen in combinations(text, size)}

    longest = max(map(len, subsequences(first) & subsequences(second)))
    assert sum(group.same for group in by_pieces(first, second).groups) >= longest


@given(letters, letters)
def test_groups_rise_and_no_token_stands_in_two(first: str, second: str) -> None:
    found = by_pieces(first, second)
    for side in (found.first, found.second):
        positions = [i for group in side for i in group]
        assert positions == sorted(set(positions))
    for group in found.groups:
        assert group.same == (first[group.first[0]] == second[group.second[0]])


@given(letters)
def test_a_text_beside_itself_is_all_the_same(text: str) -> None:
    found = by_pieces(text, text)
    assert found.first == found.second == tuple((i,) for i in range(len(text)))


def split(text: str, *ends: int) -> Encoding:
    cuts = [0, *ends, len(text)]
    spans = tuple(zip(cuts, cuts[1:], strict=False))
    pieces = tuple(text[a:b] for a, b in spans)
    return Encoding(text, tuple(range(len(spans))), pieces, spans, (False,) * len(spans), (0,) * len(spans))


def test_tokens_of_two_tokenizers_meet_where_they_hold_the_same_characters() -> None:
    found = by_characters(split("playing ball", 4, 7, 8), split("playing ball", 7, 9))
    assert [(g.first, g.second, g.same) for g in found.groups] == [((0, 1), (0,), True), ((3,), (1, 2), True)]


def test_of_two_texts_in_two_tokenizers_only_the_same_words_meet() -> None:
    found = by_characters(split("a red ball", 1, 5), split("a big ball", 2, 3, 6))
    assert [(g.first, g.second, g.same) for g in found.groups] == [((0,), (0,), True), ((2,), (3,), True)]


@pytest.mark.parametrize("text", ["Max gave the red ball to Anna.", "Is it ünlikely? “No”, said 東京."])
def test_real_tokenizers_cover_the_same_characters_in_every_group(text: str) -> None:
    first, second = (library.checkpoint(name).tokenizer.encode(text) for name in ("stories", "tales-bert"))
    found = by_characters(first, second)
    for group in found.groups:
        if group.same and any(first.spans[i][0] < first.spans[i][1] for i in group.first):
            both = ((first, group.first), (second, group.second))
            held = [{at for i in places for at in range(*read.spans[i]) if text[at] != " "} for read, places in both]
            assert held[0] == held[1]
    assert len(found.groups) >= 0.5 * min(len(first), len(second))


def test_of_single_tokens_the_elements_are_the_patterns_own_and_of_groups_their_sums_and_means() -> None:
    pattern = normal(2, 4, 4).softmax(-1)
    assert torch.equal(shared(pattern, [(2,), (0,)], [(3,), (1,)]), pattern[:, [2, 0]][:, :, [3, 1]])
    found = shared(pattern, [(0, 1)], [(1, 2), (3,)])
    torch.testing.assert_close(found[:, 0, 0], pattern[:, :2, 1:3].sum(-1).mean(-1))
    torch.testing.assert_close(found[:, 0, 1], pattern[:, :2, 3].mean(-1))


words = st.lists(st.sampled_from("the a dog sat".split()), max_size=8)


@given(words, words)
def test_no_fewer_tokens_are_the_same_than_difflib_finds(first: list[str], second: list[str]) -> None:
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    found: Alignment = by_pieces(first, second)
    assert sum(group.same for group in found.groups) >= sum(block.size for block in blocks)
