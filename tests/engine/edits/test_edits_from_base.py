"""Every kind of edit in every kind of model: the same from a base as without one, and only from its layer on."""

from dataclasses import replace

import pytest
import torch

from engine.edits import (
    AttentionTemperature,
    ChangeToken,
    DrawMask,
    DrawPattern,
    DropPositions,
    Edit,
    PaintMask,
    PaintPattern,
    Patch,
    PresetMask,
    Replace,
    Scale,
    SetPattern,
    ShiftPositions,
    SilenceHeads,
    Source,
    Steer,
    SwapPositions,
)
from engine.model.config import Encoder, ModelConfig, Norm, OtherRotation, Positions
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.runtime.test_base import blocks_computed

SEEN = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
OTHER = Source([7, 7, 0, 10, 8, 2, 2, 1])
EDITS: list[tuple[int, Edit]] = [
    (1, SilenceHeads(1, [0])),
    (2, AttentionTemperature(0.5, 2)),
    (1, DrawMask(1, (SEEN > 0.4).tolist())),
    (0, PresetMask("window", 2)),
    (2, PresetMask("causal window", 2, 2, [1])),
    (1, PaintMask([[2, 5]], [1], [3], layer=1)),
    (1, SetPattern(1, "previous", [2])),
    (2, SetPattern(2, "uniform")),
    (1, SetPattern(1, "position", position=2)),
    (1, PaintPattern(1, [[5, 1], [3, 0]], [0.5, 1.0], [1, 3])),
    (2, DrawPattern(2, SEEN.softmax(-1).tolist(), [0, 1])),
    (0, SwapPositions(1, 4)),
    (0, DropPositions()),
    (0, ShiftPositions(1, [2])),
    (0, ChangeToken(3, 10, 0.5)),
    (1, Patch("blocks.1.mlp.out", OTHER, {"pos": [1, 5]})),
    (0, Patch("blocks.0.attn.pattern", at={"head": 1}, source_hook="blocks.2.attn.pattern", source_at={"head": 0})),
    (2, Steer("blocks.2.resid_pre", OTHER, Source([1, 2]), 4.0)),
    (1, Scale("blocks.1.skip1", 0.0)),
    (2, Scale("blocks.2.norm2.strength", 0.0, {"pos": 3})),
    (1, Scale("blocks.1.mlp.out", 0.0)),
    (2, Replace("blocks.2.attn.z", 0.0, {"pos": 1})),
    (3, Scale("logits", 0.5)),
]
CONFIGS: dict[str, ModelConfig] = {kind: tiny.config(kind) for kind in ("learned", "sinusoidal", "rotary", "alibi")}
CONFIGS |= {"relative": tiny.config("relative"), "after": tiny.config(norm=Norm(place="after"))}
CONFIGS["rotary, two kinds"] = tiny.config(Positions("rotary", other=OtherRotation((1,), 9.0)))
CONFIGS["full"] = tiny.config("rotary", {"mask": "full", "kv_heads": 2})
PADDED = [tiny.IDS, tiny.IDS[:6]]


@pytest.mark.parametrize("kind", CONFIGS)
def test_an_edit_gives_the_same_from_a_base_and_computes_no_block_before_it(
    kind: str, subtests: pytest.Subtests
) -> None:
    model = tiny.model(CONFIGS[kind])
    base = run(model, tiny.IDS)
    for first, edit in EDITS:
        with subtests.test(edit=edit):
            whole = run(model, tiny.IDS, edits=[edit])
            with blocks_computed() as computed:
                trace = run(model, tiny.IDS, edits=[edit], base=base)
            runs = 2 if isinstance(edit, Steer) else int(isinstance(edit, Patch) and edit.source is not None)
            assert len(computed) == 3 - first + 3 * runs
            assert trace.start == first
            for name in whole:
                torch.testing.assert_close(
                    trace[name], whole[name], atol=1e-5, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}"
                )
            assert not torch.allclose(whole["logits"], base["logits"], atol=1e-4)
            back = run(model, tiny.IDS, base=trace)
            assert all(torch.equal(back[name], base[name]) for name in base)


OF_ANY_LENGTH = [edit for _, edit in EDITS if not isinstance(edit, DrawMask | DrawPattern)]


@pytest.mark.parametrize("edit", OF_ANY_LENGTH, ids=lambda one: type(one).__name__)
def test_an_edit_of_a_padded_batch_is_that_of_its_texts_alone(edit: Edit) -> None:
    model = tiny.model(CONFIGS["learned"])
    base = run(model, PADDED)
    together = run(model, PADDED, edits=[edit])
    again = run(model, PADDED, edits=[edit], base=base)
    torch.testing.assert_close(again["logits"], together["logits"], atol=1e-5, rtol=1e-5)
    for row, text in enumerate(PADDED):
        alone = run(model, text, edits=[edit])["logits"]
        torch.testing.assert_close(together["logits"][row, : len(text)], alone[0], atol=1e-5, rtol=1e-5)


TWO = tiny.config("relative", encoder=Encoder(2, replace(tiny.CONFIG.attention, mask="full"), tiny.MLP(12)))
OF_TWO: list[tuple[int, Edit]] = [
    (1, PresetMask("causal", layer=1, stack="encoder")),
    (0, PresetMask("full")),
    (3, PresetMask("window", 2, 1, stack="decoder")),
    (4, PaintMask(columns=[2], layer=2, cross=True)),
    (3, SetPattern(1, "first", [0], cross=True)),
    (0, SwapPositions(0, 2, stack="encoder")),
    (2, SwapPositions(0, 2, stack="decoder")),
    (3, DropPositions(layer=1, stack="decoder")),
    (0, ChangeToken(1, 4, stack="encoder")),
    (2, ChangeToken(1, 4, stack="decoder")),
    (1, Scale("encoder.blocks.1.skip2", 0.5)),
    (4, Scale("decoder.blocks.2.skip_cross", 0.0)),
    (2, Scale("decoder.blocks.0.norm_cross.strength", 0.0)),
    (3, Patch("decoder.blocks.1.cross_attn.k", Source(tiny.IDS[:6], [1, 2]))),
]


@pytest.mark.parametrize(("first", "edit"), OF_TWO, ids=str)
def test_in_two_stacks_too(first: int, edit: Edit) -> None:
    model = tiny.model(TWO)
    source, target = [3, 9, 4, 1, 5, 2], [0, 6, 8, 10]
    base = run(model, source, target=target)
    whole = run(model, source, target=target, edits=[edit])
    trace = run(model, source, target=target, edits=[edit], base=base)
    assert trace.start == first
    for name in whole:
        torch.testing.assert_close(trace[name], whole[name], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(whole["logits"], base["logits"], atol=1e-4)


def test_a_run_from_nothing_starts_at_the_first_block_and_one_that_changes_nothing_behind_the_last() -> None:
    model = tiny.model()
    base = run(model, tiny.IDS)
    assert base.start == 0
    assert run(model, tiny.IDS, base=base).start == 4
