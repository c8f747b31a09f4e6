"""What is written under edits: each token is that of the whole text so far, read again under them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
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
from engine.generation.generate import Step, generate
from engine.model.config import Encoder, Infill, OtherRotation, Positions
from engine.model.layers.embed import Embed
from engine.runtime.run import run
from tests.engine import tiny

PROMPT = [3, 1, 4, 1, 5]
OTHER = Source([7, 7, 0, 10, 8])
SEEN = (torch.rand(5, 5, generator=torch.Generator().manual_seed(3)) > 0.3).tolist()
WEIGHTS = torch.rand(5, 5, generator=torch.Generator().manual_seed(4)).softmax(-1).tolist()

# What any position may be read with, what is over once the prompt is read, and what must read all of it again.
EACH: list[Edit] = [
    SilenceHeads(1, [0, 2]),
    SilenceHeads(0, [1], how="uniform"),
    AttentionTemperature(2.0, heads=[1]),
    PresetMask("causal window", 2),
    SetPattern(1, "previous", [0]),
    SetPattern(None, "first", [3]),
    SetPattern(1, "position", [2], position=3),
    Scale("blocks.1.skip2", 0.5),
    Scale("*.norm1.strength", 0.0),
    Scale("blocks.0.attn.pattern", 3.0, {"key": 1}),
    Scale("final_norm.out", 0.5),
    Replace("blocks.1.mlp.out", 0.0),
    Replace("blocks.1.attn.z", [1.0, 2.0, 3.0, 4.0], {"head": 1}),
    Steer("blocks.1.resid_pre", OTHER, Source([1]), 2.0),
]
PROMPT_ONLY: list[Edit] = [
    Scale("blocks.1.resid_post", -2.0, {"pos": 3, "d_model": 0}),
    Scale("blocks.1.resid_post", -2.0, {"pos": -1, "d_model": 0}),
    Replace("blocks.0.attn.z", 0.0, {"pos": [0, 2]}),
    Replace("blocks.0.norm1.scale", [[1.0, 2.0, 3.0, 4.0, 5.0]]),
    ChangeToken(2, 8),
    DrawMask(1, SEEN),
    DrawPattern(0, WEIGHTS, [1]),
    PaintPattern(1, [[4, 0], [3, 3]], [0.9, 0.2], [1]),
    PaintPattern(None, [[2, 4]], [1.5], free=True),
    Patch("blocks.1.resid_post", OTHER),
    Patch("blocks.1.attn.z", OTHER, {"pos": [1, 4], "head": 2}),
    Patch("blocks.2.attn.pattern", at={"head": 0}, source_hook="blocks.0.attn.pattern", source_at={"head": 1}),
    Steer("blocks.1.resid_pre", OTHER, Source([1]), 2.0, at={"pos": [0]}),
]
AGAIN: list[Edit] = [
    SilenceHeads(1, [0, 2], how="mean"),
    PresetMask("full"),
    PresetMask("window", 3, 1),
    PaintMask(cells=[[1, 4]], columns=[2]),
    PaintMask(rows=[0], to="allow"),
    SwapPositions(0, 3),
    DropPositions(),
    DropPositions([1, 2]),
    ShiftPositions(-2, [4]),
    Scale("logits", 3.0, {"pos": 4}),
    Scale("final_norm.out", -1.0, {"pos": 4, "d_model": 0}),
]
KINDS = {
    **{kind: tiny.config(kind) for kind in ("learned", "sinusoidal", "rotary", "alibi", "relative", "none")},
    "rotary, two kinds": tiny.config(Positions("rotary", other=OtherRotation((1,), 9.0))),
    "rotary, some layers": tiny.config(Positions("rotary", other=OtherRotation((1,)))),
}


@contextmanager
def tokens_read() -> Iterator[list[int]]:
    """How many at a time."""
    counts: list[int] = []
    real = Embed.read

    def counted(self: Embed, ids: Tensor, *more: Any) -> Tensor:
        counts.append(ids.shape[1])
        return real(self, ids, *more)

    with patch.object(Embed, "read", counted):
        yield counts


def steps(checkpoint: Checkpoint, *edits: Edit, count: int = 6, prompt: list[int] = PROMPT, **options) -> list[Step]:
    return list(generate(checkpoint, prompt, count, temperature=2.0, seed=3, edits=edits, stop_at_end=False, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_is_that_of_the_whole_text_read_again_under_the_edits_of_the_step(
    kind: str, subtests: pytest.Subtests
) -> None:
    checkpoint = Checkpoint(tiny.model(KINDS[kind]))
    plain = steps(checkpoint)
    for edit in [*EACH, *PROMPT_ONLY, *AGAIN]:
        if kind == "none" and "position_ids" in str(edit.touches()):
            continue  # it has no places to change; "rotary" does
        with subtests.test(edit=edit):
            edited = steps(checkpoint, edit)
            assert len(edited) == 6
            for step in edited:
                whole = run(checkpoint.model, list(step.before), edits=step.edits)["logits"][0, -1]
                torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=1e-4)
            assert any(not torch.allclose(a.logits, b.logits, atol=1e-4) for a, b in zip(plain, edited, strict=True))


SIZED = (DrawMask, DrawPattern, Patch)
UNSIZED = [edit for edit in [*EACH, *PROMPT_ONLY, *AGAIN] if not isinstance(edit, SIZED)]
UNSIZED = [edit for edit in UNSIZED if "'pos': -1" not in str(edit) and "[[1.0" not in str(edit)]


def test_what_does_not_have_the_size_of_the_prompt_may_be_given_to_a_run_as_it_is(subtests: pytest.Subtests) -> None:
    checkpoint = Checkpoint(tiny.model())
    for edit in UNSIZED:
        with subtests.test(edit=edit):
            for step in steps(checkpoint, edit):
                whole = run(checkpoint.model, list(step.before), edits=[edit])["logits"][0, -1]
                torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=1e-4)


def test_a_cache_still_holds_what_was_read(subtests: pytest.Subtests) -> None:
    checkpoint = Checkpoint(tiny.model())
    for edit in [*EACH, *PROMPT_ONLY]:
        with subtests.test(edit=edit), tokens_read() as counts:
            steps(checkpoint, edit)
            generation = counts[-6:]
            assert generation == [5, 1, 1, 1, 1, 1]


def test_all_is_read_again_where_what_was_read_depends_on_what_follows(subtests: pytest.Subtests) -> None:
    checkpoint = Checkpoint(tiny.model())
    for edit in AGAIN:
        with subtests.test(edit=edit), tokens_read() as counts:
            steps(checkpoint, edit)
            assert counts == [5, 6, 7, 8, 9, 10]


def grown(drawn: list[list[bool]], length: int) -> list[list[bool]]:
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    causal[:5, :5] = torch.tensor(drawn)
    return causal.tolist()


def test_behind_a_drawn_mask_tokens_see_what_the_model_s_own_mask_allows() -> None:
    checkpoint = Checkpoint(tiny.model())
    for step in steps(checkpoint, DrawMask(1, SEEN)):
        edit = DrawMask(1, grown(SEEN, len(step.before)))
        whole = run(checkpoint.model, list(step.before), edits=[edit])["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=1e-4)


def test_the_last_position_is_that_of_the_prompt() -> None:
    checkpoint = Checkpoint(tiny.model())
    last, fourth = (steps(checkpoint, Scale("blocks.1.resid_post", 2.0, {"pos": p})) for p in (-1, 4))
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(last, fourth, strict=True))


def test_values_of_this_text_are_the_prompt_s() -> None:
    checkpoint = Checkpoint(tiny.model())
    edit = Patch("blocks.2.attn.z", at={"head": 0}, source_hook="blocks.0.attn.z", source_at={"head": 1})
    taken = run(checkpoint.model, PROMPT)["blocks.0.attn.z"][0, :, 1]
    for step in steps(checkpoint, edit):
        by_hand = Replace("blocks.2.attn.z", taken.tolist(), {"head": 0, "pos": [0, 1, 2, 3, 4]})
        whole = run(checkpoint.model, list(step.before), edits=[by_hand])["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=1e-4)


def test_edits_of_both_sorts_go_together() -> None:
    checkpoint = Checkpoint(tiny.model(tiny.config("rotary")))
    hook = "blocks.1.mlp.out"
    edits = [Scale(hook, 2.0), Replace(hook, 1.0, {"pos": 2}), Scale(hook, 3.0)]
    for step in steps(checkpoint, *edits):
        whole = run(checkpoint.model, list(step.before), edits=edits)["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=1e-4)


TWO = tiny.config(
    "relative", encoder=Encoder(2, replace(tiny.CONFIG.attention, mask="full"), tiny.MLP(12), start=1), tied=True
)


@pytest.mark.parametrize(
    "edit",
    [
        SilenceHeads(1, [0], stack="encoder"),
        SilenceHeads(1, [0], cross=True),
        PresetMask("causal", layer=1, stack="encoder"),
        DrawMask(1, SEEN, stack="encoder"),
        DrawMask(1, [row[:3] for row in SEEN[:3]], stack="decoder"),
        DrawPattern(0, [[0.0, 0.0, 1.0, 0.0, 0.0]] * 3, cross=True),
        PaintMask(columns=[1], cross=True, layer=1),
        PaintPattern(1, [[2, 4], [0, 1]], [0.75, 1.0], [0, 2], cross=True),
        SetPattern(1, "position", [1], cross=True, position=4),
        Scale("encoder.blocks.1.resid_post", -2.0, {"pos": -1, "d_model": 0}),
        Patch("encoder.blocks.1.resid_post", OTHER),
        Patch("decoder.blocks.1.cross_attn.k", OTHER),
        Patch("decoder.blocks.1.resid_post", Source([1, 2], [1, 5, 5])),
        SwapPositions(0, 2, stack="encoder"),
        SwapPositions(0, 2, stack="decoder"),
        ChangeToken(1, 9, stack="decoder"),
        Scale("decoder.blocks.0.skip_cross", 0.5),
    ],
    ids=str,
)
def test_a_target_is_written_under_edits_of_either_stack(edit: Edit) -> None:
    checkpoint = Checkpoint(tiny.model(TWO))
    plain, edited = (steps(checkpoint, *edits, target=[1, 6, 8]) for edits in ((), (edit,)))
    for step in edited:
        whole = run(checkpoint.model, PROMPT, target=list(step.before), edits=step.edits)["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(edited[1].logits, plain[1].logits, atol=1e-4)


@pytest.mark.parametrize(("positions", "axes"), [("learned", 2), ("rotary", 2), ("rotary", 1)])
@pytest.mark.parametrize("edit", [SilenceHeads(1, [0]), DropPositions(), Scale("blocks.0.mlp.out", 2.0, {"pos": 1})])
def test_a_gap_is_filled_under_edits(edit: Edit, positions: str, axes: int) -> None:
    config = replace(tiny.config(attention={"mask": "prefix"}), infill=Infill(mask=8, start=9))
    checkpoint = Checkpoint(tiny.model(replace(config, positions=Positions(positions, axes=axes))))  # type: ignore[arg-type]
    for step in steps(checkpoint, edit, prompt=[3, 8, 4]):
        whole = run(checkpoint.model, list(step.before), edits=[edit])["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=1e-4)


def test_an_edit_that_does_not_fit_the_prompt_says_so() -> None:
    checkpoint = Checkpoint(tiny.model())
    with pytest.raises(ValueError, match=r"shape \(pos, key\)=\(5, 5\), got \(2, 2\)"):
        steps(checkpoint, DrawMask(0, [[True, True], [True, True]]))
    with pytest.raises(ValueError, match="pos of blocks.0.mlp.out must be in 0..4, got 5"):
        steps(checkpoint, Scale("blocks.0.mlp.out", 2.0, {"pos": 5}))


def test_the_edits_of_a_step_are_written_as_they_were_given() -> None:
    edits = [Patch("blocks.1.resid_post", OTHER), SilenceHeads(1, [0])]
    step = steps(Checkpoint(tiny.model()), *edits, count=1)[0]
    assert [edit.to_dict() for edit in step.edits] == [edit.to_dict() for edit in edits]


def test_two_generations_side_by_side_do_not_see_each_other_s_edits() -> None:
    checkpoint = Checkpoint(tiny.model())
    edit = SilenceHeads(1, [0, 1])
    alone = [step.id for step in steps(checkpoint, edit)], [step.id for step in steps(checkpoint)]
    options = {"temperature": 2.0, "seed": 3, "stop_at_end": False}
    pair = generate(checkpoint, PROMPT, 6, edits=[edit], **options), generate(checkpoint, PROMPT, 6, **options)
    together = [(a.id, b.id) for a, b in zip(*pair, strict=True)]
    assert together == list(zip(*alone, strict=True))
