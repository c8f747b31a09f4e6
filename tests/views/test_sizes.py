"""The charts of sizes hold what the formulas give, at every length and for every part."""

import pytest

from engine.analysis.sizes import activations, count, envelope, forward, kv_cache
from engine.named import NAMED
from views.payload import unpack
from views.sizes import cost_charts, curve_table, formula_table, sizes, waterfall

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
