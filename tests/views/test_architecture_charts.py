"""The charts of sizes hold what the formulas give, at every length and for every part."""

import json

import pytest

from engine.analysis.sizes import activations, count, envelope, forward, kv_cache, reading, states
from engine.model.presets import NAMED
from views.architecture.charts import cost_curves, curve_table, draw_curves, formula_table, formulas_by_part, waterfall
from views.charts.template import apply_altair_theme, colors
from views.core.theme import Shade

BERT = NAMED["bert-base"].config
LENGTHS = [8, 64]


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_the_waterfall_ends_at_the_exact_count_and_each_bar_begins_where_the_last_ended(shade: Shade) -> None:
    steps = envelope(BERT)
    (bars,) = waterfall(steps, shade).data
    assert list(bars.y[:2]) == ["estimate", "W<sub>O</sub>"]
    assert bars.measure == ("absolute", *["relative"] * (len(steps) - 1), "total")
    assert sum(bars.x[:-1]) == bars.x[-1] == count(BERT) == 109_482_240
    assert bars.x[1] == 12 * 768 * 768 and bars.text[1] == f"+{12 * 768 * 768:,}"
    first = steps[0].count + steps[1].count
    assert f"{steps[1].why}; reached: {first:,}" in bars.hovertext[1].replace("<br>", " ")
    low, high = waterfall(steps, shade).layout.xaxis.range
    assert 0 < low < steps[0].count and high > count(BERT)


def test_a_step_that_takes_away_is_written_with_its_sign_and_has_another_hue() -> None:
    steps = envelope(NAMED["llama-3-8b"].config)
    assert any(step.count < 0 for step in steps)
    (bars,) = waterfall(steps, "light").data
    texts = {step.name: text for step, text in zip(steps, bars.text, strict=False)}
    for step in steps[1:]:
        assert texts[step.name] == f"{'−' if step.count < 0 else '+'}{abs(step.count):,}"
    assert bars.decreasing.marker.color == colors("light")["key"] != bars.increasing.marker.color


@pytest.mark.parametrize("name", ["t5-small", "llama-3-8b"])
def test_the_curves_are_the_functions_of_length(name: str) -> None:
    config = NAMED[name].config
    work, cache, kept = cost_curves(config, 2, 8, 4, LENGTHS)
    for j, length in enumerate(LENGTHS):
        tokens = length * (2 if config.encoder else 1)
        operations = sum(part.amounts[j] for part in work.parts)
        assert operations == pytest.approx(sum(one.flops for one in forward(config, length)) / tokens)
        held = sum(part.bytes for part in kv_cache(config, 2, length, 4))
        assert sum(part.amounts[j] for part in cache.parts) == held
        saved = sum(part.bytes for part in activations(config, 2, length, 4))
        assert sum(part.amounts[j] for part in kept.parts) == saved
    squared = sum(one.flops for one in forward(config, 64) if one.quadratic) / (64 * (2 if config.encoder else 1))
    assert sum(part.amounts[1] for part in work.parts if part.pale) == pytest.approx(squared)


@pytest.mark.parametrize("shade", ["light", "dark"])
@pytest.mark.parametrize("name", ["gpt2", "t5-small", "llama-3-8b"])
def test_a_chart_stacks_what_the_curves_hold_and_reads_it_exactly(name: str, shade: Shade) -> None:
    for curves in cost_curves(NAMED[name].config, 2, 64, 4, LENGTHS):
        spec = apply_altair_theme(draw_curves(curves).figure(shade), shade).to_dict()  # validates against the schema
        json.dumps(spec, allow_nan=False)  # as a file holds it
        assert {layer["data"]["name"] for layer in spec["layer"]} == set(spec["datasets"])
        areas, now, pointer = (spec["datasets"][name] for name in ("areas", "now", "readings"))
        assert now == [{"length": 64, "reading": f"64 tokens: {curves.total(1):,.0f} {curves.unit}"}]
        scale = curves.total(1) / max(row["high"] for row in areas)
        for part in curves.parts:
            bands = [row for row in areas if row["part"] == part.name]
            heights = [(row["high"] - row["low"]) * scale for row in bands]
            assert heights == [pytest.approx(amount, abs=1e-6 * curves.total(1)) for amount in part.amounts]
        for at, row in enumerate(pointer):
            assert row["reading_1"] == f"{curves.total(at):,.0f} {curves.unit}"
            for i, part in enumerate(reversed(curves.parts), 2):
                assert row[f"reading_{i}"].startswith(f"{part.amounts[at]:,.0f} · ")
        (labels,) = (param["value"] for param in spec["params"] if param["name"] == "labels")
        assert labels == {part.name: f"{part.name}: {part.amounts[1]:,.0f}" for part in curves.parts}
        top_down = spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
        tooltip = {field["field"]: field["title"] for field in spec["layer"][-1]["encoding"]["tooltip"]}
        assert list(tooltip.values()) == [curves.axis[1], "all", *top_down] and set(tooltip) < set(pointer[0])
        assert top_down == [part.name for part in reversed(curves.parts)]
        shapes = spec["layer"][1]["encoding"]["shape"]["scale"]
        assert shapes["domain"] == top_down and len(set(shapes["range"])) == len(top_down)
        marks = [row for row in areas if row["middle"] is not None]
        assert {row["part"] for row in marks} >= {max(curves.parts, key=lambda part: part.amounts[1]).name}
        assert all(row["low"] < row["middle"] < row["high"] for row in marks)


