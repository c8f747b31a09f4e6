"""Fine-tuning of what transformers wrote: bases, new heads, what learns, and the same numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from engine.budget import budget
from engine.checkpoints import load
from engine.data.own_tasks import held_out
from engine.training import (
    RecipeError,
    parse_recipe,
    read_recipe,
    read_status,
    set_weight,
    train,
    write_recipe,
)
from engine.training.base.base import read_transfer
from engine.training.launch.sizing import find_size, known_size
from engine.training.recipe.limit_checks import check_start
from engine.training.recipe.optimiser import build_optimisers
from engine.training.recipe.recipe import Optimiser
from engine.training.run.folder import RunFolder
from tests.engine.training.test_trainer import before_steps, trainer

torch.set_num_threads(1)

WORDS = "the cat dog sat ran on mat log bad good very is was here there not".split()
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
BERT = SIZES | {"vocab_size": 24, "max_position_embeddings": 32}
GPT2 = {"vocab_size": 24, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "bos_token_id": 3}


def save_base(folder: Path, kind: str) -> Path:
    """A small random model of transformers with a tokenizer of WORDS, as transformers writes it."""
    torch.manual_seed(0)
    if kind == "bert":
        model: Any = transformers.BertForMaskedLM(transformers.BertConfig(**BERT))
    else:
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, eos_token_id=3, pad_token_id=0))
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join([*MARKS, *WORDS]))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def write_recipe_file(folder: Path, base: str, kind: str, more: str = "") -> Path:
    """A recipe beside its rows; `more` is put before [objective]'s end or is tables of its own."""
    random = Random(0)
    rows = []
    for row in range(40):
        words = random.choices(WORDS, k=random.randint(3, 6))
        tags = ["LONG" if len(word) > 3 else "O" for word in words]
        rows.append({"t": " ".join(words), "p": " ".join(words[::-1]), "l": "abc"[row % 3], "w": words, "g": tags})
        rows[-1] |= {"a": words[1], "s": len(words[0]) + 1}
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    path = folder / f"{kind}.toml"
    asked = "classification" if kind == "pairs" else kind
    path.write_text(TEXT.format(base=base, kind=asked, columns=COLUMNS[kind]) + more)
    return path


COLUMNS = {
    "classification": 'text = "t"\nlabel = "l"',
    "token_classification": 'tokens = "w"\ntags = "g"',
    "next": 'text = "t"',
    "masked": 'text = "t"',
    "pairs": 'text = "t"\npair = "p"\nlabel = "l"',
    "span": 'question = "p"\ncontext = "t"\nanswer = "a"\nstart = "s"',
}
TEXT = """
base = "{base}"
seed = 3

[objective]
kind = "{kind}"

[data.rows]
path = "rows.jsonl"
{columns}
held_out = 0.25

[schedule]
steps = 4

[batch]
size = 4
context = 16

[log]
every = 1
held_out_every = 2
held_out_batches = 1
snapshots = 3
latest_every = 3

[machine]
device = "cpu"
threads = 1
compile = "off"
"""


def predictions(folder: Path, model: Any, texts: list[str]) -> torch.Tensor:
    """batch class"""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    read = (tokenizer(text, return_tensors="pt", return_token_type_ids=False) for text in texts)
    with torch.no_grad():
        return torch.cat([model(**one).logits for one in read])


