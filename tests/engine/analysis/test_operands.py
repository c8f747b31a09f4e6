"""The weights behind an element, applied to the inputs in the trace, give the element."""

from collections.abc import Callable

import pytest
import torch

from engine.analysis.operands import operands
from engine.model.config import MLP, Attention, Embedding, Head, ModelConfig, Norm, Patches, Positions
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run


def model_of(**parts: object) -> Transformer:
    given = {"attention": Attention(heads=4, kv_heads=2), "mlp": MLP(24, "silu", gated=True), **parts}
    config = ModelConfig(vocab_size=19, context=8, d_model=16, layers=2, **given)  # type: ignore[arg-type]
    return initialise(Transformer(config), seed=1).eval()


IDS = [3, 1, 4, 1, 5]
CONFIGS: dict[str, Callable[[], Transformer]] = {
    "learned, LayerNorm": lambda: model_of(),
    "rotary, RMSNorm, untied": lambda: model_of(positions=Positions("rotary"), norm=Norm("rms"), tied=False),
    "sinusoidal, no bias": lambda: model_of(
        positions=Positions("sinusoidal"), attention=Attention(heads=4, bias=False, out_bias=False)
    ),
}
INPUTS = {"attn.q": "norm1.out", "attn.k": "norm1.out", "attn.v": "norm1.out", "attn.out": "attn.z"}
INPUTS |= {"mlp.pre": "norm2.out", "mlp.up": "norm2.out", "mlp.out": "mlp.post"}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_projection_is_its_inputs_times_its_weights(name: str) -> None:
    model = CONFIGS[name]()
    trace = run(model, IDS)
    for part, source in INPUTS.items():
        made = trace[f"blocks.1.{part}"][0].flatten(1)
        read = trace[f"blocks.1.{source}"][0].flatten(1)
        for unit in (0, made.shape[1] - 1):
            found = operands(model, f"blocks.1.{part}", unit)
            assert torch.allclose(read @ found.weights + (found.bias or 0), made[:, unit], atol=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_embeddings_norms_and_rotations_come_from_their_weights(name: str) -> None:
    model = CONFIGS[name]()
    trace = run(model, IDS)
    final = trace["final_norm.out"][0]
    assert torch.allclose(final @ operands(model, "logits", 7).weights, trace["logits"][0, :, 7], atol=1e-6)
    assert operands(model, "embed.tokens", 2, row=IDS[3]).weights == trace["embed.tokens"][0, 3, 2]
    if "embed.positions" in trace:
        assert operands(model, "embed.positions", 5, row=3).weights == trace["embed.positions"][0, 3, 5]
    norm = operands(model, "blocks.0.norm1.out", 3)
    x, scale = trace["blocks.0.resid_pre"][0], trace["blocks.0.norm1.scale"][0]
    centred = x[:, 3] - (x.mean(-1) if norm.bias is not None else 0)
    assert torch.allclose(
        centred / scale * norm.weights + (norm.bias or 0), trace["blocks.0.norm1.out"][0, :, 3], atol=1e-6
    )
    if "blocks.0.attn.q_rotated" in trace:
        cos, sin = operands(model, "blocks.0.attn.q_rotated", 1, row=3).weights
        q = trace["blocks.0.attn.q"][0, 3, 0]
        assert torch.allclose(q[1] * cos - q[1 + 2] * sin, trace["blocks.0.attn.q_rotated"][0, 3, 0, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("hook", "unit", "row"),
    [("blocks.0.attn.q", 16, 0), ("blocks.0.attn.q", -1, 0), ("logits", 19, 0), ("embed.tokens", 0, 19), ("head", 0, 0),
     ("blocks.0.attn.pattern", 0, 0), ("blocks.9.attn.q", 0, 0), ("__class__", 0, 0)],
)  # fmt: skip
def test_an_element_without_weights_is_one_sentence(hook: str, unit: int, row: int) -> None:
    with pytest.raises(ValueError, match="must be in|not made with weights"):
        operands(model_of(), hook, unit, row)


WHOLE = Attention(heads=4, mask="full")
HEADED: dict[str, tuple[Callable[[], Transformer], dict[str, str]]] = {
    "narrow vectors, all mapped; a dense layer before one class": (
        lambda: model_of(
            attention=WHOLE, embedding=Embedding(segments=2, norm=True, width=6), head=Head("token", 1, dense=True)
        ),
        {"embed.mapped": "embed.norm.out", "head.pre": "final_norm.out", "logits": "head.post"},
    ),
    "narrow tokens mapped, and the stream mapped back": (
        lambda: model_of(norm=Norm(place="after"), embedding=Embedding(width=6, mapped="tokens")),
        {"embed.mapped": "embed.tokens", "head.narrow": "blocks.1.norm2.out", "logits": "head.narrow"},
    ),
    "narrow vectors behind a masked head": (
        lambda: model_of(attention=WHOLE, embedding=Embedding(width=6), head=Head("masked", bias=True)),
        {"embed.mapped": "embed.sum", "head.pre": "final_norm.out", "logits": "head.norm.out"},
    ),
    "classes of narrow vectors, at each position": (
        lambda: model_of(embedding=Embedding(width=6, mapped="tokens"), head=Head("token", 3, dense=True, narrow=True)),
        {"head.narrow": "final_norm.out", "head.pre": "head.narrow", "logits": "head.post"},
    ),
    "nothing behind the map back": (
        lambda: model_of(embedding=Embedding(width=6, mapped="tokens"), head=Head("none", narrow=True)),
        {"head.narrow": "final_norm.out"},
    ),
    "where an answer stands": (
        lambda: model_of(attention=WHOLE, head=Head("span")),
        {"logits": "final_norm.out"},
    ),
    "layers that share a block": (
        lambda: model_of(distinct=1),
        {"blocks.1.attn.q": "blocks.1.norm1.out", "blocks.1.mlp.out": "blocks.1.mlp.post"},
    ),
}


@pytest.mark.parametrize("name", HEADED)
def test_maps_and_heads_are_their_inputs_times_their_weights(name: str) -> None:
    make, inputs = HEADED[name]
    model = make()
    trace = run(model, IDS)
    for hook, source in inputs.items():
        made = trace[hook][0].flatten(1)
        parts = ("embed.tokens", "embed.positions")
        read = sum(trace[part][0] for part in parts) if source == "embed.sum" else trace[source][0].flatten(1)
        for unit in (0, made.shape[1] - 1):
            found = operands(model, hook, unit)
            assert torch.allclose(read @ found.weights + (found.bias or 0), made[:, unit], atol=1e-5), hook


@pytest.mark.parametrize(("read", "row"), [("first", 0), ("last", 4)])
def test_a_class_of_the_whole_is_read_at_one_position(read: str, row: int) -> None:
    model = model_of(head=Head("sequence", 3, read=read, bias=False))  # type: ignore[arg-type]
    trace = run(model, IDS)
    found = operands(model, "logits", 2)
    assert found.bias is None
    assert torch.allclose(trace["final_norm.out"][0, row] @ found.weights, trace["logits"][0, 2], atol=1e-6)


def test_a_class_of_the_whole_is_read_from_the_mean_which_has_no_weights() -> None:
    model = model_of(head=Head("sequence", 3, read="mean"))
    trace = run(model, IDS)
    found = operands(model, "logits", 2)
    assert torch.allclose(trace["head.mean"][0] @ found.weights + found.bias, trace["logits"][0, 2], atol=1e-6)
    with pytest.raises(ValueError, match="not made with weights"):
        operands(model, "head.mean", 2)


def test_a_narrow_class_of_the_whole_is_mapped_before_it_is_read() -> None:
    narrow = Embedding(width=6, mapped="tokens")
    model = model_of(embedding=narrow, head=Head("sequence", 3, read="last", bias=False, narrow=True))
    trace = run(model, IDS)
    mapped, logit = operands(model, "head.narrow", 4), operands(model, "logits", 1)
    assert torch.allclose(trace["final_norm.out"][0, -1] @ mapped.weights, trace["head.narrow"][0, 4], atol=1e-6)
    assert torch.allclose(trace["head.narrow"][0] @ logit.weights, trace["logits"][0, 1], atol=1e-6)
    bare = model_of(embedding=narrow, head=Head("none", narrow=True))
    with pytest.raises(ValueError, match="not made with weights"):
        operands(bare, "logits", 0)


def test_two_heads_have_weights_and_their_mean_has_none() -> None:
    patches = Patches(4, 2, 1, distilled=True)
    config = ModelConfig(
        1, 6, 16, 1, WHOLE, MLP(24), embedding=Embedding(patches=patches), head=Head("sequence", 3, averaged=True)
    )
    model = initialise(Transformer(config), seed=1).eval()
    trace = run(model, torch.randn(1, 1, 4, 4, generator=torch.Generator().manual_seed(0)))
    for row, hook in enumerate(("head.cls", "head.distilled")):
        found = operands(model, hook, 1)
        made = trace["final_norm.out"][0, row] @ found.weights + found.bias
        assert torch.allclose(made, trace[hook][0, 1], atol=1e-6)
        assert operands(model, "embed.patches", 3, row=row).weights == trace["embed.patches"][0, row, 3]
    patch = operands(model, "embed.patches", 3, row=2)
    assert torch.allclose(
        trace["embed.patches.pixels"][0, 0] @ patch.weights + patch.bias, trace["embed.patches"][0, 2, 3], atol=1e-6
    )
    with pytest.raises(ValueError, match="head.cls, head.distilled"):
        operands(model, "logits", 1)
    with pytest.raises(ValueError, match="not made with weights"):
        operands(model_of(), "head.cls", 1)
