from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.kinds.rewriting import Rewriting, pair
from engine.data.task import Pair

RULES = {
    "copy": lambda text: text,
    "reverse": lambda text: "".join(reversed(text)),
    "repeat": lambda text: text * 2,
    "sort": lambda text: "".join(sorted(text)),
}


@given(st.sampled_from(sorted(RULES)), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_target_is_what_the_rule_makes_of_the_source_and_its_origins_spell_it(
    rule: str, seed: int, index: int
) -> None:
    task = Rewriting(rule, "abcd", 1, 9)  # type: ignore[arg-type]
    one = pair(task, "train", seed, index)
    assert one.target == RULES[rule](one.source)
    assert 1 <= len(one.source) <= 9 and set(one.source) <= set("abcd")
    assert "".join(one.source[place] for place in task.origins(one)) == one.target


def test_reversing_looks_along_the_anti_diagonal_and_equal_symbols_are_sorted_in_their_order() -> None:
    assert Rewriting("reverse").origins(Pair("abc", "cba")) == (2, 1, 0)
    assert Rewriting("sort").origins(Pair("baba", "aabb")) == (1, 3, 0, 2)
    assert Rewriting("repeat").origins(Pair("ab", "abab")) == (0, 1, 0, 1)


def test_lengths_are_even() -> None:
    counts = Counter(len(one.source) for one in Rewriting(documents=4_000).pairs("train", 0))
    assert set(counts) == set(range(3, 11)) and min(counts.values()) > 420  # 500 each, deviation 21


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"symbols": "a"}, "data.rewriting.symbols must be 2 or more different characters, got 'a'"),
        ({"symbols": "aba"}, "data.rewriting.symbols must be 2 or more different"),
        ({"symbols": "ab="}, "data.rewriting.symbols must not have '='"),
        ({"shortest": 0}, "data.rewriting.shortest must be at least 1, got 0"),
        ({"shortest": 5, "longest": 4}, "data.rewriting.longest must be at least 5, got 4"),
        ({"documents": 0}, "data.rewriting.documents must be at least 1"),
        ({"held_out": 0}, "data.rewriting.held_out must be at least 1"),
    ],
)
def test_options_that_make_no_task_are_refused(options: dict, about: str) -> None:
    with pytest.raises(ValueError, match=about):
        Rewriting(**options)