NEW = {"bert": ("pooler.dense.weight", "pooler.dense.bias", "head.weight", "head.bias"), "gpt2": ("head.weight",)}


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_folder_of_transformers_learns_classes_and_goes_back_to_transformers(kind: str, tmp_path: Path) -> None:
    save_base(tmp_path / kind, kind)
    recipe = read_recipe(write_recipe_file(tmp_path, kind, "classification"))
    check_start(recipe)
    head = recipe.model.head
    assert (head.read, head.pooler) == (("first", True) if kind == "bert" else ("last", False))
    assert recipe.model.context == 32  # the whole table of positions
    steps = list(train(recipe, tmp_path / "run"))
    assert [step.step for step in steps] == [0, 1, 2, 3, 4]
    transfer = read_transfer(tmp_path / "run")
    assert transfer is not None and transfer.new == NEW[kind]
    assert transfer.taken[:1] == ("embed.tokens.weight",) and ("head.dense.weight" in transfer.left) == (kind == "bert")
    done = load(tmp_path / "run" / "checkpoint")
    assert (done.labels, done.family) == (("a", "b", "c"), kind)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "checkpoint")
    texts = ["the cat sat on the mat", "a dog ran", "very good"]
    assert done.tokenizer is not None
    ours = torch.stack([done.model(torch.tensor([done.tokenizer.encode(text).ids]))[0] for text in texts])
    found = predictions(tmp_path / "run" / "checkpoint", theirs.eval(), texts)
    torch.testing.assert_close(ours.detach(), found, atol=1e-5, rtol=0)


def test_a_base_that_is_gone_or_cannot_do_it_is_one_sentence(tmp_path: Path) -> None:
    path = write_recipe_file(tmp_path, "nowhere", "classification")
    with pytest.raises(RecipeError, match="line 2: base must be a checkpoint that is here, and 'nowhere' is no folder"):
        read_recipe(path)
    with pytest.raises(RecipeError, match="line 2: base must be one of the models here .* got '/etc'; open it first"):
        parse_recipe(TEXT.format(base="/etc", kind="classification", columns=COLUMNS["classification"]))
    save_base(tmp_path / "gpt2", "gpt2")
    recipe = read_recipe(write_recipe_file(tmp_path, "gpt2", "classification"))
    for name in ("vocab.txt", "tokenizer.json"):
        (tmp_path / "gpt2" / name).unlink(missing_ok=True)
    with pytest.raises(ValueError, match="^base must be a checkpoint that reads texts, got .*gpt2 without a tokenizer"):
        check_start(recipe)
    with pytest.raises(RecipeError, match='model.attention.mask must be .*full.* for objective.kind "masked"'):
        read_recipe(write_recipe_file(tmp_path, "gpt2", "masked"))


def test_a_run_is_a_base_and_a_head_that_fits_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path / "runs"))
    save_base(tmp_path / "bert", "bert")
    list(train(read_recipe(write_recipe_file(tmp_path, "bert", "token_classification")), tmp_path / "runs" / "one"))
    for base in ("run:one", "run:one@4"):
        recipe = read_recipe(write_recipe_file(tmp_path, base, "token_classification"))
        list(train(recipe, tmp_path / base.replace(":", "-")))
        transfer = read_transfer(tmp_path / base.replace(":", "-"))
        assert transfer is not None and not transfer.new and not transfer.left
        first = load(RunFolder(tmp_path / base.replace(":", "-")).snapshot(0)).model.state_dict()
        assert torch.equal(first["head.weight"], load(tmp_path / "runs" / "one").model.state_dict()["head.weight"])


def learned(run: Path) -> set[str]:
    """Names of the tensors that are not as they were at the beginning."""
    first, last = load(RunFolder(run).snapshot(0)).model.state_dict(), load(RunFolder(run).latest).model.state_dict()
    return {name for name in first if not torch.equal(first[name], last[name])}


