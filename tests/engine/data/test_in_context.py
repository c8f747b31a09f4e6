"""Prompts whose rule only their rows tell."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from engine.data.drawing import Part, is_held_out
from engine.data.kinds.in_context import LETTERS, RULES, SPLIT, VOWELS, french_words, kinds, opposites, rows, signs


def prompt(name: str, part: str, number: int, count: int = 12) -> list[tuple[str, str]]:
    chance = Random(f"{name}{part}{number}").random
    relation = RULES[name][0](chance, part, SPLIT)  # type: ignore[arg-type]
    words = [relation.word(chance) for _ in range(count)]
    return [(word, relation.answer(word)) for word in words]


def told(name: str, part: str) -> list[list[tuple[str, str]]]:
    return [prompt(name, part, number) for number in range(60)]


@pytest.mark.parametrize("name", LETTERS)
def test_rules_about_letters_are_practised_on_other_words_than_they_are_measured_on(name: str) -> None:
    for part in ("train", "held_out"):
        words = [word for one in told(name, part) for word, _ in one]
        assert {is_held_out(word, SPLIT) for word in words} == {part == "held_out"}


def test_rules_about_letters_do_what_they_are_called() -> None:
    assert {name: answer("yellow") for name, answer in LETTERS.items()} == {
        "first letter": "y",
        "last letter": "w",
        "without the first letter": "ellow",
        "without the last letter": "yello",
        "reverse": "wolley",
        "capitals": "YELLOW",
    }


def test_what_is_put_before_or_behind_a_word_is_one_in_a_prompt_and_another_in_what_is_held_out() -> None:
    found: dict[str, set[str]] = {"train": set(), "held_out": set()}
    for part, seen in found.items():
        for one in told("suffix", part):
            (added,) = {answer.removeprefix(word) for word, answer in one}
            seen.add(added)
            assert 1 <= len(added) <= 3
    assert len(found["train"]) > 20 and not found["train"] & found["held_out"]
    for one in told("prefix", "train"):
        assert len({answer.removesuffix(word) for word, answer in one}) == 1


def test_each_kind_of_a_prompt_has_a_label_of_its_own_that_is_drawn_for_each_prompt() -> None:
    of = {word: kind for kind, words in kinds().items() for word in words}
    seen: dict[str, set[str]] = {"train": set(), "held_out": set()}
    for part, labels in seen.items():
        counts = set()
        for one in told("kinds", part):
            named = {(of[word], label) for word, label in one}
            assert len(named) == len({kind for kind, _ in named}) == len({label for _, label in named})
            counts.add(len(named))
            labels |= {label for _, label in named}
        assert {2, 3, 4} < counts <= set(range(1, 7))
    assert len(seen["train"]) > 80 and not seen["train"] & seen["held_out"]


def test_words_of_a_kind_come_again_where_they_are_practised_and_not_where_they_are_measured() -> None:
    def again(part: Part) -> list[int]:
        """Of prompts about kinds how many rows say a word that stands above."""
        prompts = [[word for word, _ in islice(rows(part, seed), 12)] for seed in range(200)]
        known = {word for words in kinds().values() for word in words}
        return [len(words) - len(set(words)) for words in prompts if known.issuperset(words)]

    assert not any(again("held_out")) and sum(count > 5 for count in again("train")) > 10


def test_a_word_that_begins_with_a_vowel_has_one_label_and_others_another() -> None:
    for one in told("vowel or consonant", "held_out"):
        named = {(word[0] in VOWELS, label) for word, label in one}
        assert len(named) == len({label for _, label in named}) <= 2


def test_what_must_be_known_by_heart_is_what_the_tables_say() -> None:
    french, opposite = dict(french_words()), dict([*opposites(), *((b, a) for a, b in opposites())])
    assert all(french[word] == answer for one in told("English to French", "train") for word, answer in one)
    assert all(french[answer] == word for one in told("French to English", "train") for word, answer in one)
    assert all(word in kinds()[answer] for one in told("what it is", "train") for word, answer in one)
    assert all(opposite[word] == answer for one in told("opposites", "train") for word, answer in one)
    assert len({word for pair in opposites() for word in pair}) == 2 * len(opposites())  # none has two opposites


def test_no_word_comes_twice_in_a_prompt_that_is_measured_and_every_sign_has_a_token() -> None:
    for seed in range(60):
        one = list(islice(rows("held_out", seed), 10))
        assert len({word for word, _ in one}) == 10
        practised = list(islice(rows("train", seed), 10))
        assert set("".join(word + answer for word, answer in (*one, *practised))) <= set(signs())
    assert list(islice(rows("train", 7), 10)) == list(islice(rows("train", 7), 10))
    assert list(islice(rows("train", 7), 10)) != list(islice(rows("held_out", 7), 10))
