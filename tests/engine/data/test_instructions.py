"""Texts with a token that says what is wanted, in three forms, and the running text of all three that comes before."""

from __future__ import annotations

import ast
from functools import cache
from itertools import islice

import pytest

from engine.data.drawing import is_held_out
from engine.data.instructions import CODE, FORMS, INSTRUCTIONS, AskedPair, Meaning, draw_meaning, lower_first
from engine.data.kinds.bilingual import Bilingual
from engine.data.kinds.instructions import Instructions
from engine.data.seeds import seed_for
from engine.data.translation import words
from engine.runtime import library


@cache
def meanings() -> list[Meaning]:
    return [draw_meaning(Instructions(), "train", 0, index) for index in range(1_500)]


def test_every_form_is_asked_for_every_form_and_the_answer_is_the_same_meaning() -> None:
    task = Instructions(documents=90, held_out=100)
    asked = list(task.pairs("train", 0))
    for number in range(10):
        meaning = draw_meaning(task, "train", 0, number)
        pairs = asked[9 * number : 9 * number + 9]
        for pair in pairs:
            assert isinstance(pair, AskedPair)
            text, _, instruction = pair.source.rpartition(" ")
            given, wanted = FORMS.index(pair.form), INSTRUCTIONS.index(instruction)
            assert (text, pair.target) == (meaning[given], f" {meaning[wanted]}")
        assert len({task.group(pair) for pair in pairs}) == 9
    assert "French [toCode]" in {task.group(pair) for pair in asked}


def test_code_is_one_line_that_python_reads_and_the_tokenizer_of_instruct_writes_back() -> None:
    tokenizer = library.checkpoint("instruct").tokenizer
    assert tokenizer is not None
    for meaning in meanings()[:400]:
        ast.parse(meaning.code)
        for form in meaning:
            assert "\n" not in form
            assert tokenizer.decode(tokenizer.encode(form, special=False).ids, special=False) == form


def test_a_text_has_one_answer_behind_each_separator() -> None:
    found: dict[tuple[int, str, int], set[str]] = {}
    for meaning in meanings():
        for given in range(3):
            for wanted in range(3):
                found.setdefault((given, meaning[given], wanted), set()).add(meaning[wanted])
    assert all(len(targets) == 1 for targets in found.values())
    left_out = {"her", "that", "those", "delighted", "huge"}
    assert not any(left_out & {word.lower() for word in words(meaning.english)} for meaning in meanings())


def test_about_half_of_the_sentences_have_no_capital_and_no_stop_and_none_is_longer_than_allowed() -> None:
    sentences = [meaning for meaning in meanings() if meaning.code == f'print("{meaning.english}")']
    assert 0.55 < len(sentences) / len(meanings()) < 0.65
    lower = sum(meaning.english[0].islower() for meaning in sentences)
    assert 0.45 < lower / len(sentences) < 0.55
    assert all(meaning.english[0].isupper() == meaning.french[0].isupper() for meaning in sentences)
    assert all(max(len(words(meaning.english)), len(words(meaning.french))) <= 10 for meaning in sentences)
    plain = (draw_meaning(Instructions(plain=1.0), "train", 0, index) for index in range(50))
    assert {meaning.english[0].isupper() for meaning in plain} == {False}


def test_no_meaning_is_held_out_in_one_form_and_learned_in_another() -> None:
    held_out = [draw_meaning(Instructions(), "held_out", 0, index) for index in range(200)]
    for form in range(3):
        assert not {lower_first(one[form]) for one in meanings()} & {lower_first(one[form]) for one in held_out}
    assert all(is_held_out(lower_first(one.english), seed_for(0, "meanings")) for one in held_out)


def test_the_running_text_is_of_three_forms_in_turn_and_says_nothing_twice() -> None:
    texts = list(islice(Bilingual(plain=1.0).texts("train", 0), 300))
    english, french, code = (set(" ".join(texts[at::3]).split()) for at in range(3))
    assert {"the", "is", "set"} <= english and {"le", "est", "mets"} <= french and {"="} <= code
    assert not english & {"le", "les", "est"} and not french & {"the", "is"}
    for text in texts[2::3]:
        ast.parse(text)
    assert FORMS[2] == CODE and texts != list(islice(Bilingual(plain=1.0).texts("held_out", 0), 300))


@pytest.mark.parametrize("wrong", [{"longest": 3}, {"plain": 1.5}, {"documents": 0}])
def test_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    for task, name in ((Instructions, "instructions"), (Bilingual, "bilingual")):
        with pytest.raises(ValueError, match=f"^data.{name}.{next(iter(wrong))} must be "):
            task(**wrong)  # type: ignore[arg-type]
