import pytest
import torch
from torch import Tensor

from engine.edits import Replace
from engine.runtime.run import run
from tests.engine import tiny


def by_hand(x: Tensor, kind: str, eps: float) -> tuple[Tensor, Tensor]:
    """Each row over its scale, and the scale."""
    if kind == "layer":
        x = x - x.mean(-1, keepdim=True)
    scale = (x.pow(2).mean(-1) + eps).sqrt()
    return x / scale[..., None], scale


@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norm_and_its_scale_are_the_papers_formula(kind: str, eps: float) -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm(kind=kind, eps=eps)))
    trace = run(model, tiny.IDS)
    normed, scale = by_hand(trace["blocks.1.resid_mid"], kind, eps)
    norm = model.blocks[1].norm2
    expected = normed * norm.weight + (norm.bias if kind == "layer" else 0)
    torch.testing.assert_close(trace["blocks.1.norm2.out"], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(trace["blocks.1.norm2.scale"], scale, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_an_edited_scale_divides_instead_of_the_computed_one(kind: str) -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm(kind=kind)))
    trace = run(model, tiny.IDS, edits=[Replace("blocks.0.norm1.scale", 2.0, {"pos": 3})])
    plain = run(model, tiny.IDS)
    normed, scale = by_hand(plain["embed.tokens"] + plain["embed.positions"], kind, 1e-5)
    scale[:, 3] /= 2.0
    norm = model.blocks[0].norm1
    expected = normed * scale[..., None].where(torch.arange(8)[:, None] == 3, torch.tensor(1.0)) * norm.weight
    expected = expected + (norm.bias if kind == "layer" else 0)
    torch.testing.assert_close(trace["blocks.0.norm1.out"], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_looking_at_the_scale_does_not_change_the_result(kind: str) -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm(kind=kind)))
    seen = run(model, tiny.IDS, keep=["*.scale", "logits"])
    unseen = run(model, tiny.IDS, keep="logits")
    torch.testing.assert_close(seen["logits"], unseen["logits"], atol=1e-5, rtol=0)


def test_without_a_norm_the_sublayer_reads_the_stream_itself() -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm(kind="none")))
    trace = run(model, tiny.IDS)
    block = model.blocks[0]
    torch.testing.assert_close(trace["blocks.0.mlp.pre"], block.mlp.pre(trace["blocks.0.resid_mid"]), atol=1e-5, rtol=0)
    assert not [name for name in trace if "norm" in name]
