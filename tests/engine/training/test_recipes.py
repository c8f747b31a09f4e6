"""Every recipe that ships, of the models and of the laboratory, with little data and a few steps: it trains, is
measured, and opens; and a run that was left goes on bit for bit.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints import load
from engine.data.kinds.addition import Addition
from engine.data.kinds.answering import Answering
from engine.data.kinds.bilingual import Bilingual
from engine.data.kinds.brackets import Brackets
from engine.data.kinds.dates import Dates
from engine.data.kinds.digits import Digits
from engine.data.kinds.everyday import Everyday
from engine.data.kinds.infill import Gaps
from engine.data.kinds.instructions import Instructions
from engine.data.kinds.modular import Modular
from engine.data.kinds.names import Names
from engine.data.kinds.rewriting import Rewriting
from engine.data.kinds.sentence_pairs import SentencePairs
from engine.data.kinds.sentiment import Sentiment
from engine.data.kinds.spans import Spans
from engine.data.kinds.stories import Stories
from engine.data.kinds.text_to_text import TextToText
from engine.data.kinds.translation import Translation
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.config import ModelConfig
from engine.training import Recipe, RunFolder, read_recipe, train
from engine.training.objectives import objectives
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.preference import Preference
from engine.training.recipe.recipe import Objective

pytestmark = pytest.mark.long

ASSETS = Path(__file__).parents[3] / "assets"
RECIPES, LAB = ASSETS / "recipes", ASSETS / "lab"
LITTLE: dict[str, dict[str, Any]] = {
    "stories": {"table": Stories(20, 5), "tokenizer": TokenizerRecipe("bpe", 300)},
    "everyday": {"table": Everyday(40, 10), "tokenizer": TokenizerRecipe("bpe", 300)},
    "induction": {},
    "tales-bert": {"table": SentencePairs(40, 10), "tokenizer": TokenizerRecipe("wordpiece", 300)},
    "translate-en-fr": {"table": Translation(40, 10), "tokenizer": TokenizerRecipe("word")},
    "infill": {"table": Gaps(40, 10), "tokenizer": TokenizerRecipe("bpe", 300)},
    "digits-vit": {},
    "digits-imagegpt": {},
    "bilingual": {"table": Bilingual(40, 10)},
    "instruct": {"table": Instructions(40, 10)},
    "in-context": {},
    "long-stories": {"table": Stories(20, 5, long=True), "tokenizer": TokenizerRecipe("bpe", 300)},
    "t5-spans": {"table": Spans(40, 10)},
    "t5-tasks": {"table": TextToText(42, 12)},
    "t5-answers": {"table": Answering(40, 10)},
}
FEW: dict[str, dict[str, Any]] = {  # of the laboratory
    "reverse": {"table": Rewriting("reverse", documents=40, held_out=10)},
    "copy": {"table": Rewriting("copy", documents=40, held_out=10)},
    "sort": {"table": Rewriting("sort", documents=40, held_out=10)},
    "repeat": {"table": Rewriting("repeat", longest=8, documents=40, held_out=10)},
    "induction": {},
    "modular-addition": {"table": Modular(modulus=7)},
    "addition": {"table": Addition(documents=40, held_out=10)},
    "brackets": {"table": Brackets(longest=16, documents=40, held_out=10)},
    "dates": {"table": Dates(documents=40, held_out=10)},
    "english-french": {"table": Translation(40, 10)},
    "digits-vit": {},
    "digits-imagegpt": {},
    "python-reference": {},
    "experts": {"table": Bilingual(40, 10), "tokenizer": TokenizerRecipe("bpe", 300)},
    "stories": {"table": Stories(20, 5), "tokenizer": TokenizerRecipe("bpe", 300)},
    "sentiment": {"table": Sentiment(documents=40, held_out=10)},
    "names": {"table": Names(documents=40, held_out=10)},
    "masked-stories": {"table": Stories(20, 5), "tokenizer": TokenizerRecipe("wordpiece", 300)},
    "infill": {"table": Gaps(40, 10), "tokenizer": TokenizerRecipe("bpe", 300)},
}
ALL = {RECIPES / f"{name}.toml": little for name, little in LITTLE.items()}
ALL |= {LAB / f"{name}.toml": few for name, few in FEW.items()}
WRITTEN = {"exact_match", "examples", "decoding", "unseen"}
TEXTS = {"test_accuracy", "texts", "by_class"}
MEASURED = {
    "tales-bert": {"masked_accuracy", "next_sentence_accuracy", "pairs"},
    "translate-en-fr": WRITTEN | {"by_words", "alignment", "chrf", "bleu"},
    "english-french": WRITTEN | {"by_words", "alignment", "chrf", "bleu"},
    **{name: WRITTEN | {"by_length", "attention_on_origin"} for name in ("reverse", "copy", "sort", "repeat")},
    "modular-addition": WRITTEN,
    "addition": WRITTEN | {"by_carries"},
    "dates": WRITTEN,
    "brackets": TEXTS,
    "sentiment": TEXTS,
    "names": {"test_accuracy", "words", "texts", "precision", "recall", "f1", "f1_by_kind"},
    "masked-stories": {"masked_accuracy", "texts"},
    "infill": {"token_accuracy", "exact_spans", "gaps", "decoding"},
    "digits-vit": {"test_accuracy", "test_accuracy_inverted", "pictures", "distance_to_training"},
    "digits-imagegpt": {
        "bits_per_pixel",
        "bits_per_pixel_inverted",
        "pictures",
        "completion",
        "distance_to_training",
    },
    "instruct": WRITTEN | {"by_instruction"},
    "t5-spans": WRITTEN,
    "t5-tasks": WRITTEN | {"by_task"},
    "t5-answers": WRITTEN | {"by_task"},
    "long-stories": {"texts", "loss_by_position", "end_by_tokens_read"},
    "everyday": {"whole_words", "facts", "sums", "bits_per_byte", "it", "unseen"},
    "in-context": {"accuracy_by_examples", "prompts", "decoding", "unseen"},
}


def narrow(model: ModelConfig) -> ModelConfig:
    """The same kind of model with two layers of width 16."""
    attention = replace(model.attention, heads=2)
    mlp = None if model.mlp is None else replace(model.mlp, d_mlp=32)
    encoder = model.encoder
    if encoder is not None:
        encoder = replace(encoder, layers=1, attention=replace(encoder.attention, heads=2), mlp=mlp)
    positions = model.positions if model.positions.turned is None else replace(model.positions, turned=2)
    return replace(model, d_model=16, layers=2, attention=attention, mlp=mlp, encoder=encoder, positions=positions)


def shrunk(path: Path, steps: int = 5) -> Recipe:
    """Without a base, whose model is as large as it is."""
    recipe = read_recipe(path)
    return replace(
        recipe,
        base="",
        model=narrow(recipe.model),
        data=replace(recipe.data, **ALL[path]),
        schedule=replace(recipe.schedule, steps=steps, warmup=1),
        batch=replace(recipe.batch, size=4),
        log=replace(recipe.log, every=1, held_out_every=steps, held_out_batches=2, snapshots=2, latest_every=2),
        machine=replace(recipe.machine, device="cpu", threads=1),
    )


def test_every_recipe_is_tried_here() -> None:
    assert {*RECIPES.glob("*.toml"), *LAB.glob("*.toml")} == ALL.keys()


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_shipped_recipe_trains_is_measured_and_opens(path: Path, tmp_path: Path) -> None:
    name, recipe, run = path.stem, shrunk(path), RunFolder(tmp_path / path.stem)
    steps = list(train(recipe, run.path))
    assert [step.step for step in steps] == list(range(6))
    kind = recipe.objective.kind
    card = json.loads((run.checkpoint / "card.json").read_text())
    assert card["objective"] == kind and card["loss"]["unit"] == objectives()[kind].unit
    if card["loss"]["unit"] == "nats a token":
        assert card["perplexity"]["held_out"] == pytest.approx(math.exp(card["loss"]["held_out"]))
    assert card["measured"].keys() == MEASURED.get(name, set())
    assert card["loss"]["held_out"] == pytest.approx(steps[-1].held_out_loss)
    assert card["data"].keys() == {recipe.data.kind} | ({"tokenizer"} if not recipe.data.table.pictures else set())
    also = {"next_sentence_accuracy"} if recipe.data.kind == "sentence_pairs" else set()
    also |= {"exact"} if kind in ("completion", "sequence_to_sequence") else set()
    also |= {"expert_load", *(f"expert_share_{expert}" for expert in range(4))} if name == "experts" else set()
    assert {key for key in steps[-1].also if not key.startswith("held_out_")} == also
    assert all(steps[-1].also[f"held_out_{key}"] == pytest.approx(card[key]["held_out"]) for key in also)
    finished = load(run.checkpoint)
    assert finished.report.ok and not finished.report.notes
    assert (finished.tokenizer is None) == (recipe.data.table.pictures) == (finished.processor is not None)
    snapshot = load(run.snapshot(5))
    assert (snapshot.tokenizer is None, snapshot.processor) == (finished.tokenizer is None, finished.processor)
    theirs, ours = finished.model.state_dict(), snapshot.model.state_dict()
    assert theirs.keys() == ours.keys() and all(torch.equal(theirs[key], ours[key]) for key in ours)
    if kind == "infill":
        assert finished.tokenizer is not None
        assert finished.end_ids == (finished.tokenizer.special_tokens["[eop]"],) == snapshot.end_ids


@pytest.mark.parametrize("name", ["tales-bert", "infill"])
def test_a_run_with_drawn_masks_or_gaps_that_was_left_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    recipe = shrunk(RECIPES / f"{name}.toml")
    recipe = replace(recipe, model=replace(recipe.model, dropout=0.1))
    for _ in train(recipe, tmp_path / "unbroken"):
        pass
    for step in train(recipe, tmp_path / "left"):
        if step.step == 3:
            break
    torch.manual_seed(99)  # whatever else the process draws does not matter
    for _ in train(recipe, tmp_path / "left"):
        pass
    ours, theirs = (load(tmp_path / run).model.state_dict() for run in ("unbroken", "left"))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_no_data_is_taken_that_an_objective_has_no_source_for() -> None:
    for kind in objectives().values():
        assert kind.sources and all(issubclass(Preference, one) for one in kind.settings)
    bert = shrunk(RECIPES / "tales-bert.toml")
    with pytest.raises(ValueError, match='must be "next" or "masked" or "infill" for .data.stories., got "completion"'):
        replace(bert, data=Data(Stories()), objective=Objective("completion"))
    with pytest.raises(ValueError, match='model.head.next_sentence must be False for .* "masked", got True'):
        replace(bert, data=Data(Stories()))
    with pytest.raises(ValueError, match='must be "classification" or "next_pixel" for .data.digits., got "masked"'):
        replace(bert, data=Data(Digits()))
    with pytest.raises(ValueError, match='data.tokenizer.kind must be "wordpiece" for sentence_pairs, got "bpe"'):
        Data(SentencePairs())
