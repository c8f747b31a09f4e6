"""A training that begins with a checkpoint's weights and reads with its tokenizer."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers

from engine.checkpoints import load, locate
from engine.data.kinds.bilingual import Bilingual
from engine.data.kinds.instructions import Instructions
from engine.data.kinds.rewriting import Rewriting
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.training import Recipe, RunFolder, read_recipe, train
from engine.training.launch.sizing import find_size, known_size
from engine.training.measures.exact import by_group
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.recipe_file import parse_recipe, write_recipe
from engine.training.run.fork import apply_changes
from tests.engine.training.test_recipes import RECIPES, narrow

NAME = "small-base"


def little(name: str, data: Data, base: str = "", steps: int = 4) -> Recipe:
    recipe = read_recipe(RECIPES / f"{name}.toml")
    return replace(
        recipe,
        base=base,
        model=narrow(recipe.model),
        data=data,
        schedule=replace(recipe.schedule, steps=steps, warmup=1),
        batch=replace(recipe.batch, size=4),
        log=replace(recipe.log, every=1, held_out_every=steps, held_out_batches=1, snapshots=2, latest_every=2),
        machine=replace(recipe.machine, device="cpu", threads=1),
    )


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only shipped checkpoint is one that has just learned a little of two languages."""
    place = tmp_path / "shipped"
    recipe = little("bilingual", replace(read_recipe(RECIPES / "bilingual.toml").data, table=Bilingual(200, 40)))
    for _ in train(recipe, tmp_path / "base"):
        pass
    place.mkdir()
    RunFolder(tmp_path / "base").checkpoint.rename(place / NAME)
    monkeypatch.setattr(locate, "SHIPPED", place)
    return place / NAME


def instruct(base: str = NAME) -> Recipe:
    task = replace(read_recipe(RECIPES / "instruct.toml").data, table=Instructions(60, 10))
    return little("instruct", task, base)


def test_the_recipes_name_the_base_of_the_shipped_model_which_is_made_before_it() -> None:
    recipe = read_recipe(RECIPES / "instruct.toml")
    base = read_recipe(RECIPES / f"{recipe.base}.toml")
    assert recipe.base == "bilingual" < "instruct" and base.model == recipe.model
    assert set(recipe.data.tokenizer.special_tokens) <= set(base.data.tokenizer.special_tokens)
    assert parse_recipe(write_recipe(recipe)) == recipe


def test_a_fine_tuning_begins_with_the_weights_and_the_tokenizer_of_its_base(shelf: Path, tmp_path: Path) -> None:
    steps = list(train(instruct(), tmp_path / "tuned"))
    run = RunFolder(tmp_path / "tuned")
    base, begun, tuned = load(NAME), load(run.snapshot(0)), load(run.checkpoint)
    theirs, first, last = (one.model.state_dict() for one in (base, begun, tuned))
    assert all(torch.equal(theirs[key], first[key]) for key in theirs)
    assert any(not torch.equal(theirs[key], last[key]) for key in theirs)
    assert base.tokenizer is not None and tuned.tokenizer is not None
    assert tuned.tokenizer.pieces == base.tokenizer.pieces and tuned.end_ids == (base.tokenizer.end_id,)
    assert steps[-1].step == 4


def test_a_fine_tuning_that_was_left_goes_on_bit_for_bit(shelf: Path, tmp_path: Path) -> None:
    for _ in train(instruct(), tmp_path / "unbroken"):
        pass
    for step in train(instruct(), tmp_path / "left"):
        if step.step == 3:
            break
    for _ in train(instruct(), tmp_path / "left"):
        pass
    ours, theirs = (load(tmp_path / run).model.state_dict() for run in ("unbroken", "left"))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_base_that_is_not_shipped_or_of_another_model_or_reads_other_tokens_is_refused(
    shelf: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="^base must be a checkpoint that is here, and 'nothing' is no folder"):
        next(train(instruct("nothing"), tmp_path / "one"))
    wider = replace(instruct(), model=replace(instruct().model, d_model=32))
    with pytest.raises(ValueError, match=f"^model must be that of the base {NAME}, with d_model = 16; correct it"):
        next(train(wider, tmp_path / "two"))
    assert find_size(wider, tmp_path).problem.startswith(f"model must be that of the base {NAME}, with d_model = 16")
    assert known_size(instruct(), tmp_path) is None and find_size(instruct(), tmp_path).vocab_size > 0
    other = Data(Rewriting(documents=40, held_out=10), tokenizer=TokenizerRecipe("char"))
    with pytest.raises(ValueError, match=f"^base must have the special tokens =, and {NAME} lacks them"):
        next(train(replace(instruct(), data=other), tmp_path / "three"))


def test_a_fork_keeps_its_base() -> None:
    recipe = instruct()
    assert apply_changes(recipe, {"optimiser.lr": 0.5}).base == NAME
    with pytest.raises(ValueError, match="a fork can change .* got base"):
        apply_changes(recipe, {"base": "stories"})


def test_groups_are_told_in_the_order_of_their_numbers_or_of_their_names() -> None:
    assert list(by_group([10, 9, 10, 2], [True, False, False, True]).items()) == [("2", 1.0), ("9", 0.0), ("10", 0.5)]
    assert by_group(["[b]", "[a]", "[b]"], [True, False, False]) == {"[a]": 0.0, "[b]": 0.5}


def test_a_tokenizer_may_know_more_tokens_than_the_table_has_rows(tmp_path: Path) -> None:
    """A pad token was added, and the table never made longer: transformers trains on texts that do not use it."""
    words = ["</s>", "<unk>", *"abcdefgh"]
    fast = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: id for id, word in enumerate(words)}, "<unk>"))
    fast.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    special = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "[PAD]"}
    longer = transformers.PreTrainedTokenizerFast(tokenizer_object=fast, **special)
    longer.add_tokens(["new"])
    longer.save_pretrained(tmp_path / "base")
    shape = {"vocab_size": len(words), "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16}
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(bos_token_id=0, eos_token_id=0, **shape))
    theirs.save_pretrained(tmp_path / "base")
    rows = [{"text": " ".join("abcdefgh"[n : n + 2 + n]), "label": "xy"[n % 2]} for n in range(4)] * 2
    rows += [{"text": "a c e", "label": "x"}, {"text": "h", "label": "y"}]

    def recipe_of(kind: str, columns: str) -> Any:
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "recipe.toml").write_text(f"""
base = "{tmp_path / "base"}"
[data.rows]
path = "rows.jsonl"
{columns}
held_out = 0.3
[objective]
kind = "{kind}"
[schedule]
steps = 1
[batch]
size = 2
context = 4
""")
        return read_recipe(tmp_path / "recipe.toml")

    for kind, columns in (("next", 'text = "text"'), ("classification", 'text = "text"\nlabel = "label"')):
        steps = list(train(recipe_of(kind, columns), tmp_path / kind))
        assert math.isfinite(steps[-1].loss)
        assert load(tmp_path / kind / "checkpoint").config.vocab_size == len(words)
    rows[0]["text"] += " new"
    with pytest.raises(ValueError, match="one has 'new', id 11, which only the tokenizer of .* knows"):
        list(train(recipe_of("next", 'text = "text"'), tmp_path / "refused"))
