"""The positional share of a long text, step by step, against that of whole runs."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.analysis.positional import PositionalSteps, positional
from engine.analysis.summarised_run import run_reduced, streams
from engine.edits import AttentionTemperature, ChangeToken, Edit, Patch, SilenceHeads
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, Norm, OutputHead, Patches
from engine.runtime.run import run
from tests.engine import tiny

pytestmark = pytest.mark.long

IDS = [3, 1, 4, 1, 5, 9, 3, 1, 2]
WIDE = Attention(4, mask="full")
PAIR = tiny.config(encoder=Encoder(3, Attention(2, mask="full"), MLP(12)))
AFTER = tiny.config(norm=Norm(place="after"))
PICTURE = ModelConfig(
    1, 10, 16, 2, WIDE, MLP(20), embedding=Embedding(patches=Patches(12, 4, 1)), head=OutputHead("sequence", classes=3)
)


def steps(config: ModelConfig, side: str = "", edits: tuple[Edit, ...] = (), **more: Any) -> PositionalSteps:
    model = tiny.model(config)
    read = IDS if config is not PICTURE else tiny.normal(1, 1, 12, 12)
    target = [0, 7, 2, 7, 5] if side else None
    trace, _ = run_reduced(model, read, {}, streams(model), edits, target=target)
    return PositionalSteps(model, read, trace, target, side, **more)


@pytest.mark.parametrize(
    ("config", "side", "edits"),
    [
        (tiny.config("rotary", {"kv_heads": 2}), "", ()),
        (AFTER, "", ()),
        (PAIR, "encoder", ()),
        (PAIR, "decoder", ()),
        (PICTURE, "", ()),
        (tiny.config(), "", (SilenceHeads(layer=0, heads=[2], how="uniform"), AttentionTemperature(2.0))),
        (tiny.config(), "", (ChangeToken(2, 8), Patch("blocks.1.attn.pattern", at={"head": 1}, source_at={"head": 2}))),
    ],
)
def test_layer_by_layer_it_is_the_share_of_whole_runs(config: ModelConfig, side: str, edits: tuple[Edit, ...]) -> None:
    found = steps(config, side, edits, texts=3, seed=5)
    model, read = found.model, found.read
    trace = run(model, read, edits=edits, target=found.target)
    expected = positional(model, trace, side, texts=3, seed=5)
    assert found.steps == 4 * len(expected) and found.shares.shape == expected.shape
    for step in range(found.steps):
        assert (found.done, found.scored_layers) == (step, step // 4)
        assert found.shares[found.scored_layers :].isnan().all()
        assert not found.shares[: found.scored_layers].isnan().any()
        found.advance()
    torch.testing.assert_close(found.shares, expected)


def test_a_step_computes_one_layer_and_none_that_was_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = steps(replace(tiny.config(), layers=3), texts=2)
    seen: list[int] = []
    for layer, block in enumerate(found.model.blocks):  # type: ignore[arg-type]
        block.attn.register_forward_pre_hook(lambda *given, layer=layer: seen.append(layer))
    for _ in range(found.steps):
        found.advance()
    assert seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    found.advance()
    assert len(seen) == 9, "what is complete is computed no further"


def test_a_text_with_no_other_order_is_complete_at_once_and_has_no_share() -> None:
    model = tiny.model()
    trace, _ = run_reduced(model, [4, 4, 4], {}, streams(model))
    found = PositionalSteps(model, [4, 4, 4], trace)
    assert found.done == found.steps == 0 and found.scored_layers == model.config.layers and found.shares.isnan().all()
