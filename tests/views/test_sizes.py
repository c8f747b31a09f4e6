"""The charts of sizes hold what the formulas give, at every length and for every part."""

import pytest

from engine.analysis.sizes import activations, count, envelope, forward, kv_cache, reading
from engine.model.presets import NAMED
from views.architecture.sizes import cost_charts, curve_table, formula_table, sizes, waterfall
from views.core.payload import unpack

BERT = NAMED["bert-base"].config
LENGTHS = [8, 64]


def test_the_waterfall_ends_at_the_exact_count_and_each_bar_begins_where_the_last_ended() -> None:
    rows = unpack(sizes([waterfall(envelope(BERT))], {}))[0]["charts"][0]["rows"]
    assert [row["name"] for row in rows[:2]] == ["estimate", "W_O"]
    assert rows[-1]["to"] == rows[-1]["count"] == count(BERT) == 109_482_240
    assert [row["from"] for row in rows[1:-1]] == [row["to"] for row in rows[:-2]]
    assert (rows[1]["count"], rows[1]["kind"]) == (12 * 768 * 768, "more")


@pytest.mark.parametrize("name", ["t5-small", "llama-3-8b"])
def test_the_curves_are_the_functions_of_length(name: str) -> None:
    config = NAMED[name].config
    work, cache, kept = cost_charts(config, 2, 8, 4, LENGTHS)
    for j, length in enumerate(LENGTHS):
        tokens = length * (2 if config.encoder else 1)
        operations = sum(part["amounts"][j] for part in work["parts"])
        assert operations == pytest.approx(sum(one.flops for one in forward(config, length)) / tokens)
        held = sum(part.bytes for part in kv_cache(config, 2, length, 4))
        assert sum(part["amounts"][j] for part in cache["parts"]) == held
        saved = sum(part.bytes for part in activations(config, 2, length, 4))
        assert sum(part["amounts"][j] for part in kept["parts"]) == saved
    squared = sum(one.flops for one in forward(config, 64) if one.quadratic) / (64 * (2 if config.encoder else 1))
    assert sum(part["amounts"][1] for part in work["parts"] if part["pale"]) == pytest.approx(squared)


def test_a_model_that_continues_no_text_has_no_cache() -> None:
    titles = [chart["title"] for chart in cost_charts(BERT, 1, 8, 2, LENGTHS)]
    assert titles == ["Operations of a forward pass", "Activations kept in training"]


def test_tables_have_a_row_for_each_length_and_part_and_each_formula() -> None:
    kept = cost_charts(BERT, 1, 8, 2, LENGTHS)[1]
    columns = curve_table("bert-base", kept).columns
    assert len(columns["length"]) == len(kept["parts"]) * len(LENGTHS)
    longest = [amount for n, amount in zip(columns["length"], columns["bytes"], strict=True) if n == 64]
    assert sum(longest) == sum(part.bytes for part in activations(BERT, 1, 64, 2))
    steps = envelope(BERT)
    table = formula_table("bert-base", "steps", "parameters", [(step.name, step.formula) for step in steps]).columns
    assert sum(table["parameters"]) == count(BERT) and table["formula"][1] == steps[1].formula.text


def test_the_curves_of_a_model_of_pictures_are_functions_of_the_pictures_side() -> None:
    config = NAMED["vit-b-16"].config
    work, kept = cost_charts(config, 2, 224, 4, [112, 224, 384])
    assert work["axis"] == "side of the picture, pixels" and (work["now"], work["lengths"]) == (224, [112, 224, 384])
    for j, patches in enumerate((7, 14, 24)):
        n, d = patches**2 + 1, 768
        blocks = 12 * (24 * n * d * d + 4 * n * n * d)  # q, k, v and output, MLP of 4d; scores and weighted values
        outside = 2 * patches**2 * 3 * 16 * 16 * d + 2 * 1000 * d
        assert sum(part["amounts"][j] for part in work["parts"]) == blocks + outside
        squared = sum(part["amounts"][j] for part in work["parts"] if part["name"] == "attention, × patches")
        assert squared == 12 * 4 * n * n * d
    saved = sum(part.bytes for part in activations(config, 2, 197, 4))
    assert sum(part["amounts"][1] for part in kept["parts"]) == saved
    table = curve_table("vit-b-16", kept).columns
    assert table["side"][:3] == [112, 224, 384]


def test_a_picture_has_to_be_cut_into_whole_patches_by_a_model_that_reads_one() -> None:
    with pytest.raises(ValueError, match="must divide"):
        reading(NAMED["vit-b-16"].config, 100)
    with pytest.raises(ValueError, match="must read pictures"):
        reading(BERT, 224)
