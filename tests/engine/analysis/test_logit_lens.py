"""The logit lens: every layer equals norm and head written out, and the last one is the model's own output."""

import math

import pytest
import torch
from torch.nn.functional import gelu, layer_norm

from engine import load, run
from engine.analysis.logit_lens import candidate_depth, lens_logits, logit_lens
from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature
from engine.inputs.samples import samples
from engine.model.config import OutputHead
from engine.runtime.trace import Trace
from tests.engine import tiny


def decoder(weights: dict, stream: torch.Tensor) -> torch.Tensor:
    stream = layer_norm(stream, stream.shape[-1:], weights["final_norm.weight"], weights["final_norm.bias"], 1e-5)
    return stream @ weights["embed.tokens.weight"].T


def masked_encoder(weights: dict, stream: torch.Tensor) -> torch.Tensor:
    stream = gelu(stream @ weights["head.dense.weight"].T + weights["head.dense.bias"])
    stream = layer_norm(stream, stream.shape[-1:], weights["head.norm.weight"], weights["head.norm.bias"], 1e-12)
    return stream @ weights["embed.tokens.weight"].T + weights["head.bias"]


def image_classifier(weights: dict, stream: torch.Tensor) -> torch.Tensor:
    cls = layer_norm(stream[:1], stream.shape[-1:], weights["final_norm.weight"], weights["final_norm.bias"], 1e-12)
    return cls @ weights["head.weight"].T + weights["head.bias"]


def first_run(checkpoint: Checkpoint) -> Trace:
    reading = next(samples(checkpoint, 1, 24))
    return run(checkpoint.model, reading.read, target=reading.target, edits=[AttentionTemperature(2.0)])


@pytest.mark.parametrize(
    ("name", "head"), [("stories", decoder), ("tales-bert", masked_encoder), ("digits-vit", image_classifier)]
)
def test_every_layer_is_norm_and_head_written_out(name: str, head) -> None:
    checkpoint = load(name)
    model, trace = checkpoint.model, first_run(checkpoint)
    layers = model.config.layers
    written_out = [head(model.state_dict(), trace[f"blocks.{layer}.resid_pre"][0]) for layer in range(layers)]
    logits = torch.stack([*written_out, trace["logits"][0].reshape(written_out[0].shape)])
    for layer in range(layers + 1):
        torch.testing.assert_close(lens_logits(model, trace, layer), logits[layer], atol=2e-4, rtol=1e-4)

    probability = logits.double().softmax(-1)
    lens = logit_lens(model, trace, 3)
    torch.testing.assert_close(lens.probability, probability.topk(3).values.float(), atol=1e-4, rtol=1e-3)
    end = probability[-1]
    kl = (end * (end.log() - probability.log())).sum(-1) / math.log(2)
    torch.testing.assert_close(lens.kl, kl.float(), atol=1e-3, rtol=1e-3)
    assert lens.kl[-1].count_nonzero() == 0

    row, id = len(end) - 1, int(lens.ids[-1, -1, 1])
    depth = candidate_depth(model, trace, row, id)
    torch.testing.assert_close(depth.probability, probability[:, row, id].float(), atol=1e-4, rtol=1e-3)
    assert depth.rank[-1] == 2
    for layer in range(layers):
        at = lens_logits(model, trace, layer)[row]
        assert depth.rank[layer] == 1 + (at > at[id]).sum()


@pytest.mark.parametrize("name", ["translate-en-fr", "infill", "digits-imagegpt"])
def test_the_stack_with_the_head_is_read(name: str) -> None:
    checkpoint = load(name)
    trace = first_run(checkpoint)
    before_last = lens_logits(checkpoint.model, trace, checkpoint.model.config.layers - 1)
    end = lens_logits(checkpoint.model, trace, checkpoint.model.config.layers)
    assert torch.equal(end, trace["logits"][0]) and before_last.shape == end.shape
    assert not torch.allclose(before_last, end)


def test_a_head_that_points_into_the_text_chooses_among_positions() -> None:
    model = tiny.model(tiny.config(head=OutputHead(kind="span", classes=2), attention={"mask": "full"}))
    trace = run(model, tiny.IDS)
    lens = logit_lens(model, trace, 2)
    assert lens.ids.shape == (4, 2, 2)
    torch.testing.assert_close(lens.probability[-1, 0, 0], trace["logits"][0, :, 0].softmax(0).max())


def test_what_has_no_probabilities_or_no_such_layer_is_refused_in_a_sentence() -> None:
    bare = tiny.model(tiny.config(head=OutputHead(kind="none")))
    with pytest.raises(ValueError, match="has no head"):
        logit_lens(bare, run(bare, tiny.IDS))
    model = tiny.model()
    trace = run(model, tiny.IDS)
    with pytest.raises(ValueError, match="from 0 to 3, got 4"):
        lens_logits(model, trace, 4)
    with pytest.raises(ValueError, match=r"row 0..7 and 0..10, got 8 and 0"):
        candidate_depth(model, trace, 8, 0)
