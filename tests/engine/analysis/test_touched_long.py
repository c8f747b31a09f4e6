"""What edits put into one head is the same whether every cell of the run was kept or none."""

from __future__ import annotations

import pytest
import torch

from engine.analysis.edit_extent import STAGES, touched_cells, touched_head
from engine.analysis.summarised_run import glance
from engine.edits import (
    AttentionTemperature,
    DrawPattern,
    Edit,
    PaintMask,
    Patch,
    PresetMask,
    Replace,
    Scale,
    SetPattern,
)
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.twins import twins

pytestmark = pytest.mark.long

MODEL = tiny.model(tiny.config("alibi", attention={"kv_heads": 2, "softcap": 2.0}))
WEIGHTS = run(MODEL, tiny.IDS)["blocks.0.attn.pattern"][0, 1]


@pytest.mark.parametrize(
    "edits",
    [
        [PaintMask(cells=[[5, 2], [2, 5]], layer=1, heads=[0])],
        [PresetMask("window", 3)],
        [SetPattern(1, "first", [2]), AttentionTemperature(3.0, 1)],
        [DrawPattern(1, WEIGHTS.tolist(), [0])],
        [Scale("blocks.1.attn.scores", 2.0, {"head": [0, 2], "pos": 4})],
        [Scale("blocks.1.attn.bias", 2.0, {"head": 0, "key": [1, 3]})],
        [Patch("blocks.1.attn.scores", at={"head": 0, "pos": [2, 6]}, source_hook="blocks.0.attn.scores")],
        [Replace("blocks.1.attn.masked_scores", 0.5, {"head": 2, "pos": 6, "key": 1}), PaintMask(columns=[1])],
        [Scale("blocks.1.attn.capped", 0.0, {"head": -1}), PaintMask(rows=[3], layer=1), SetPattern(1, "uniform")],
    ],
    ids=lambda edits: " ".join(type(edit).__name__ for edit in edits),
)
def test_a_head_alone_shows_the_cells_that_the_whole_layer_shows(edits: list[Edit]) -> None:
    plain, whole = run(MODEL, tiny.IDS), run(MODEL, tiny.IDS, edits=edits)
    expected = touched_cells(whole, plain, 1)
    assert expected.any()
    glanced = glance(MODEL, tiny.IDS, "blocks.1.attn.pattern", 0, edits=edits)
    for head, cells in enumerate(expected):
        found = touched_head(MODEL, tiny.IDS, "blocks.1.attn.pattern", head, glanced.trace, edits)
        assert found.dtype == torch.uint8 and torch.equal(found, cells)


def test_of_cross_attention_the_rows_are_the_targets_and_the_keys_the_sources() -> None:
    model = twins("t5")[0].model
    edits, target = [PaintMask(columns=[1], layer=0, heads=[1], stack="decoder", cross=True)], [3, 4]
    hook = "decoder.blocks.0.cross_attn.pattern"
    glanced = glance(model, [5, 6, 7], hook, 1, edits=edits, target=target)
    found = touched_head(model, [5, 6, 7], hook, 1, glanced.trace, edits, target=target)
    mask = 1 + STAGES.index("mask")
    assert found.tolist() == [[0, mask, 0], [0, mask, 0]]


def test_a_head_that_no_edit_acts_on_is_refused_with_a_sentence() -> None:
    edits = [PaintMask(columns=[1], layer=0)]
    glanced = glance(MODEL, tiny.IDS, "blocks.1.attn.pattern", 0, edits=edits)
    with pytest.raises(ValueError, match="no edit acts on the scores, mask or pattern of blocks.1.attn.pattern"):
        touched_head(MODEL, tiny.IDS, "blocks.1.attn.pattern", 0, glanced.trace, edits)