@pytest.mark.parametrize(
    ("parts", "prefixes"),
    [
        ('"head"', ("head.", "pooler.")),
        ('"last 1 block"', ("head.", "pooler.", "blocks.1.")),
        ('["blocks.0.attn", "embed.tokens"]', ("blocks.0.attn.", "embed.tokens.")),
    ],
)
def test_only_the_parts_that_are_named_learn_and_have_a_state(
    parts: str, prefixes: tuple[str, ...], tmp_path: Path
) -> None:
    save_base(tmp_path / "bert", "bert")
    path = write_recipe_file(tmp_path, "bert", "classification", f"\n[train]\nparts = {parts}\ndecay = 0.5\n")
    recipe = read_recipe(path)
    assert parse_recipe(write_recipe(recipe), folder=tmp_path) == recipe
    list(train(recipe, tmp_path / "run"))
    names = load(RunFolder(tmp_path / "run").latest).model.state_dict()
    wanted = {name for name in names if name.startswith(prefixes) and not name.endswith("attn.k.bias")}
    assert learned(tmp_path / "run") - {"blocks.0.attn.k.bias", "blocks.1.attn.k.bias"} == wanted
    kept = load_file(RunFolder(tmp_path / "run").latest / "optimiser-0000004.safetensors")
    assert {name.removeprefix("exp_avg.") for name in kept if name.startswith("exp_avg.")} == {
        name for name in names if name.startswith(prefixes)
    }


def test_a_part_that_names_nothing_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    save_base(tmp_path / "bert", "bert")
    recipe = read_recipe(write_recipe_file(tmp_path, "bert", "classification", '\n[train]\nparts = ["blocks.7"]\n'))
    wanted = r"^train.parts must be .*\(embed, blocks.0, blocks.1, pooler, head, or what is in them\), got 'blocks.7'"
    with pytest.raises(ValueError, match=wanted):
        check_start(recipe)


def test_the_rate_falls_with_the_depth_below_the_head(tmp_path: Path) -> None:
    model = load(save_base(tmp_path / "bert", "bert")).model
    model.requires_grad_(True)
    optimiser = build_optimisers(model, Optimiser(), decay=0.5)
    optimiser.step(torch.amp.GradScaler("cpu", enabled=False), 0.1)
    rates = {id(p): group["lr"] for group in optimiser.groups for p in group["params"]}
    found = {name: rates[id(parameter)] for name, parameter in model.named_parameters()}
    assert found["head.dense.weight"] == 0.1 and found["blocks.1.mlp.out.bias"] == 0.05
    assert found["blocks.0.attn.q.weight"] == 0.025 and found["embed.tokens.weight"] == 0.0125


def test_training_ends_when_the_held_out_loss_gets_no_better_and_keeps_the_best(tmp_path: Path) -> None:
    save_base(tmp_path / "bert", "bert")
    path = write_recipe_file(tmp_path, "bert", "classification", "\n[train]\npatience = 2\n[optimiser]\nlr = 0.03\n")
    text = path.read_text().replace("steps = 4", "steps = 60")
    path.write_text(text.replace("held_out_every = 2", "held_out_every = 1"))
    run = RunFolder(tmp_path / "run")
    whole = [step for step in train(read_recipe(path), run.path) if step.held_out_loss is not None]
    best = min(whole, key=lambda step: step.held_out_loss or 0.0)
    status = read_status(run.status)
    assert status is not None and status.state == "finished" and whole[-1].step == best.step + 2 < 60
    done, kept = load(run.checkpoint), load(run.snapshot(best.step))
    assert done.card["best_step"] == best.step and done.card["loss"]["held_out"] == pytest.approx(best.held_out_loss)
    ours, theirs = done.model.state_dict(), kept.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert list(train(read_recipe(path), run.path)) == []  # it is finished


CASES = {
    ("bert", "classification"): transformers.BertForSequenceClassification,
    ("bert", "pairs"): transformers.BertForSequenceClassification,
    ("bert", "token_classification"): transformers.BertForTokenClassification,
    ("bert", "span"): transformers.BertForQuestionAnswering,
    ("gpt2", "classification"): transformers.GPT2ForSequenceClassification,
}


