from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from unittest.mock import patch

import pytest
import torch

from engine.edits import AttentionTemperature, DrawMask
from engine.model.config import ModelConfig
from engine.model.layers import attention as attention_file
from engine.model.layers.mask import Causal, Full, Mask, PaintedMask, Prefix, SlidingWindow
from engine.runtime.run import run
from tests.engine import tiny

MASKS: dict[str, Mask | None] = {
    "configured": None,
    "full": Full(),
    "prefix": Prefix(3),
    "window": Causal() & SlidingWindow(2),
    "drawn": PaintedMask(torch.tensor([[False] * 8, *[[True, False] * 4] * 7])),  # row 0 may see nothing
}
KV_HEADS = (4, 2, 1)


@contextmanager
def fused_calls() -> Iterator[list[int]]:
    calls: list[int] = []
    real = attention_file.scaled_dot_product_attention

    def counted(*args, **kwargs):
        calls.append(1)
        return real(*args, **kwargs)

    with patch.object(attention_file, "scaled_dot_product_attention", counted):
        yield calls


def test_fused_attention_equals_explicit(subtests: pytest.Subtests) -> None:
    for positions, mask, kv_heads in product(tiny.POSITIONS, MASKS, KV_HEADS):
        with subtests.test(positions=positions, mask=mask, kv_heads=kv_heads):
            model = tiny.model(tiny.config(positions, attention={"kv_heads": kv_heads}))
            padded = [tiny.IDS, tiny.IDS[:5]]
            explicit = run(model, padded, keep=["*", "logits"], mask=MASKS[mask])
            with fused_calls() as calls:
                fused = run(model, padded, keep=["*.z", "logits"], mask=MASKS[mask])
            assert len(calls) == model.config.layers
            torch.testing.assert_close(fused.stack("attn.z"), explicit.stack("attn.z"), atol=1e-5, rtol=0)
            torch.testing.assert_close(fused["logits"], explicit["logits"], atol=1e-4, rtol=0)


def inner_hooks(config: ModelConfig) -> list[str]:
    names = ["scores", "mask", "masked_scores", "temperature", "pattern"]
    return names + ["bias"] if config.positions.kind == "alibi" else names


@pytest.mark.parametrize("positions", ["learned", "alibi"])
def test_a_layer_is_explicit_exactly_where_something_inside_it_is_recorded_or_edited(positions: str) -> None:
    model = tiny.model(tiny.config(positions))
    outer = [n for n in model.hook_names if n.rsplit(".", 1)[-1] not in inner_hooks(model.config)]
    for keep, edits, fused in [
        (outer, [], 3),
        *((f"blocks.1.attn.{name}", [], 2) for name in inner_hooks(model.config)),
        (["*.pattern"], [], 0),
        ("logits", [AttentionTemperature(2.0, layer=0)], 2),
        ("logits", [DrawMask(2, torch.eye(8, dtype=torch.bool).tolist())], 2),
    ]:
        with fused_calls() as calls:
            run(model, tiny.IDS, keep=keep, edits=edits)
        assert len(calls) == fused, (keep, edits)


@pytest.mark.parametrize("kv_heads", KV_HEADS)
@pytest.mark.parametrize("positions", tiny.POSITIONS)
def test_every_recorded_value_follows_from_the_ones_before_it(positions: str, kv_heads: int) -> None:
    model = tiny.model(tiny.config(positions, attention={"kv_heads": kv_heads}))
    trace = run(model, tiny.IDS)
    name = "blocks.1.attn."
    turned = "_rotated" if positions == "rotary" else ""
    q, k, v = (trace[name + hook][0] for hook in (f"q{turned}", f"k{turned}", "v"))
    for head in range(4):
        shared = head * kv_heads // 4
        scores = q[:, head] @ k[:, shared].T / 2  # sqrt(d_head) = 2
        torch.testing.assert_close(trace[name + "scores"][0, head], scores, atol=1e-5, rtol=0)
        if positions == "alibi":
            scores = scores + trace[name + "bias"][head]
        scores = scores.masked_fill(torch.ones(8, 8).triu(1).bool(), float("-inf"))
        torch.testing.assert_close(trace[name + "masked_scores"][0, head], scores, atol=1e-5, rtol=0)
        pattern = scores.exp() / scores.exp().sum(-1, keepdim=True)
        torch.testing.assert_close(trace[name + "pattern"][0, head], pattern, atol=1e-5, rtol=0)
        torch.testing.assert_close(trace[name + "z"][0, :, head], pattern @ v[:, shared], atol=1e-5, rtol=0)
    out = trace[name + "z"][0].flatten(1) @ model.blocks[1].attn.out.weight.T + model.blocks[1].attn.out.bias
    torch.testing.assert_close(trace[name + "out"][0], out, atol=1e-5, rtol=0)


@pytest.mark.parametrize("bias", [True, False])
def test_what_the_heads_write_sums_to_the_output_without_its_bias(bias: bool) -> None:
    model = tiny.model(tiny.config(attention={"out_bias": bias}))
    asked = run(model, tiny.IDS, keep=["*.head_out", "*.attn.out"])
    for layer, block in enumerate(model.blocks):
        head_out = asked[f"blocks.{layer}.attn.head_out"]
        assert head_out.shape == (1, 8, 4, 16)
        total = head_out.sum(2) + (block.attn.out.bias if bias else 0)
        torch.testing.assert_close(total, asked[f"blocks.{layer}.attn.out"], atol=1e-5, rtol=0)
    unasked = run(model, tiny.IDS, keep="*.attn.out")
    torch.testing.assert_close(unasked.stack("attn.out"), asked.stack("attn.out"), atol=1e-4, rtol=0)


def test_a_head_width_of_its_own_need_not_divide_d_model() -> None:
    model = tiny.model(tiny.config(attention={"heads": 3, "d_head": 6}))
    trace = run(model, tiny.IDS)
    assert trace["blocks.0.attn.z"].shape == (1, 8, 3, 6)
    q, k = trace["blocks.0.attn.q"], trace["blocks.0.attn.k"]
    expected = torch.einsum("bphd,bkhd->bhpk", q, k) / 6**0.5
    torch.testing.assert_close(trace["blocks.0.attn.scores"], expected, atol=1e-5, rtol=0)


def test_a_query_that_may_see_nothing_takes_nothing_and_gives_the_bias_alone() -> None:
    model = tiny.model()
    trace = run(model, tiny.IDS, mask=MASKS["drawn"])
    assert trace["blocks.0.attn.pattern"][0, :, 0].abs().max() == 0
    torch.testing.assert_close(trace["blocks.0.attn.out"][0, 0], model.blocks[0].attn.out.bias)
    assert not any(value.isnan().any() for value in trace.values())


def test_the_configured_window_limits_what_every_layer_sees() -> None:
    trace = run(tiny.model(tiny.config(attention={"window": 3})), tiny.IDS)
    distance = torch.arange(8)[:, None] - torch.arange(8)
    seen = (trace.stack("attn.pattern") > 0).all(0)[0]
    assert torch.equal(seen, ((distance >= 0) & (distance < 3)).expand(4, 8, 8))
