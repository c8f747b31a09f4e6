"""What edits change within heads, named from edits whose effect is known cell by cell."""

from __future__ import annotations

import pytest
import torch

from engine.analysis.edit_extent import STAGES, touched_cells, touched_heads
from engine.edits import (
    AttentionTemperature,
    DrawPattern,
    Edit,
    PaintMask,
    Patch,
    Replace,
    Scale,
    SetPattern,
    ShiftPositions,
    SilenceHeads,
)
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.twins import twins

MODEL = tiny.model(tiny.config("rotary", attention={"kv_heads": 2}))
PLAIN = run(MODEL, tiny.IDS)
COUNT = len(tiny.IDS)


def heads(*edits: Edit) -> list[list[int]]:
    found: list[list[int]] = touched_heads(run(MODEL, tiny.IDS, edits=list(edits)), MODEL.config).nonzero().tolist()
    return found


def cells(layer: int, *edits: Edit) -> list[list[int]]:
    trace = run(MODEL, tiny.IDS, edits=list(edits))
    found: list[list[int]] = touched_cells(trace, PLAIN, layer).nonzero().tolist()
    return found


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (SilenceHeads(1, [2]), [[1, 2]]),
        (AttentionTemperature(2.0, 2, [0, 3]), [[2, 0], [2, 3]]),
        (Scale("blocks.0.attn.q", 0.5, {"head": 1}), [[0, 1]]),
        (Scale("blocks.0.attn.k", 0.5, {"head": 1}), [[0, 2], [0, 3]]),  # a key of two heads
        (Scale("blocks.0.attn.hook_v", 0.5, {"head": -1, "pos": 3}), [[0, 2], [0, 3]]),
        (Patch("blocks.1.attn.pattern", at={"head": 1}, source_hook="blocks.0.attn.pattern"), [[1, 1]]),
        (PaintMask(columns=[0], layer=1, heads=[3]), [[1, 3]]),
        (ShiftPositions(1, [2], layer=2), [[2, head] for head in range(4)]),
        (Scale("blocks.1.attn.out", 0.0), []),
        (Scale("blocks.1.mlp.out", 0.0), []),
    ],
)
def test_an_edit_marks_the_heads_that_it_reaches_into_and_no_later_ones(edit: Edit, expected: list[list[int]]) -> None:
    assert heads(edit) == expected


def test_edits_of_all_heads_mark_them_all() -> None:
    assert heads(AttentionTemperature(0.5)) == [[layer, head] for layer in range(3) for head in range(4)]
    assert heads() == []


def test_a_painted_cell_is_marked_where_the_mask_is_not_the_models_own() -> None:
    painted = PaintMask(cells=[[5, 2], [2, 5]], layer=1, heads=[0])
    assert cells(1, painted) == [[0, 2, 5], [0, 5, 2]]
    assert cells(2, painted) == []
    again = PaintMask(cells=[[5, 2]], to="allow", layer=1)  # it is allowed already
    assert cells(1, again) == []


def test_a_replaced_pattern_is_marked_where_it_is_not_the_softmax_of_its_scores() -> None:
    found = cells(1, SetPattern(1, "first", [2]), AttentionTemperature(3.0, 1))
    pattern = run(MODEL, tiny.IDS, edits=[AttentionTemperature(3.0, 1)])["blocks.1.attn.pattern"][0, 2]
    first = torch.zeros(COUNT, COUNT)
    first[:, 0] = 1
    assert found == [[2, *cell] for cell in ((pattern - first).abs() > 1e-5).nonzero().tolist()]
    weights = PLAIN["blocks.0.attn.pattern"][0, 1].clone()
    weights[4, :5] = torch.tensor([0.5, 0, 0, 0, 0.5])
    assert {row for _, row, _ in cells(0, DrawPattern(0, weights.tolist(), [1], free=True))} == {4}


def test_even_scores_mark_what_the_mask_allows_and_replaced_ones_what_is_named() -> None:
    allowed = [[1, row, col] for row in range(COUNT) for col in range(row + 1)]
    assert cells(1, SetPattern(1, "uniform", [1])) == allowed
    named = Replace("blocks.2.attn.scores", 1.0, {"head": 0, "pos": 3, "key": [0, -7]})
    assert cells(2, named) == [[0, 3, 0], [0, 3, 1]]
    assert cells(2, Scale("blocks.2.attn.q", 2.0)) == []


def test_a_cell_is_of_the_earliest_stage_at_which_an_edit_put_it_there() -> None:
    edits = [
        Replace("blocks.0.attn.scores", 1.0, {"head": 1, "pos": 3, "key": 2}),
        PaintMask(cells=[[3, 2], [4, 4]], layer=0, heads=[1]),
        SetPattern(0, "itself", [1]),
    ]
    found = touched_cells(run(MODEL, tiny.IDS, edits=edits), PLAIN, 0)[1]
    number = {stage: i for i, stage in enumerate(STAGES, 1)}
    assert [int(found[cell]) for cell in ((3, 2), (4, 4), (5, 5), (5, 6))] == [
        number["scores"],
        number["mask"],
        number["pattern"],
        0,
    ]


def test_of_two_stacks_each_attention_is_marked_by_itself() -> None:
    model = twins("t5")[0].model
    edits = [PaintMask(columns=[1], layer=0, heads=[1], stack="decoder", cross=True)]
    plain, trace = (run(model, [5, 6, 7], target=[3, 4], edits=one) for one in ([], edits))
    stack = model.config
    assert touched_heads(trace, stack, "decoder", True).nonzero().tolist() == [[0, 1]]
    assert not touched_heads(trace, stack, "decoder").any()
    assert not touched_heads(trace, stack.encoder_stack, "encoder").any()
    assert touched_cells(trace, plain, 0, "decoder", True).nonzero().tolist() == [[1, 0, 1], [1, 1, 1]]
    bias = run(model, [5, 6, 7], target=[3, 4], edits=[SetPattern(1, "uniform", stack="encoder")])
    assert bool((touched_cells(bias, plain, 1, "encoder") == 1 + STAGES.index("masked_scores")).all())


def test_a_bias_or_a_cap_is_part_of_what_masked_scores_are_made_of() -> None:
    capped = tiny.model(tiny.config("alibi", attention={"softcap": 2.0}))
    edits = [Replace("blocks.0.attn.masked_scores", 0.5, {"head": 2, "pos": 6, "key": 1})]
    trace = run(capped, tiny.IDS, edits=edits)
    assert touched_cells(trace, run(capped, tiny.IDS), 0).nonzero().tolist() == [[2, 6, 1]]
