import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import StrictDataclassError
from transformers import CONFIG_MAPPING, GPT2Config, GPT2LMHeadModel

from engine.checkpoints import load
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.config_keys import WITHOUT_EFFECT, ConfigTable, describe_doubles, describe_unread
from engine.checkpoints.families import FAMILIES
from engine.checkpoints.family import Family
from engine.checkpoints.load import read_family_config
from engine.model.config import ModelConfig

YARN = {"rope_type": "yarn", "type": "linear", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 5.0}
SAID_OTHERWISE = (
    {"dense_act_fn": "silu"},
    {"is_gated_act": True},
    {"dense_act_fn": "relu", "feed_forward_proj": "gated-silu"},
    {"num_labels": 5},
    {"n_ctx": 64, "hidden_activation": "relu", "decoder_vocab_size": 9},
    {"rope_theta": 77.0},
    {"rotary_emb_base": 88.0, "rotary_pct": 0.5},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"rope_scaling": YARN, "original_max_position_embeddings": 32, "rope_theta": 9.0},
    {"rope_parameters": YARN, "rope_scaling": {"type": "linear", "factor": 3.0}, "rope_theta": 9.0},
)


NEEDED = {"esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32}}  # of which its class knows nothing


def variants(name: str, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """config.json with nothing, or one thing, or one thing twice in it."""
    yield {}
    for common, own in CONFIG_MAPPING[name].attribute_map.items():
        if (own, "attention_types" in whole) == ("num_layers", True):  # so many are refused
            continue
        yield {common: whole[own] * 2}
        yield {name: value for name, value in whole.items() if name != own} | {common: whole[own] * 2}
    rope = whole.get("rope_parameters")
    for said in SAID_OTHERWISE[: 7 if rope is None else None if "rope_theta" in rope else 5]:
        yield said
        yield {**whole, **said}


def read(family: Family, theirs: dict[str, Any]) -> ModelConfig:
    named = {"model_type": family.name, "architectures": [family.architecture]}
    return canonical_config(family.read_config({**theirs, **named}))


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "loupe"])
def test_a_config_is_completed_as_transformers_class_does_it(name: str) -> None:
    families, kind = FAMILIES[name], CONFIG_MAPPING[name]
    with warnings.catch_warnings(action="ignore"):
        needed = NEEDED.get(name, {})
        whole = kind(**needed).to_dict()
        for theirs in variants(name, whole):
            try:
                said = {key: value for key, value in {**needed, **theirs}.items() if key != "model_type"}
                expected = kind(**json.loads(json.dumps(said)))
            except (StrictDataclassError, KeyError):  # a scaling that it refuses
                with pytest.raises(ValueError, match="rope_type must be one of|_factor must be there"):
                    read(families[0], theirs)
                continue
            for family in (families[0], families[-1]):
                assert read(family, {**needed, **theirs}) == read(family, expected.to_dict()), theirs
    for family in families:
        table = ConfigTable(whole)
        family.read_config(table)
        assert describe_unread(table, family) == describe_doubles(whole, family) == ()
        for common, own in family.common.items() if "attention_types" not in whole else ():
            (note,) = describe_doubles({**whole, common: whole[own] * 2}, family)
            assert f"as {common} {whole[own] * 2} and as {own} {whole[own]}; {common} counts" in note


SUITS = {float: (int, float), list: (list, tuple)}  # values of these types, where transformers' own is of that one
WRONG = (-1, 0, "x", [], [1], {}, True, 1e30)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "loupe"])
def test_a_value_of_another_type_or_range_is_one_sentence_that_names_its_key(name: str) -> None:
    whole = CONFIG_MAPPING[name](**NEEDED.get(name, {})).to_dict()
    for family in FAMILIES[name]:
        table = ConfigTable(whole)
        family.read_config(table)
        rope = whole.get("rope_parameters", {})
        changes = [(key, {**whole, key: wrong}, wrong) for key in table.read for wrong in WRONG]
        changes += [
            (key, {**whole, "rope_parameters": {**rope, key: wrong}}, wrong) for key in rope for wrong in WRONG[:5]
        ]
        for key, theirs, wrong in changes:
            usual = {**rope, **whole}.get(family.common.get(key, key))
            typed = type(wrong) in SUITS.get(type(usual), (type(usual),)) or (key, wrong) == ("eos_token_id", [1])
            try:
                read_family_config(family, theirs)
            except ValueError as error:
                assert str(error).count("config.json") == 1 and "\n" not in str(error)
                assert key in str(error) or typed, (key, wrong, str(error))
            else:
                assert typed or usual is None, (key, wrong)


def test_keys_that_are_unread_said_twice_or_left_out_are_reported(tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=1)).save_pretrained(tmp_path)
    assert load(tmp_path).report.notes == ()
    path = tmp_path / "config.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {"novel_gate": 2, "pruned_heads": {}, "z_loss": None}))
    assert load(tmp_path).report.notes == (
        "config.json has keys that Loupe does not read in a gpt2 model, so not obeyed: novel_gate.",
    )
    path.write_text(json.dumps(whole | {"hidden_size": 8, "n_embd": 16}))
    assert load(tmp_path).report.notes == (
        "config.json says one thing twice, as hidden_size 8 and as n_embd 16; hidden_size counts, as in transformers.",
    )
    path.write_text(json.dumps({name: value for name, value in whole.items() if name != "n_layer"}))
    told = "config.json leaves out sizes, so those of transformers' gpt2 class count: n_layer 12."
    with pytest.raises(ValueError, match=told):
        load(tmp_path)


def test_no_key_is_named_twice() -> None:
    assert len(set(WITHOUT_EFFECT)) == len(WITHOUT_EFFECT)