@pytest.mark.parametrize(("base", "kind"), CASES)
def test_a_step_has_the_loss_and_the_gradients_of_transformers(
    base: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_base(tmp_path / base, base)
    more = "\n[model]\ndropout = 0.0\n[optimiser]\nclip = 0.0\n"
    recipe = read_recipe(write_recipe_file(tmp_path, base, kind, more))
    learner = trainer(recipe, tmp_path / "run")
    learner.checkpoint().save(tmp_path / "begun")
    model = CASES[base, kind].from_pretrained(tmp_path / "begun").eval()
    examples = next(learner.source.held_out(1))  # of several lengths
    monkeypatch.setattr(learner.source, "batch", lambda step: examples)
    read = {"input_ids": examples.ids, "attention_mask": examples.inputs["padding"].long()}
    assert not examples.inputs["padding"].all()
    if "segments" in examples.inputs:
        assert examples.inputs["segments"].any()
        read["token_type_ids"] = examples.inputs["segments"]
    if kind == "span":
        read |= dict(zip(("start_positions", "end_positions"), examples.targets.unbind(1), strict=True))
    else:
        read["labels"] = examples.targets
    theirs = model(**read)
    theirs.loss.backward()
    found: dict[str, torch.Tensor] = {}

    def look() -> None:
        found.update({n: p.grad.clone() for n, p in learner.model.named_parameters() if p.grad is not None})

    before_steps(learner, look)
    assert float(learner.advance().loss.detach()) == pytest.approx(float(theirs.loss.detach()), abs=1e-6)
    with torch.no_grad():  # their gradients, by our names
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    model.save_pretrained(tmp_path / "gradients")
    wanted = load(tmp_path / "gradients").model.state_dict()
    assert set(found) == set(wanted)
    found["embed.tokens.weight"][0] = wanted["embed.tokens.weight"][0]  # theirs never changes the row of padding
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, wanted[name], atol=1e-5, rtol=0)


def test_an_answer_that_is_not_where_it_says_is_told_by_its_row(tmp_path: Path) -> None:
    save_base(tmp_path / "bert", "bert")
    path = write_recipe_file(tmp_path, "bert", "span")
    list(train(read_recipe(path), tmp_path / "run"))
    measured = load(tmp_path / "run" / "checkpoint").card["measured"]
    assert 0 <= measured["exact"] <= measured["f1"] <= 1 and measured["questions"] == 10
    rows = (tmp_path / "rows.jsonl").read_text().replace('"s": ', '"s": 9', 1)
    (tmp_path / "rows.jsonl").write_text(rows)
    with pytest.raises(ValueError, match="^row 1 must have its answer .* in the context from the character that 's'"):
        list(train(read_recipe(path), tmp_path / "other"))


@pytest.mark.parametrize(
    ("kind", "of", "label", "said"),
    [
        ("classification", "all", "a", "^the column of the labels must have 2 to 1,000 different ones, got only 'a';"),
        ("token_classification", "all", "a", "^the column of the tags must have 2 to .* got only 'a'; choose another"),
        ("classification", "fifth", " ", "^row 5 must have a text in the column 'l', got nothing; correct or remove"),
        ("classification", "held out", "z", "^each label that is held out must be learned from too, got 'z' in the"),
        ("token_classification", "held out", "z", "^each label that is held out must be learned from too, got 'z' in"),
    ],
)
def test_labels_that_cannot_be_learned_are_one_sentence_before_anything_starts(
    kind: str, of: str, label: str, said: str, tmp_path: Path
) -> None:
    save_base(tmp_path / "bert", "bert")
    recipe = read_recipe(write_recipe_file(tmp_path, "bert", kind))
    assert not find_size(recipe, tmp_path).problem
    rows = [json.loads(row) for row in (tmp_path / "rows.jsonl").read_text().splitlines()]
    theirs = held_out([row["t"] for row in rows], 0.25, recipe.seed)
    for row in {"all": rows, "fifth": rows[4:5], "held out": [row for row in rows if row["t"] in theirs]}[of]:
        row |= {"l": label, "g": [label] * len(row["w"])}
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match=said):
        trainer(recipe, tmp_path / "run")
    assert re.search(said, find_size(recipe, tmp_path).problem)


