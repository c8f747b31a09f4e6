import pytest
import torch
from torch import Tensor, nn

from engine.edits import Replace
from engine.model.layers.norm import make_norm
from engine.runtime.run import run
from tests.engine import tiny


def by_hand(x: Tensor, kind: str, eps: float) -> tuple[Tensor, Tensor]:
    """Each row over its scale, and the scale."""
    if kind == "layer":
        x = x - x.mean(-1, keepdim=True)
    scale = (x.pow(2).mean(-1) + eps).sqrt()
    return x / scale[..., None], scale


@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.parametrize("learned", ["all", "weight", "none"])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norm_and_its_scale_are_the_papers_formula(kind: str, learned: str, eps: float) -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm(kind=kind, eps=eps, learned=learned)))
    trace = run(model, tiny.IDS)
    normed, scale = by_hand(trace["blocks.1.resid_mid"], kind, eps)
    norm = model.blocks[1].norm2
    names = {"all": {"weight", "bias"} if kind == "layer" else {"weight"}, "weight": {"weight"}, "none": set()}[learned]
    assert {name for name, _ in norm.named_parameters()} == names
    expected = normed * (norm.weight if "weight" in names else 1) + (norm.bias if "bias" in names else 0)
    torch.testing.assert_close(trace["blocks.1.norm2.out"], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(trace["blocks.1.norm2.scale"], scale, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("learned", ["all", "weight", "none"])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_an_edited_scale_divides_instead_of_the_computed_one(kind: str, learned: str) -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm(kind=kind, learned=learned)))
    trace = run(model, tiny.IDS, edits=[Replace("blocks.0.norm1.scale", 2.0, {"pos": 3})])
    plain = run(model, tiny.IDS)
    normed, scale = by_hand(plain["embed.tokens"] + plain["embed.positions"], kind, 1e-5)
    scale[:, 3] /= 2.0
    norm = model.blocks[0].norm1
    expected = normed * scale[..., None].where(torch.arange(8)[:, None] == 3, torch.tensor(1.0))
    expected = expected if learned == "none" else expected * norm.weight
    expected = expected + (norm.bias if kind == "layer" and learned == "all" else 0)
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


def test_batch_norm_is_torchs_in_training_and_by_its_averages_afterwards() -> None:
    ours, theirs = make_norm(tiny.Norm("batch"), 6), nn.BatchNorm1d(6)
    for step in range(3):
        x = (2 * tiny.normal(4, 5, 6, seed=step) + 1).requires_grad_()
        out, expected = ours(x), theirs(x.flatten(0, 1)).view_as(x)
        torch.testing.assert_close(out, expected)
        grads = [
            torch.autograd.grad(y.square().sum(), [x, norm.weight]) for y, norm in ((out, ours), (expected, theirs))
        ]
        torch.testing.assert_close(*grads)
    ours.eval(), theirs.eval()
    assert not torch.equal(ours.mean, torch.zeros(6))
    torch.testing.assert_close(ours.mean, theirs.running_mean)
    torch.testing.assert_close(ours(x[:1, :1]), theirs(x[0, :1])[None])  # a batch of one token


def test_batch_norm_leaves_its_averages_when_it_is_looked_at_or_frozen() -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm("batch")))
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    run(model, tiny.IDS)
    model.train()(torch.tensor([tiny.IDS]))  # of which no weight learns
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())
