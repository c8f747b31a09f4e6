"""Three tasks told apart by the words before a sentence, on sentences of which none is held out in one and learned in
another.
"""

from functools import cache

import pytest

from engine.data.kinds.text_to_text import (
    ACCEPTABLE,
    JUDGE,
    LABELS,
    PREFIXES,
    SORT,
    TRANSLATE,
    UNACCEPTABLE,
    TextToText,
    faults,
    other_number,
    sort_words,
)
from engine.data.task import Pair
from engine.data.translation import words
from engine.data.translation.lexicon import LEXICON


@cache
def told() -> list[Pair]:
    return list(TextToText(documents=3_000).pairs("train", 0))


def sentences(prefix: str) -> list[tuple[str, str]]:
    return [(one.source.removeprefix(prefix), one.target) for one in told() if one.source.startswith(prefix)]


def test_the_tasks_come_in_turn_each_behind_its_prefix() -> None:
    assert [one.source.startswith(PREFIXES[index % 3]) for index, one in enumerate(told())] == [True] * len(told())
    groups = [TextToText().group(one) for one in told()[:3]]
    assert groups == ["translate English to French", "sort", "cola sentence"]


def test_a_sentence_has_one_answer_in_each_task_and_no_more_words_than_allowed() -> None:
    assert len({one.source for one in told()}) == len(set(told()))
    for prefix in (TRANSLATE, SORT, JUDGE):
        assert max(len(words(source)) for source, _ in sentences(prefix)) <= 12
    assert max(len(words(target)) for _, target in sentences(TRANSLATE)) <= 12


def test_words_are_sorted_with_their_capitals_and_without_the_stop() -> None:
    assert sort_words("The delighted dog sees a small white cat.") == "a cat delighted dog sees small The white"
    for source, target in sentences(SORT):
        assert target == sort_words(source) and sorted(target.lower().split()) == target.lower().split()


def test_about_half_of_what_is_judged_has_a_fault_of_order_or_of_number() -> None:
    told = sentences(JUDGE)
    assert {label for _, label in told} == set(LABELS)
    assert 0.4 < sum(label == UNACCEPTABLE for _, label in told) / len(told) < 0.5
    written = {" ".join(one) for one in faults("The dog sees a cat".split())}
    assert written == {"The dog see a cat", "The dog sees cat a"}
    assert not list(faults("We got up".split()))


def test_no_sentence_with_a_fault_is_one_that_the_grammar_writes() -> None:
    """Of all that is written without one, translated, sorted or judged, nothing is called unacceptable."""
    right = {source for source, label in sentences(JUDGE) if label == ACCEPTABLE}
    right |= {source for source, _ in sentences(TRANSLATE) + sentences(SORT)}
    assert not right & {source for source, label in sentences(JUDGE) if label == UNACCEPTABLE}


def test_a_form_of_another_number_is_no_past_and_no_noun() -> None:
    forms = other_number()
    assert forms["sees"] == "see" and forms["see"] == "sees" and forms["were"] == "was"
    assert all(forms[other] == one for one, other in forms.items())
    assert not forms.keys() & {noun.english for noun in LEXICON.nouns}
    assert not forms.keys() & {verb.past for verb in LEXICON.transitive}


def test_no_sentence_is_held_out_in_one_task_and_learned_in_another() -> None:
    """Judged ones may have a fault, so they are compared without their order and their verbs."""

    def key(text: str) -> tuple[str, ...]:
        return tuple(sorted(min(word, other_number().get(word, word)) for word in words(text)))

    held_out = TextToText(held_out=300).pairs("held_out", 0)
    learned = {key(source) for prefix in PREFIXES for source, _ in sentences(prefix) if len(words(source)) > 6}
    theirs = [key(one.source.partition(": ")[2]) for one in held_out]
    assert sum(one in learned for one in theirs) == 0


@pytest.mark.parametrize("wrong", [{"longest": 3}, {"held_out": 0}, {"documents": 0}])
def test_options_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"^data.text_to_text.{next(iter(wrong))} must be "):
        TextToText(**wrong)
