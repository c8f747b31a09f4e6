from __future__ import annotations

import json
import struct
from typing import Any

import pytest
import torch
from views.generate.prompting_tables import accuracy_table, answer_table, prompting_lines

from engine.data.instructions import Instructions, key
from engine.data.instructions import plain as as_typed
from engine.data.seeds import seed_for
from engine.generation import few_shot as prompting
from engine.generation.generate import generate
from engine.generation.instructions import held_out_pairs
from engine.generation.prompt import begin
from engine.runtime.library import checkpoint
from views.generate.answers import answered
from views.generate.prompting import behind, instructed_parts, models, prompt_parts
from views.generate.session import Call, Writing

SHOTS = {"model": "in-context", "table": "reverse", "k": 4, "query": "bake", "seed": 0}


@pytest.fixture(scope="module")
def writing() -> Writing:
    loaded = checkpoint("stories")
    return Writing("stories", loaded, begin(loaded, "Max"), Call('"Max"'))


def header_of(payload: bytes) -> dict[str, Any]:
    (length,) = struct.unpack("<I", payload[:4])
    found: dict[str, Any] = json.loads(payload[4 : 4 + length])
    return found


def test_the_answer_that_is_shown_is_the_engines_and_its_tokens_are_what_the_model_writes() -> None:
    loaded, table = checkpoint("in-context"), prompting.tables()["reverse"]
    header, arrays = prompt_parts(loaded, table, 4, "bake", 0)
    wanted = prompting.answer(loaded, table, 4, "bake", 0)
    assert (header["prompt"], header["written"]) == (wanted.prompt, wanted.written)
    assert header["expected"] == "ekab"
    ids = [token["id"] for token in header["tokens"]]
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.decode(ids).strip() == wanted.written
    for place, step in enumerate(behind(loaded, wanted.prompt, len(ids))):
        own = step.logits.softmax(-1)
        assert torch.allclose(arrays["top.probability"][place], own[arrays["top.id"][place]])
        assert int(arrays["top.id"][place][0]) == ids[place]


def test_what_is_measured_does_not_hang_on_the_text_of_the_page_but_the_models_offered_do(writing: Writing) -> None:
    query = {**SHOTS, "trace": "another"}
    assert header_of(answered(writing, {"ask": "few_shot", **query}))["written"]
    assert header_of(answered(writing, {"ask": "accuracy", **query, "n": 1, "from": 0}))["answers"]
    with pytest.raises(ValueError, match="changed since"):
        answered(writing, {"ask": "prompting", "trace": "another"})


def test_accuracy_comes_in_pieces_that_are_those_of_the_engine(writing: Writing) -> None:
    query = {"ask": "accuracy", "trace": writing.made, **SHOTS, "n": 6}
    found: list[bool] = []
    while len(found) < 6:
        found += [one["right"] for one in header_of(answered(writing, {**query, "from": len(found)}))["answers"]]
    loaded, table = checkpoint("in-context"), prompting.tables()["reverse"]
    (wanted,) = prompting.accuracy(loaded, table, (4,), 0, 6)
    assert found == [one.right for one in wanted.answers]


