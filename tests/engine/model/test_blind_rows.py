"""A query that may see nothing attends to nothing, however that came about."""

import pytest
import torch

from engine.edits import DrawMask, Edit, Replace
from engine.model.layers.mask import Full, PaintedMask
from engine.runtime.run import run
from tests.engine import tiny

LENGTH = len(tiny.IDS)
NOTHING_AT_2 = [[query != 2 for _ in range(LENGTH)] for query in range(LENGTH)]
BY_EDIT: dict[str, Edit] = {
    "mask": DrawMask(1, NOTHING_AT_2),
    "scores": Replace("blocks.1.attn.scores", float("-inf"), {"pos": 2}),
    "masked scores": Replace("blocks.1.attn.masked_scores", float("-inf"), {"pos": 2}),
}


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("how", BY_EDIT)
def test_a_row_emptied_by_an_edit_is_zero(how: str, mask: str) -> None:
    model = tiny.model(tiny.config(attention={"mask": mask}))
    trace = run(model, tiny.IDS, edits=[BY_EDIT[how]])
    pattern = trace["blocks.1.attn.pattern"]
    assert (pattern[:, :, 2] == 0).all()
    assert (trace["blocks.1.attn.z"][:, 2] == 0).all()
    assert torch.isfinite(trace["logits"]).all()
    others = pattern[:, :, [query for query in range(LENGTH) if query != 2]]
    torch.testing.assert_close(others.sum(-1), torch.ones_like(others[..., 0]))


def test_a_row_emptied_by_a_mask_is_zero() -> None:
    trace = run(tiny.model(), tiny.IDS, mask=PaintedMask(torch.tensor(NOTHING_AT_2)))
    assert (trace.stack("attn.pattern")[:, :, :, 2] == 0).all()


def test_what_all_may_see_needs_no_copy_and_a_changed_mask_does() -> None:
    model = tiny.model(tiny.config(attention={"mask": "full"}))
    trace = run(model, tiny.IDS)
    for layer in range(3):
        scores, masked = (trace[f"blocks.{layer}.attn.{name}"] for name in ("scores", "masked_scores"))
        assert torch.equal(scores, masked)
        assert scores.data_ptr() == masked.data_ptr()
    drawn = run(model, tiny.IDS, edits=[DrawMask(1, NOTHING_AT_2)])
    assert drawn["blocks.1.attn.masked_scores"][:, :, 2].isneginf().all()
    assert torch.equal(run(model, tiny.IDS, mask=Full())["logits"], trace["logits"])
