import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.kinds.brackets import BALANCED, Brackets, draw_balanced, is_balanced, labelled_example


def removable(text: str, kinds: str) -> bool:
    """Balanced by another definition: neighbours that close each other are taken out until nothing is left."""
    pairs = "|".join(re.escape(kinds[i : i + 2]) for i in range(0, len(kinds), 2))
    while (shorter := re.sub(pairs, "", text)) != text:
        text = shorter
    return not text


@given(st.text("()[]", max_size=12))
def test_balanced_is_what_can_be_taken_away_pair_by_pair(text: str) -> None:
    assert is_balanced(text, "()[]") == removable(text, "()[]")


@given(st.sampled_from(["()", "()[]", "()[]{}<>"]), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_label_is_right_and_the_length_even(kinds: str, seed: int, index: int) -> None:
    one = labelled_example(Brackets(kinds, 3, 12), "train", seed, index)
    assert (one.label == BALANCED) == removable(one.text, kinds) == (index % 2 == 0)
    assert 4 <= len(one.text) <= 12 and len(one.text) % 2 == 0


def test_every_balanced_sequence_is_drawn_as_often_as_any_other() -> None:
    chance = random.Random(0).random
    counts = Counter(draw_balanced(4, "()", chance) for _ in range(7_000))
    assert len(counts) == 14  # the fourth Catalan number
    assert 400 < min(counts.values()) and max(counts.values()) < 600  # 500 each, deviation 22


def test_near_misses_are_balanced_but_for_a_bracket_or_two() -> None:
    def nearest(text: str) -> int:
        """How many brackets have to be exchanged, at most 2 counted, for one-kind sequences."""
        kinds = "()"
        if any(is_balanced(text[:i] + other + text[i + 1 :], kinds) for i in range(len(text)) for other in kinds):
            return 1
        return 2 if text.count("(") == text.count(")") else 3

    near = [one.text for one in Brackets("()", 8, 8, near=1.0, documents=400).texts("train", 0) if not one.label]
    assert {nearest(text) for text in near} <= {1, 2}
    far = [one.text for one in Brackets("()", 8, 8, near=0.0, documents=400).texts("train", 0) if not one.label]
    assert sum(nearest(text) == 3 for text in far) > 30


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"kinds": "()["}, "data.brackets.kinds must be pairs, opening and closing, got '\\(\\)\\['"),
        ({"kinds": "(("}, "data.brackets.kinds must be 2 or more different"),
        ({"shortest": 1}, "data.brackets.shortest must be at least 2"),
        ({"shortest": 9, "longest": 9}, "data.brackets.longest must be at least 10, got 9"),
        ({"near": 1.5}, "data.brackets.near must be a share"),
    ],
)
def test_options_that_make_no_task_are_refused(options: dict, about: str) -> None:
    with pytest.raises(ValueError, match=about):
        Brackets(**options)