def test_a_persons_own_rows_are_a_table_and_a_bad_line_is_named(writing: Writing) -> None:
    own = {key: value for key, value in SHOTS.items() if key != "table"} | {"k": 1, "query": "red"}
    ask = {"ask": "few_shot", "trace": writing.made, **own}
    assert header_of(answered(writing, {**ask, "rows": "red: rouge\nblue: bleu"}))["prompt"] == "blue: bleu\nred:"
    with pytest.raises(ValueError, match="line 2"):
        answered(writing, {**ask, "rows": "red: rouge\nblue"})
    with pytest.raises(ValueError, match="characters"):
        answered(writing, {**ask, "rows": "a: b\n" * 5000})


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "/etc/passwd"},
        {"model": "stories-bert"},
        {"table": "no such"},
        {"k": 99},
        {"k": "4"},
        {"seed": None},
        {"query": "x" * 201},
    ],
)
def test_nonsense_is_answered_with_a_sentence(writing: Writing, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        answered(writing, {"ask": "few_shot", "trace": writing.made, **SHOTS, **wrong})


def test_only_models_that_continue_texts_are_offered_the_learner_first(writing: Writing) -> None:
    found = models(writing)
    assert found[0] == "in-context"
    assert "stories" in found
    assert not {"stories-bert", "translate-en-fr", "infill", "digits-vit", "digits-imagegpt"} & set(found)


def test_what_was_taught_instructions_stands_before_its_base(writing: Writing) -> None:
    offered = header_of(answered(writing, {"ask": "prompting", "trace": writing.made}))
    tasks = ["[toEnglish]", "[toFrench]"]
    assert list(offered["instructed"].items()) == [("instruct", tasks), ("bilingual", tasks)]
    assert offered["pairs"] == len(held_out_pairs())


def test_a_text_is_continued_under_each_instruction_as_the_model_does() -> None:
    loaded = checkpoint("instruct")
    header, arrays = instructed_parts(loaded, "le chat noir dort")
    assert [one["task"] for one in header["tasks"]] == ["", "[toEnglish]", "[toFrench]"]
    for number, one in enumerate(header["tasks"]):
        steps = list(generate(loaded, one["prompt"], 40, greedy=True))
        assert [token["id"] for token in one["tokens"]] == [step.id for step in steps]
        assert torch.allclose(arrays[f"{number}.top.probability"][0], steps[0].logits.softmax(-1).topk(8).values)
    assert header["tasks"][1]["written"] == "the black cat sleeps"


def test_the_sentences_to_ask_about_are_none_that_the_model_learnt_from() -> None:
    stream = seed_for(0, "instructions")  # a tenth of it is looked at, which is quicker
    learnt = {key(Instructions(), stream, index) for index in range(0, Instructions().documents, 10)}
    for pair in held_out_pairs():
        english = pair.expected if pair.instruction == "[toEnglish]" else pair.text
        assert as_typed(english) not in learnt
    assert {pair.instruction for pair in held_out_pairs()} == {"[toEnglish]", "[toFrench]"}


def test_the_lines_of_python_give_the_answer_that_is_shown(writing: Writing) -> None:
    names: dict[str, Any] = {}
    lines = prompting_lines(writing, {"part": "shots", **SHOTS}).replace("n=30", "n=2")
    exec(lines, names)
    header, _ = prompt_parts(checkpoint("in-context"), prompting.tables()["reverse"], 4, "bake", 0)
    assert (names["found"].prompt, names["found"].written) == (header["prompt"], header["written"])
    assert [one.k for one in names["curve"]] == [0, 1, 2, 4, 8]


def test_the_lines_of_python_write_what_stands_behind_each_instruction(writing: Writing) -> None:
    names: dict[str, Any] = {}
    exec(prompting_lines(writing, {"part": "instructed", "model": "instruct", "text": "le chat noir dort"}), names)
    header, _ = instructed_parts(checkpoint("instruct"), "le chat noir dort")
    assert names["written"] == {one["task"]: one["written"] for one in header["tasks"] if one["task"]}


def test_the_lines_of_python_ask_as_many_queries_as_the_page_did(writing: Writing) -> None:
    query = {"part": "shots", **SHOTS}
    assert "n=30" in prompting_lines(writing, query)
    assert "n=10" in prompting_lines(writing, {**query, "measured": {"n": 10, "ks": []}})


def test_what_is_no_text_is_refused_by_the_tokenizer_and_not_by_the_draw_of_examples(writing: Writing) -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        answered(writing, {"ask": "few_shot", "trace": writing.made, **SHOTS, "query": "\ud83d"})


def test_what_was_measured_can_be_taken_away_and_nothing_else(writing: Writing) -> None:
    query = {"part": "shots", **SHOTS}
    with pytest.raises(ValueError, match="measure first"):
        accuracy_table(writing, query)
    table = accuracy_table(writing, {**query, "measured": {"n": 3, "ks": [0, 1]}})
    assert list(table.columns["examples"]) == [0, 0, 0, 1, 1, 1]
    steps = answer_table(writing, query)
    assert set(steps.columns) == {"prompt", "place", "written", "token", "id", "probability"}
