"""Sentences with a token that says what is wanted, and the running text of two languages that comes before."""

from __future__ import annotations

from itertools import islice

import pytest

from engine.data.instructions import INSTRUCTIONS, TO_ENGLISH, TO_FRENCH, Bilingual, Instructions, lower_first
from engine.data.translation import words

TOLD = list(Instructions(documents=1_500, held_out=100).pairs("train", 0))


def test_a_source_ends_with_its_instruction_and_the_target_begins_with_a_space() -> None:
    for index, pair in enumerate(TOLD[:100]):
        text, _, instruction = pair.source.rpartition(" ")
        assert instruction == INSTRUCTIONS[index % 2]
        assert pair.target[0] == " " and not any(one in f"{text}{pair.target}" for one in INSTRUCTIONS)
    assert Instructions().group(TOLD[0]) == TO_ENGLISH and Instructions().group(TOLD[1]) == TO_FRENCH


def test_english_is_asked_for_french_and_the_other_way_round() -> None:
    french = {"le", "la", "les", "l'", "un", "une", "est", "sont", "ne"}
    english = {"the", "is", "are", "not"}
    for pair in TOLD:
        told = set(lower_first(pair.source.rpartition(" ")[0]).split())
        assert not told & (english if pair.source.endswith(TO_ENGLISH) else french)


def test_a_sentence_has_one_translation() -> None:
    found: dict[str, set[str]] = {}
    for pair in TOLD:
        found.setdefault(pair.source, set()).add(pair.target)
    assert all(len(targets) == 1 for targets in found.values())
    left_out = {"her", "that", "those", "delighted", "huge"}
    assert not any(left_out & {word.lower() for word in words(f"{pair.source} {pair.target}")} for pair in TOLD)


def test_about_half_of_the_sentences_have_no_capital_and_no_stop_and_none_is_longer_than_allowed() -> None:
    lower = sum(pair.source[0].islower() for pair in TOLD)
    assert 0.45 < lower / len(TOLD) < 0.55
    assert all(pair.source[0].isupper() == pair.target[1].isupper() for pair in TOLD)
    assert all(len(words(pair.target)) <= 10 for pair in TOLD)
    assert {pair.source[0].isupper() for pair in Instructions(documents=50, plain=1.0).pairs("train", 0)} == {False}


def test_no_sentence_is_held_out_in_one_language_and_learned_in_the_other() -> None:
    task = Instructions(documents=1_500, held_out=100)
    learned = {lower_first(side.strip()) for pair in TOLD for side in (pair.source.rpartition(" ")[0], pair.target)}
    held_out = [(pair.source.rpartition(" ")[0], pair.target.strip()) for pair in task.pairs("held_out", 0)]
    assert len(held_out) == 100 and not learned & {lower_first(side) for pair in held_out for side in pair}


def test_the_running_text_is_english_and_french_in_turn_and_never_a_pair() -> None:
    texts = list(islice(Bilingual(plain=1.0).texts("train", 0), 200))
    english, french = set(" ".join(texts[::2]).split()), set(" ".join(texts[1::2]).split())
    assert {"the", "is"} <= english and {"le", "est"} <= french
    assert not english & {"le", "les", "est"} and not french & {"the", "is"}
    assert texts != list(islice(Bilingual(plain=1.0).texts("held_out", 0), 200))


@pytest.mark.parametrize("wrong", [{"longest": 3}, {"plain": 1.5}, {"documents": 0}])
def test_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    for task, name in ((Instructions, "instructions"), (Bilingual, "bilingual")):
        with pytest.raises(ValueError, match=f"^data.{name}.{next(iter(wrong))} must be "):
            task(**wrong)  # type: ignore[arg-type]
