import json
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from transformers import BartConfig, BartForConditionalGeneration, GenerationConfig, GPT2Config, GPT2LMHeadModel

from engine.checkpoints import load
from engine.checkpoints.generation_config import ELSEWHERE, GIVEN, NEUTRAL, READ, WITHOUT_EFFECT, read_generation
from engine.generation.beam import beam
from engine.generation.generate import generate

SMALL = {"vocab_size": 17, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    GPT2LMHeadModel(GPT2Config(**SMALL, bos_token_id=0, eos_token_id=0)).save_pretrained(tmp_path)
    return tmp_path


def ask(folder: Path, **asked: Any) -> tuple[str, ...]:
    (folder / "generation_config.json").write_text(json.dumps(asked))
    return load(folder).report.notes


def test_every_key_of_transformers_has_a_place_in_one_of_the_tables() -> None:
    known = {*READ, *ELSEWHERE, *WITHOUT_EFFECT, *NEUTRAL}
    assert GenerationConfig().__dict__.keys() - known - {"_original_object_hash"} == set()
    assert len(known) == sum(map(len, (READ, ELSEWHERE, WITHOUT_EFFECT, NEUTRAL)))


def test_a_key_outside_of_the_tables_is_reported(folder: Path) -> None:
    notes = ask(folder, novel_penalty=2, temperature=0.5, use_cache=True, guidance_scale=1.0, top_h=None)
    assert notes == (
        "generation_config.json's novel_penalty asks for 2, a key that Loupe does not know: it is not obeyed.",
    )


def test_a_key_that_is_not_obeyed_is_named(subtests: pytest.Subtests) -> None:
    given = {*signature(generate).parameters, *signature(beam).parameters}
    assert {name for name in NEUTRAL if name in given} <= GIVEN.keys() <= NEUTRAL.keys()
    for name in NEUTRAL:
        with subtests.test(name):
            why = f"which Loupe does where it is given to {GIVEN[name]}" if name in GIVEN else "which Loupe does not do"
            notes = read_generation({name: 3}, {}, 17)[1]
            assert notes == (f"generation_config.json's {name} asks for 3, {why}: it is not obeyed.",)


@pytest.mark.parametrize("name", READ)
def test_a_value_of_the_wrong_kind_is_one_sentence_and_no_failure(name: str, folder: Path) -> None:
    (note,) = ask(folder, **{name: {"a": [None]}})
    assert note.startswith(f"generation_config.json's {name} must be ") and note.endswith(": it is not obeyed.")


@pytest.mark.parametrize(
    ("name", "value"),
    [("forced_bos_token_id", 17), ("bad_words_ids", [[]]), ("suppress_tokens", [-1]), ("temperature", float("nan")),
     ("top_p", 0), ("num_beams", True), ("max_length", 0), ("forced_eos_token_id", [])],
)  # fmt: skip
def test_a_value_out_of_range_is_one_sentence(name: str, value: Any, folder: Path) -> None:
    (note,) = ask(folder, **{name: value})
    assert name in note and note.endswith("it is not obeyed.")


def test_an_old_config_json_counts_where_there_is_no_other_file(folder: Path) -> None:
    theirs = json.loads((folder / "config.json").read_text()) | {"no_repeat_ngram_size": 2, "max_length": 9}
    (folder / "config.json").write_text(json.dumps(theirs))
    (folder / "generation_config.json").unlink()
    assert load(folder).writing.constraints.no_repeat_ngram_size == 2
    ask(folder)
    assert load(folder).writing.constraints.no_repeat_ngram_size == 0


def test_a_class_of_transformers_forces_an_end_where_its_config_does_not_say() -> None:
    assert BartForConditionalGeneration.config_class is BartConfig
    bart = {"model_type": "bart"}
    for own, theirs, forced in (
        (None, bart, (2,)),
        (None, {**bart, "forced_eos_token_id": None}, None),
        ({}, bart, None),
    ):
        assert read_generation(own, theirs, 30)[0].constraints.forced_eos_token_id == forced


def test_what_a_checkpoint_asks_for_is_saved_with_it(folder: Path, tmp_path: Path) -> None:
    ask(folder, bad_words_ids=[[3, 4]], temperature=0.7, forced_eos_token_id=[2, 5], eos_token_id=[2, 5])
    asked = load(folder).writing
    load(folder).save(tmp_path / "again")
    again = load(tmp_path / "again")
    assert again.writing == asked and again.end_ids == (2, 5)
    assert GenerationConfig.from_pretrained(tmp_path / "again").bad_words_ids == [[3, 4]]