def test_a_label_column_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    save_base(tmp_path / "bert", "bert")
    path = write_recipe_file(tmp_path, "bert", "classification")
    path.write_text(path.read_text().replace('label = "l"', 'label = "class"'))
    told = find_size(read_recipe(path), tmp_path).problem
    assert told == "the column must be one of 't', 'p', 'l', 'w', 'g', 'a', 's', got 'class'; choose one of them."


@pytest.mark.parametrize("kind", ["classification", "pairs", "token_classification", "span"])
def test_rows_that_are_too_long_are_counted_before_anything_starts(kind: str, tmp_path: Path) -> None:
    save_base(tmp_path / "bert", "bert")
    recipe = read_recipe(write_recipe_file(tmp_path, "bert", kind))
    size = find_size(recipe, tmp_path)
    assert (size.problem, size.rows, size.left_out) == ("", 40, 0)
    rows = [json.loads(row) for row in (tmp_path / "rows.jsonl").read_text().splitlines()]
    for row in rows[:7]:
        row["w"], row["g"] = row["w"] * 8, row["g"] * 8
        row["t"] = " ".join(row["w"])
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    known = find_size(recipe, tmp_path)
    assert (known.rows, known.left_out) == (40, 7) and known_size(recipe, tmp_path) == known
    shelves = trainer(recipe, tmp_path / "run").source.shelves
    assert sum(len(each.fit) for each in shelves.values()) == 33
    with pytest.raises(ValueError, match="^batch.context must fit a document, got 3; the shortest has"):
        trainer(replace(recipe, batch=replace(recipe.batch, context=3)), tmp_path / "other")


def test_a_language_head_beside_the_classes_learns_with_them_at_a_weight_that_can_be_changed(tmp_path: Path) -> None:
    """L2 + lambda L1 of Radford et al. 2018, section 3.2, against transformers' two models on the same weights."""
    save_base(tmp_path / "gpt2", "gpt2")
    path = write_recipe_file(tmp_path, "gpt2", "classification", "\n[model]\ndropout = 0.0\n")
    path.write_text(path.read_text().replace('"classification"', '"classification"\nlanguage_weight = 0.5'))
    recipe = read_recipe(path)
    assert recipe.model.head.language and parse_recipe(write_recipe(recipe), folder=tmp_path) == recipe
    learner = trainer(recipe, tmp_path / "one")
    learner.checkpoint().save(tmp_path / "begun")
    classes = transformers.GPT2ForSequenceClassification.from_pretrained(tmp_path / "begun").eval()
    words = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "gpt2").eval()
    examples = learner.source.batch(1)
    read = {"input_ids": examples.ids, "attention_mask": examples.inputs["padding"].long()}
    with torch.no_grad():
        label = float(classes(**read, labels=examples.targets).loss)
        hidden = examples.ids.masked_fill(~examples.inputs["padding"], -100)
        language = float(words(**read, labels=hidden).loss)
    found = learner.advance(weight=2.0).read().scores
    assert found["label_loss"] == pytest.approx(label, abs=1e-6)
    assert found["language_loss"] == pytest.approx(language, abs=1e-6)
    assert found["loss"] == pytest.approx(label + 2 * language, abs=1e-5)

    for step in train(recipe, tmp_path / "run"):
        if step.step == 2:
            set_weight(tmp_path / "run", 0.0)
        if step.step:
            weight = 0.5 if step.step < 3 else 0.0
            told = step.also["label_loss"] + weight * step.also["language_loss"]
            assert step.loss == pytest.approx(told, abs=1e-6)
    assert "held_out_language_loss" in RunFolder(tmp_path / "run").read_metrics()[-1]["also"]
    assert load(RunFolder(tmp_path / "run").snapshot(4)).config.head.language
    assert load(tmp_path / "run" / "checkpoint").family == "gpt2"
    with pytest.raises(ValueError, match="^model.head.language must be true for objective.language_weight"):
        replace(recipe, model=replace(recipe.model, head=replace(recipe.model.head, language=False)))
