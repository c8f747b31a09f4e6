"""A task's model for another objective: a recipe that reads, with nothing changed that need not be."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.model.config import ModelConfig
from engine.model.from_dict import build
from engine.training import parse_recipe, read_recipe
from engine.training.objectives import find_objective, objectives
from engine.training.objectives.suitable_config import suit_model
from engine.training.recipe.recipe_file import as_toml

LAB = Path(__file__).parents[3] / "assets" / "lab"
HEADS = {"classification": "sequence", "token_classification": "token"}
ONE_AXIS = {"positions": {"kind": "learned"}}
CHANGES = {
    ("stories", "masked"): {"head.kind is masked", "attention.mask is full"},
    ("masked-stories", "next"): {"head.kind is language", "attention.mask is causal"},
    ("addition", "sequence_to_sequence"): {"encoder is added"},
    ("reverse", "completion"): {"encoder is left out"},
    ("induction", "next"): set(),
    ("stories", "infill"): {"attention.mask is prefix", "positions.axes is 2"},
    ("masked-stories", "infill"): {"head.kind is language", "attention.mask is prefix", "positions.axes is 2"},
}


@pytest.mark.parametrize(("task", "kind"), CHANGES)
def test_a_model_is_changed_where_the_objective_leaves_no_choice_and_nowhere_else(task: str, kind: str) -> None:
    recipe = read_recipe(LAB / f"{task}.toml")
    said = recipe.tables
    model, told = suit_model(kind, recipe.data.kind, said["model"])
    assert set(told) == CHANGES[task, kind] and said == recipe.tables
    made = parse_recipe(as_toml(said | {"model": model, "objective": {"kind": kind}}))
    assert made.objective.kind == kind
    back, _ = suit_model(recipe.objective.kind, recipe.data.kind, model)
    again = parse_recipe(as_toml(said | {"model": back}))
    if recipe.model.encoder is None or kind != "completion":
        assert again == recipe
    else:  # the encoder that was left out is as the decoder now
        assert replace(again.model, encoder=None) == replace(recipe.model, encoder=None)
        assert again.model.encoder is not None and again.model.encoder.attention.mask == "full"


@pytest.mark.parametrize("kind", ["classification", "token_classification"])
def test_a_model_that_filled_gaps_reads_the_whole_text_to_classify_it(kind: str) -> None:
    said = read_recipe(LAB / "infill.toml").tables["model"] | {"infill": None}
    with pytest.raises(ValueError, match="model.attention.mask must not be 'prefix' .* it stands for 'full' there"):
        head = {"kind": HEADS[kind], "classes": 2}
        find_objective(kind).check_model(build(ModelConfig, said | {"head": head, **ONE_AXIS}))
    model, told = suit_model(kind, "rows", said)
    assert "attention.mask is full" in told and model["attention"]["mask"] == "full"
    causal, told = suit_model(kind, "rows", said | {"attention": said["attention"] | {"mask": "causal"}})
    assert causal["attention"]["mask"] == "causal" and not any("mask" in one for one in told)


@pytest.mark.parametrize("task", ["infill", "masked-stories"])
def test_a_decoder_behind_an_encoder_never_reads_what_it_is_to_write(task: str) -> None:
    model, told = suit_model("sequence_to_sequence", "rows", read_recipe(LAB / f"{task}.toml").tables["model"])
    assert "attention.mask is causal" in told and model["attention"]["mask"] == "causal"
    assert model["encoder"]["attention"]["mask"] == "full"


def test_what_cannot_be_made_to_fit_is_left_for_a_person() -> None:
    recipe = read_recipe(LAB / "digits-vit.toml")
    model, _ = suit_model("next_pixel", "digits", recipe.tables["model"])
    assert model["embedding"]["patches"] is not None and "next_pixel" in objectives()
    with pytest.raises(ValueError, match="a model that reads patches has no tokens to predict"):
        parse_recipe(as_toml(recipe.tables | {"model": model, "objective": {"kind": "next_pixel"}}))
