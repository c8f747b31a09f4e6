"""A question about a sentence and a summary of two, from the sentences alone."""

from functools import cache

import pytest

from engine.data.kinds.answering import ANSWER, CONTEXT, PREFIXES, SUMMARISE, Answering
from engine.data.task import Pair
from engine.data.translation import words
from engine.data.translation.lexicon import LEXICON


@cache
def told() -> list[Pair]:
    return list(Answering(documents=2_000).pairs("train", 0))


def texts(prefix: str) -> list[tuple[str, str]]:
    return [(one.source.removeprefix(prefix), one.target) for one in told() if one.source.startswith(prefix)]


def test_a_question_asks_for_words_of_the_sentence_and_has_the_others() -> None:
    kinds = set()
    for asked, answer in texts(ANSWER):
        question, _, sentence = asked.partition(CONTEXT)
        kinds.add(question.split()[0])
        assert question.endswith("?") and f"{answer} " in sentence.replace(".", " ") and len(words(sentence)) <= 10
        rest = {word.lower() for word in words(sentence.replace(answer, "", 1))}
        nouns = {word for word in words(question) if word in {noun.english for noun in LEXICON.nouns}}
        assert nouns <= rest and not question.removesuffix("?").endswith(answer)
    assert kinds == {"Who", "What", "Where"}


def test_a_summary_says_what_both_sentences_say_without_their_details() -> None:
    details = {adverb.english for kind in ("often", "then", "now") for adverb in LEXICON.adverbs[kind]} | {"very"}
    for text, summary in texts(SUMMARISE):
        assert set(words(summary.lower())) - {"a", "an", "and"} <= set(words(text.lower()))
        assert " and " in summary and summary.count(".") == 1
        assert not details & set(words(summary)) and len(words(summary)) < len(words(text))


def test_no_text_is_held_out_of_one_task_and_learned_in_another() -> None:
    assert {Answering().group(one) for one in told()} == {one.partition(":")[0] for one in PREFIXES}
    learned = {one.source.rpartition(": ")[2] for one in told()}
    assert not learned & {one.source.rpartition(": ")[2] for one in Answering(held_out=300).pairs("held_out", 0)}


@pytest.mark.parametrize("wrong", [{"longest": 3}, {"held_out": 0}, {"documents": 0}])
def test_options_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"^data.answering.{next(iter(wrong))} must be "):
        Answering(**wrong)