def test_a_model_that_continues_no_text_has_no_cache() -> None:
    titles = [chart.title for chart in cost_curves(BERT, 1, 8, 2, LENGTHS)]
    assert titles == ["Operations of a forward pass", "Activations kept in training"]


def test_tables_have_a_row_for_each_length_and_part_and_each_formula() -> None:
    kept = cost_curves(BERT, 1, 8, 2, LENGTHS)[1]
    columns = curve_table("bert-base", kept).columns
    assert len(columns["length"]) == len(kept.parts) * len(LENGTHS)
    longest = [amount for n, amount in zip(columns["length"], columns["bytes"], strict=True) if n == 64]
    assert sum(longest) == sum(part.bytes for part in activations(BERT, 1, 64, 2))
    steps = envelope(BERT)
    table = formula_table("bert-base", "steps", "parameters", [(step.name, step.formula) for step in steps]).columns
    assert sum(table["parameters"]) == count(BERT) and table["formula"][1] == steps[1].formula.text


def test_the_tables_by_part_add_up_and_the_cache_grows_with_the_length() -> None:
    config = NAMED["gpt2"].config
    sums = {}
    for title, (unit, rows) in formulas_by_part(config, 3, 512, 2).items():
        sums[title] = sum(formula_table("gpt2", title, unit, rows).columns[unit])
    assert sums["operations by part"] == sum(one.flops for one in forward(config, 512))
    held = sum(one.bytes for one in [*activations(config, 3, 512, 2), *states(config)])
    assert sums["memory of training, by part"] == held
    assert sums["KV cache, by part"] == 2 * 3 * 2 * 12 * 512 * 768
    cache = curve_table("gpt2", cost_curves(config, 3, 512, 2, [512, 1024])[1]).columns
    assert list(cache["bytes"]) == [sums["KV cache, by part"], 2 * sums["KV cache, by part"]]
    assert "KV cache, by part" not in formulas_by_part(BERT, 1, 8, 2)


def test_the_curves_of_a_model_of_pictures_are_functions_of_the_pictures_side() -> None:
    config = NAMED["vit-b-16"].config
    work, kept = cost_curves(config, 2, 224, 4, [112, 224, 384])
    assert work.axis[0] == "side of the picture (pixels)" and (work.now, work.lengths) == (224, [112, 224, 384])
    for j, patches in enumerate((7, 14, 24)):
        n, d = patches**2 + 1, 768
        blocks = 12 * (24 * n * d * d + 4 * n * n * d)  # q, k, v and output, MLP of 4d; scores and weighted values
        outside = 2 * patches**2 * 3 * 16 * 16 * d + 2 * 1000 * d
        assert sum(part.amounts[j] for part in work.parts) == blocks + outside
        squared = sum(part.amounts[j] for part in work.parts if part.name == "attention, × patches")
        assert squared == 12 * 4 * n * n * d
    saved = sum(part.bytes for part in activations(config, 2, 197, 4))
    assert sum(part.amounts[1] for part in kept.parts) == saved
    table = curve_table("vit-b-16", kept).columns
    assert table["side"][:3] == [112, 224, 384]


def test_a_picture_has_to_be_cut_into_whole_patches_by_a_model_that_reads_one() -> None:
    with pytest.raises(ValueError, match="must divide"):
        reading(NAMED["vit-b-16"].config, 100)
    with pytest.raises(ValueError, match="must read pictures"):
        reading(BERT, 224)
