"""The tab Prompting: answers and accuracies are the engine's, and what is downloaded is what is shown."""

from typing import Any

import pytest
import torch

from engine.data.drawing import is_held_out
from engine.data.instructions import INSTRUCTIONS, TO_ENGLISH, lower_first
from engine.data.seeds import seed_for
from engine.generation import few_shot as prompting
from engine.generation.generate import generate
from engine.generation.instructions import held_out_pairs
from engine.runtime.library import checkpoint
from views.generate.prompting import (
    accuracy_table,
    answer_table,
    answers,
    continue_greedily,
    instructed_lines,
    instructed_models,
    offered_models,
    pair_answers,
    pair_frame,
    share_frame,
    shots_lines,
    write_instructed,
    write_shots,
)

REVERSE = prompting.tables()["reverse"]


def test_the_answer_that_is_shown_is_the_engines_and_its_tokens_are_what_the_model_writes() -> None:
    loaded = checkpoint("in-context")
    found = write_shots(loaded, REVERSE, 4, "bake", 0)
    wanted = prompting.answer(loaded, REVERSE, 4, "bake", 0)
    assert (found.prompt, found.text) == (wanted.prompt, wanted.written) and wanted.expected == "ekab"
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.decode(list(found.ids)).strip() == wanted.written
    for place, step in enumerate(continue_greedily(loaded, wanted.prompt, len(found.ids))):
        own = step.logits.softmax(-1)
        assert torch.allclose(found.top_probabilities[place], own[found.top_ids[place]])
        assert int(found.top_ids[place][0]) == found.ids[place]
        rows = found.rows(place)
        assert rows["is_chosen"].tolist() == [True] + [False] * 7 and rows["token"][0] == found.pieces[place]
        assert rows["probability"].tolist() == pytest.approx(found.top_probabilities[place].tolist())


def test_accuracy_comes_in_pieces_that_are_those_of_the_engine() -> None:
    loaded = checkpoint("in-context")
    found = list(answers("in-context", REVERSE, 3, 5))
    wanted = list(prompting.accuracy(loaded, REVERSE, seed=3, n=5))
    assert [(k, one.written) for k, one in found] == [(one.k, each.written) for one in wanted for each in one.answers]
    shares = share_frame(found[:-2])
    assert shares["K"].tolist() == [0, 1, 2, 4, 8] and shares["queries"].tolist() == [5, 5, 5, 5, 3]
    for row, one in zip(shares.to_dict("records"), wanted[:-1], strict=False):
        assert (row["right"], row["error"]) == (pytest.approx(one.share), pytest.approx(one.error))


def test_only_models_that_continue_texts_are_offered_the_learner_first() -> None:
    names = offered_models("stories")
    assert names[0] == "in-context" and {"stories", "instruct"} <= set(names)
    assert not {"digits-vit", "tales-bert", "translate-en-fr", "infill"} & set(names)


def test_what_was_taught_instructions_stands_before_its_base() -> None:
    names = instructed_models("stories")
    assert names[0] == "instruct" and all(prompting.instructions(checkpoint(name)) for name in names)


def test_a_text_is_continued_under_each_instruction_as_the_model_does() -> None:
    loaded = checkpoint("instruct")
    found = write_instructed(loaded, "le chat noir dort")
    assert list(found) == ["", *prompting.instructions(loaded)]
    assert found["[toEnglish]"].text == "the black cat sleeps"
    for task, one in found.items():
        prompt = f"le chat noir dort {task}".strip()
        assert list(one.ids) == [step.id for step in generate(loaded, prompt, 40, greedy=True)]


def test_the_sentences_to_ask_about_are_none_that_the_model_learnt_from() -> None:
    said = {pair.text: pair.expected for pair in held_out_pairs() if pair.instruction == TO_ENGLISH}
    assert {pair.text for pair in held_out_pairs()} == set(said)  # each under each instruction
    assert {pair.instruction for pair in held_out_pairs()} == set(INSTRUCTIONS)
    assert all(is_held_out(lower_first(english), seed_for(0, "meanings")) for english in said.values())


def test_sentences_are_right_word_for_word() -> None:
    coming = pair_answers("instruct")
    found = [next(coming) for _ in range(3)]
    frame = pair_frame(found)
    assert frame["right"].tolist() == [written == pair.expected for pair, written in found]
    assert frame["text"].tolist() == [pair.text for pair in held_out_pairs()[:3]]


def test_the_lines_of_python_give_the_answer_that_is_shown() -> None:
    names: dict[str, Any] = {}
    lines = shots_lines("in-context", REVERSE, None, 4, "bake", 0, 30)
    assert "n=30" in lines
    exec(lines.replace("n=30", "n=2"), names)
    found = write_shots(checkpoint("in-context"), REVERSE, 4, "bake", 0)
    assert (names["found"].prompt, names["found"].written) == (found.prompt, found.text)
    assert [one.k for one in names["curve"]] == [0, 1, 2, 4, 8]


def test_the_lines_of_python_hold_a_persons_own_rows() -> None:
    names: dict[str, Any] = {}
    own = "red: rouge\nblue: bleu\ngreen: vert"
    exec(shots_lines("in-context", prompting.table_of(own), own, 1, "red", 0, 1), names)
    assert names["table"].rows[0] == ("red", "rouge") and names["found"].expected == "rouge"


def test_the_lines_of_python_write_what_stands_after_each_instruction() -> None:
    names: dict[str, Any] = {}
    exec(instructed_lines("instruct", "le chat noir dort"), names)
    found = write_instructed(checkpoint("instruct"), "le chat noir dort")
    assert names["written"] == {task: one.text for task, one in found.items() if task}


def test_what_is_no_text_is_refused_by_the_tokenizer_and_not_by_the_draw_of_examples() -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        write_shots(checkpoint("in-context"), REVERSE, 4, "\ud83d", 0)


def test_what_was_measured_can_be_downloaded_and_nothing_else() -> None:
    with pytest.raises(ValueError, match="measure first"):
        accuracy_table("in-context", REVERSE, [])
    found = list(answers("in-context", REVERSE, 0, 3))[:6]
    table = accuracy_table("in-context", REVERSE, found)
    assert list(table.columns["examples"]) == [0, 0, 0, 1, 1, 1]
    assert list(table.columns["written"]) == [one.written for _, one in found]
    steps = answer_table("in-context", [write_shots(checkpoint("in-context"), REVERSE, 4, "bake", 0)])
    assert set(steps.columns) == {"prompt", "place", "written", "token", "id", "probability"}
