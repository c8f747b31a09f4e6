"""A training of an adapter alone: what it leaves is PEFT's, and the base stays what it was."""

from pathlib import Path

import peft
import pytest
import torch
import transformers

from engine import load, run
from engine.edits.adapters import ApplyAdapter
from engine.model.layers.lora import merge
from engine.runtime import library
from engine.training import parse_recipe, read_recipe, train
from engine.training.base.base import read_transfer
from engine.training.recipe.limit_checks import check_start
from engine.training.run.comparison import held_out_examples, held_out_loss
from engine.training.run.folder import RunFolder
from tests.engine.training.test_fine_tuning import save_base, write_recipe_file

LORA = """
[train]
parts = "lora"

[optimiser]
lr = 0.05

[lora]
rank = 2
targets = ["attn.q", "mlp.out"]
dropout = 0.1
"""


@pytest.mark.parametrize("kind", ["next", "classification"])
def test_the_adapter_of_a_run_is_pefts_and_added_to_the_base_it_is_the_run(kind: str, tmp_path: Path) -> None:
    save_base(tmp_path / "gpt2", "gpt2")
    recipe = read_recipe(write_recipe_file(tmp_path, "gpt2", kind, LORA))
    list(train(recipe, tmp_path / "run"))
    made, base = load(tmp_path / "run" / "checkpoint"), load(tmp_path / "gpt2")
    ids = base.tokenizer.encode("the cat sat on the mat").ids
    files = tmp_path / "run" / "adapter" / "run"
    before, after = base.model.state_dict(), made.model.state_dict()
    moved = {name for name in before if name in after and not torch.equal(before[name], after[name])}
    adapted = {f"blocks.{block}.{part}.weight" for block in (0, 1) for part in ("attn.q", "mlp.out")}
    assert moved == adapted
    if kind == "classification":
        transfer = read_transfer(tmp_path / "run")
        assert transfer is not None and transfer.new == ("head.weight",)
        return
    ours = run(made.model, list(ids))["logits"]
    opened = load(files)
    edited = run(opened.model, list(ids), edits=[ApplyAdapter.of(opened.adapters[0])])["logits"]
    torch.testing.assert_close(edited, ours, rtol=1e-5, atol=1e-5)
    theirs = peft.PeftModel.from_pretrained(transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "gpt2"), files)
    torch.testing.assert_close(theirs.eval()(torch.tensor([list(ids)])).logits, ours, rtol=1e-5, atol=1e-5)
    snapshot = RunFolder(tmp_path / "run").snapshot(4)
    torch.testing.assert_close(run(load(snapshot).model, list(ids))["logits"], ours, rtol=1e-6, atol=1e-6)


def test_what_no_adapter_can_be_is_one_sentence(tmp_path: Path) -> None:
    save_base(tmp_path / "gpt2", "gpt2")
    path = write_recipe_file(tmp_path, "gpt2", "next", LORA)
    text = path.read_text()
    for before, after, said in (
        ('["attn.q", "mlp.out"]', '["attn.nothing"]', "no linear map is called 'attn.nothing'"),
        ("rank = 2", "rank = 99", "must lie in 1..16, got 99"),
        ("rank = 2", "rank = 0", "lora.rank must be at least 1"),
    ):
        path.write_text(text.replace(before, after))
        with pytest.raises(ValueError, match=said):
            check_start(read_recipe(path))
    with pytest.raises(ValueError, match="lora.targets must name"):
        parse_recipe(text.replace('["attn.q", "mlp.out"]', "[]"), folder=tmp_path)


@pytest.mark.parametrize("style", ["cheerful", "old", "pirate"])
def test_a_shipped_adapter_writes_as_the_style_it_learned_and_they_mix(style: str) -> None:
    everyday = load("everyday").model
    shipped = {adapter.name.removeprefix("style-"): adapter for adapter in library.adapters_for("everyday")}
    assert {"cheerful", "old", "pirate"} <= set(shipped)
    recipe = read_recipe(Path("assets/adapt") / f"style-{style}.toml")
    examples = held_out_examples(recipe, 1)
    own = {name: held_out_loss(merge(everyday, {adapter: 1.0}), examples) for name, adapter in shipped.items()}
    assert own[style] < 0.4 * held_out_loss(everyday, examples)
    assert own[style] == min(own.values())
    other = next(name for name in shipped if name != style)
    both = held_out_loss(merge(everyday, {shipped[style]: 1.0, shipped[other]: 0.5}), examples)
    assert own[style] < both < own[other]
