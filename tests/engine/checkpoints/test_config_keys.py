import json
import warnings
from pathlib import Path

import pytest
from transformers import AutoConfig, GPT2Config, GPT2LMHeadModel

from engine.checkpoints import load
from engine.checkpoints.config_keys import WITHOUT_EFFECT, ConfigTable, describe_unread
from engine.checkpoints.families import FAMILIES


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "loupe"])
def test_every_key_that_transformers_writes_is_read_or_known_to_have_no_effect(name: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        theirs = AutoConfig.for_model(name).to_dict()
    for family in FAMILIES[name]:
        table = ConfigTable(theirs)
        family.read_config(table)
        assert describe_unread(table, family) == ()


def test_a_key_outside_of_the_tables_is_reported(tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=1)).save_pretrained(tmp_path)
    assert load(tmp_path).report.notes == ()
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"novel_gate": 2, "pruned_heads": {}, "z_loss": None}))
    assert load(tmp_path).report.notes == (
        "config.json has keys that Loupe does not read in a gpt2 model, so not obeyed: novel_gate.",
    )


def test_no_key_is_named_twice() -> None:
    assert len(set(WITHOUT_EFFECT)) == len(WITHOUT_EFFECT)
