"""Token-to-token tables against runs whose stream is the token alone, and copying against the whole vocabulary."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import load
from engine.analysis import circuits
from engine.analysis.circuits import qk, top_outputs
from engine.analysis.copying import copying_scores
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, Norm, OutputHead, Patches
from engine.model.layers.norm import BatchNorm
from engine.model.transformer import Transformer
from engine.runtime.run import run
from tests.engine import tiny

WIDE = Attention(4, mask="full")
IDS = tiny.IDS
EVERY = list(range(11))
ONE_STACK = {
    "gpt": tiny.config("none"),
    "grouped, rms, q and k normalised": replace(
        tiny.config("none", {"kv_heads": 2, "qk_norm": "each", "scale": 0.7}, tied=False), norm=Norm("rms")
    ),
    "normalised all together": tiny.config("none", {"kv_heads": 2, "qk_norm": "all"}, norm=Norm("rms", "around")),
    "norms of outputs": tiny.config("none", {"qk_norm": "all"}, norm=Norm("rms", "output")),
    "norms that learn nothing, scaled": tiny.config("none", norm=Norm("rms", learned="none"), residual_scale=0.3),
    "norms without bias, scaled": tiny.config("none", norm=Norm(learned="weight"), residual_scale=2.0),
    "no biases, wide heads": tiny.config("none", {"bias": False, "out_bias": False, "d_head": 6}),
    "norms behind": tiny.config("none", norm=Norm(place="after"), embedding=Embedding(norm=True, scale=2.0)),
    "narrow tokens": tiny.config("none", embedding=Embedding(width=6, mapped="tokens"), head=OutputHead(scale=0.5)),
    "narrow after a norm": tiny.config("none", embedding=Embedding(width=6, norm=True)),
    "fewer outputs": tiny.config("none", tied=False, head=OutputHead(outputs=10, bias=True)),
    "batch norm": tiny.config("none", norm=Norm("batch")),
    "no norm": tiny.config("none", norm=Norm("none", final=False)),
}
PAIRS = {
    "before": tiny.config("none", encoder=Encoder(1, WIDE, MLP(12))),
    "after": tiny.config("none", encoder=Encoder(1, WIDE, MLP(12)), norm=Norm(place="after")),
}


def quiet(model: Transformer, layer: int) -> Transformer:
    """The first `layer` blocks add nothing, so that the next one reads tokens alone."""
    with torch.no_grad():
        for block in model.blocks[:layer]:
            for linear in (block.attn.out, block.mlp.out):
                linear.weight.zero_()
                if linear.bias is not None:
                    linear.bias.zero_()
    return model


def ov(model: Transformer, layer: int, head: int, sources: Sequence[int], **of: Any) -> Tensor:
    """The whole table, source output."""
    found = top_outputs(model, layer, head, sources, model.config.outputs, **of)
    return torch.empty_like(found.values).scatter(1, found.tokens, found.values)


def without_scale(norm: Any, x: Tensor) -> Tensor:
    """What a norm does, its bias and the division by what the text decides left out."""
    if isinstance(norm, BatchNorm):
        return norm(x) - norm(torch.zeros_like(x))
    if type(norm).__name__ == "LayerNorm":
        x = x - x.mean(-1, keepdim=True)
    return x if getattr(norm, "weight", None) is None else x * norm.weight


def to_tokens(model: Transformer, written: Tensor, layer: int) -> Tensor:
    block, written = model.blocks[layer], written * model.config.residual_scale
    if model.config.norm.place in ("around", "output"):
        written = without_scale(block.norm1_after, written)
    behind = model.config.norm.place == "after"
    written = without_scale(model.blocks[-1].norm2 if behind else model.final_norm, written)
    if model.head.narrow is not None:
        written = written @ model.head.narrow.weight.T
    table = model.embed.tokens.weight if model.head.weight is None else model.head.weight
    return written * model.config.head.scale @ table.T


@pytest.mark.parametrize("name", ONE_STACK)
def test_qk_is_the_score_of_a_model_that_knows_no_positions(name: str) -> None:
    layer = 0 if ONE_STACK[name].norm.place == "after" else 1
    model = quiet(tiny.model(ONE_STACK[name]), layer)
    scores = run(model, [IDS])[f"blocks.{layer}.attn.scores"][0]
    for head in range(4):
        torch.testing.assert_close(qk(model, layer, head, IDS, IDS), scores[head], atol=1e-5, rtol=1e-4)
    assert qk(model, layer, 0, IDS).shape == (len(IDS), 11)


@pytest.mark.parametrize("name", ONE_STACK)
def test_ov_is_what_a_head_writes_for_a_text_of_one_token(name: str) -> None:
    layer = 0 if ONE_STACK[name].norm.place == "after" else 1
    model = quiet(tiny.model(ONE_STACK[name]), layer)
    attention = model.blocks[layer].attn
    keep = f"blocks.{layer}.attn.head_out"
    written = torch.cat([run(model, [[id]], keep=keep)[keep][0] for id in EVERY])  # source head d_model
    for head in range(4):
        group = head * attention.kv_heads // 4
        constant = 0.0
        if attention.v.bias is not None:
            bias = attention.v.bias.view(attention.kv_heads, -1)[group]
            constant = attention.out.weight.view(16, 4, -1)[:, head] @ bias
        expected = to_tokens(model, written[:, head] - constant, layer)
        found = ov(model, layer, head, EVERY)
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)
        some = ov(model, layer, head, [4, 2])
        torch.testing.assert_close(some, expected[[4, 2]], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", PAIRS)
def test_circuits_across_read_the_source_through_the_encoders_last_norm(name: str) -> None:
    model = tiny.model(PAIRS[name])
    if name == "before":  # behind the sublayers, no quiet block leaves the stream as it is
        quiet(model.encoder, 1)
        with torch.no_grad():
            attention = model.decoder.blocks[0].attn.out
            attention.weight.zero_()
            attention.bias.zero_()
        scores = run(model, [IDS], target=[[2, 7, 5]])["decoder.blocks.0.cross_attn.scores"][0]
        for head in range(4):
            found = qk(model, 0, head, [2, 7, 5], IDS, "decoder", crosses=True)
            torch.testing.assert_close(found, scores[head], atol=1e-5, rtol=1e-4)
    table = model.encoder.embed.tokens.weight
    last = model.decoder.final_norm if name == "before" else model.decoder.blocks[-1].norm2
    read = model.encoder.final_norm(table) if name == "before" else table
    cross = model.decoder.blocks[1].cross_attn
    written = read @ cross.v.weight.view(4, 4, 16)[2].T @ cross.out.weight.view(16, 4, 4)[:, 2].T
    expected = without_scale(last, written) @ table.T
    torch.testing.assert_close(ov(model, 1, 2, EVERY, side="decoder", crosses=True), expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [2, 3, 100])
def test_the_best_are_those_of_the_whole_table(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    model = tiny.model()
    expected = ov(model, 2, 1, IDS).topk(4, dim=1)
    monkeypatch.setattr(circuits, "SLICE", size)
    monkeypatch.setattr(circuits, "TOGETHER", size)
    found = top_outputs(model, 2, 1, IDS, k=4)
    torch.testing.assert_close(found.values, expected.values)
    assert torch.equal(found.tokens, expected.indices)


def score(whole: Tensor) -> float:
    values = torch.linalg.eigvals(whole.double())
    return float(values.sum().real / values.abs().sum())


@pytest.mark.parametrize("name", ["gpt", "grouped, rms, q and k normalised", "narrow tokens", "norms behind"])
def test_copying_is_that_of_the_eigenvalues_of_the_whole_table(name: str) -> None:
    model = tiny.model(ONE_STACK[name])
    for block in model.blocks:
        if hasattr(block.norm1, "bias"):
            block.norm1.bias.data.zero_()
    found = copying_scores(model)
    for layer in range(3):
        for head in range(4):
            assert found[layer, head].item() == pytest.approx(score(ov(model, layer, head, EVERY)), abs=1e-4)


def test_copying_of_gpt_is_that_of_the_matrices_multiplied_out() -> None:
    model = tiny.model(tiny.config("learned", tied=False))
    block, E, U = model.blocks[1], model.embed.tokens.weight.double(), model.head.weight.double()
    read = (E - E.mean(1, keepdim=True)) / (E.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt() * block.norm1.weight
    W_V, W_O = block.attn.v.weight.double().view(4, 4, 16)[3], block.attn.out.weight.double().view(16, 4, 4)[:, 3]
    written = read @ W_V.T @ W_O.T
    whole = (written - written.mean(1, keepdim=True)) * model.final_norm.weight @ U.T
    assert copying_scores(model)[1, 3].item() == pytest.approx(score(whole), abs=1e-4)


def test_copying_across_is_that_of_the_whole_table_too() -> None:
    model = tiny.model(PAIRS["before"])
    model.encoder.final_norm.bias.data.zero_()
    found = copying_scores(model, "decoder", crosses=True)
    assert found.shape == (3, 4)
    whole = ov(model, 2, 0, EVERY, side="decoder", crosses=True)
    assert found[2, 0].item() == pytest.approx(score(whole), abs=1e-4)


def test_a_head_that_writes_what_it_reads_copies_and_one_that_takes_it_away_does_not() -> None:
    model = tiny.model(tiny.config("none", norm=Norm("none", final=False)))
    attention = model.blocks[0].attn
    with torch.no_grad():
        attention.v.weight.copy_(torch.eye(16))
        attention.out.weight.copy_(torch.diag(torch.tensor([1.0] * 4 + [-1.0] * 4 + [0.0] * 8)))
    found = copying_scores(model)[0]
    assert found[:2].tolist() == pytest.approx([1, -1], abs=1e-5)
    assert found[2:].isnan().all()


def test_the_shipped_induction_heads_copy_what_they_look_at() -> None:
    checkpoint = load("induction")
    letters = list(range(2, 64))
    found = copying_scores(checkpoint.model)
    assert found[1].min() > 0.99 and found[0].max() < 0.6
    best = top_outputs(checkpoint.model, 1, 3, letters, k=1)
    assert (best.tokens[:, 0] == torch.tensor(letters)).float().mean() > 0.95
    whole = ov(checkpoint.model, 1, 3, range(64))
    assert found[1, 3].item() == pytest.approx(score(whole), abs=0.01)  # but for the bias of the norm


PICTURE = ModelConfig(
    1, 10, 16, 2, WIDE, MLP(20), embedding=Embedding(patches=Patches(12, 4, 1)), head=OutputHead("none")
)


@pytest.mark.parametrize(
    ("config", "side", "message"),
    [
        (PICTURE, "", "reads pictures"),
        (tiny.config(head=OutputHead("masked")), "", "a layer with an activation"),
        (tiny.config(head=OutputHead("token", classes=2)), "", "predicts no tokens"),
        (PAIRS["before"], "encoder", "ask for the heads of the decoder"),
        (PAIRS["before"], "", "side must be 'encoder' or 'decoder'"),
    ],
)
def test_where_no_circuit_ends_in_tokens_the_reason_is_said(config: ModelConfig, side: str, message: str) -> None:
    model = tiny.model(config)
    with pytest.raises(ValueError, match=message):
        ov(model, 0, 0, [0], side=side)
    if side or config.encoder is None:
        assert copying_scores(model, side).isnan().all()


def test_queries_and_keys_meet_where_no_tokens_are_written() -> None:
    assert qk(tiny.model(tiny.config(head=OutputHead("masked"))), 0, 0, IDS).shape == (8, 11)
    assert qk(tiny.model(PAIRS["before"]), 0, 0, IDS, side="encoder").shape == (8, 11)
    with pytest.raises(ValueError, match="no table of tokens"):
        qk(tiny.model(PICTURE), 0, 0, [0])


def test_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model()
    with pytest.raises(ValueError, match=r"0 to 10, got \[11\]"):
        ov(model, 0, 0, [3, 11])
    with pytest.raises(ValueError, match="got none"):
        qk(model, 0, 0, [])
    with pytest.raises(ValueError, match="head must be 0 to 3, got 4"):
        qk(model, 0, 4, [1])
    with pytest.raises(ValueError, match="k must be 1 to 11"):
        top_outputs(model, 0, 0, [1], k=12)
    monkeypatch.setattr(circuits, "CELLS", 20)
    with pytest.raises(ValueError, match="at most 20 cells, got 2 x 11"):
        qk(model, 0, 0, [1, 2])
