"""Windows, squares of a picture, the nearest keys, softcap and normed queries, each against plain loops."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.model.config import Attention, Embedding, ModelConfig, OutputHead, Patches
from engine.model.layers.cache import KVCache
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny

LENGTH = 8
PICTURE = Patches(image=12, size=2, channels=1)  # 6 x 6 patches
May = Callable[[int, int], bool]

MASKS: dict[str, tuple[dict[str, Any], May]] = {
    "causal window": ({"window": 3}, lambda pos, key: pos - 3 < key <= pos),
    "window of one": ({"window": 1}, lambda pos, key: key == pos),
    "window wider than the text": ({"window": 99}, lambda pos, key: key <= pos),
    "window to both sides": ({"window": 3, "mask": "full"}, lambda pos, key: abs(pos - key) < 3),
    "causal": ({}, lambda pos, key: key <= pos),
    "full": ({"mask": "full"}, lambda pos, key: True),
}
KV_HEADS = (4, 2, 1)


def by_hand(trace: Trace, layer: int, attention: Attention, may: May, turned: str = "") -> tuple[Tensor, Tensor]:
    """pattern (batch head pos key) and z (batch pos head d_head) from the recorded q, k, v, number by number."""
    name = f"blocks.{layer}.attn."
    q, k, v = trace[f"{name}q{turned}"], trace[f"{name}k{turned}"], trace[f"{name}v"]
    batch, length, heads, width = q.shape
    group = heads // k.shape[2]
    pattern = torch.zeros(batch, heads, length, length)
    for row in range(batch):
        for head in range(heads):
            for pos in range(length):
                seen = [key for key in range(length) if may(pos, key)]
                score = {key: float(q[row, pos, head] @ k[row, key, head // group]) / width**0.5 for key in seen}
                if attention.softcap is not None:
                    score = {key: attention.softcap * math.tanh(s / attention.softcap) for key, s in score.items()}
                if attention.nearest is not None:
                    best = sorted(score, key=lambda key: -score[key])[: attention.nearest]
                    score = {key: score[key] for key in best}
                total = sum(map(math.exp, score.values()))
                for key, value in score.items():
                    pattern[row, head, pos, key] = math.exp(value) / total
    values = v.repeat_interleave(group, dim=2)
    return pattern, torch.einsum("bhpk,bkhd->bphd", pattern, values)


def assert_as_by_hand(model: Transformer, may: May, ids: Any = tiny.IDS, turned: str = "") -> Trace:
    trace = run(model, ids)
    for layer in range(model.config.layers):
        pattern, z = by_hand(trace, layer, model.config.attention, may, turned)
        torch.testing.assert_close(trace[f"blocks.{layer}.attn.pattern"], pattern, atol=1e-5, rtol=0)
        torch.testing.assert_close(trace[f"blocks.{layer}.attn.z"], z, atol=1e-5, rtol=0)
    return trace


def assert_fused_equals(model: Transformer, trace: Trace, ids: Any = tiny.IDS) -> None:
    fused = run(model, ids, keep=["*.attn.z", "*.attn.out"])
    torch.testing.assert_close(fused.stack("attn.z"), trace.stack("attn.z"), atol=1e-5, rtol=0)
    torch.testing.assert_close(fused.stack("attn.out"), trace.stack("attn.out"), atol=1e-5, rtol=0)


def calm(model: Transformer) -> Transformer:
    """With values near one, so that 1e-5 is about float32's precision and not beyond it."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".attn." in name and "norm" not in name:
                parameter.mul_(0.5)
    return model


@pytest.mark.parametrize("kv_heads", KV_HEADS)
@pytest.mark.parametrize("name", MASKS)
def test_a_window_limits_both_forms_of_attention_alike(name: str, kv_heads: int) -> None:
    options, may = MASKS[name]
    model = calm(tiny.model(tiny.config(attention={"kv_heads": kv_heads, **options})))
    assert_fused_equals(model, assert_as_by_hand(model, may))


@pytest.mark.parametrize("windowed", [(), (0,), (0, 2), (0, 1, 2)])
def test_only_the_layers_named_have_a_window(windowed: tuple[int, ...]) -> None:
    model = calm(tiny.model(tiny.config(attention={"window": 2, "windowed": windowed})))
    trace = run(model, tiny.IDS)
    for layer in range(3):
        may = MASKS["causal"][1] if layer not in windowed else lambda pos, key: pos - 2 < key <= pos
        pattern, z = by_hand(trace, layer, model.config.attention, may)
        torch.testing.assert_close(trace[f"blocks.{layer}.attn.pattern"], pattern, atol=1e-5, rtol=0)
        torch.testing.assert_close(trace[f"blocks.{layer}.attn.z"], z, atol=1e-5, rtol=0)
    assert_fused_equals(model, trace)


def picture_model(**attention: Any) -> Transformer:
    config = ModelConfig(
        vocab_size=1,
        context=PICTURE.count + 1,
        d_model=16,
        layers=2,
        attention=Attention(4, mask="full", **attention),
        mlp=tiny.MLP(20),
        embedding=Embedding(patches=PICTURE),
        head=OutputHead("sequence", classes=3),
    )
    return calm(tiny.model(config))


@pytest.mark.parametrize("kv_heads", KV_HEADS)
@pytest.mark.parametrize("block", [1, 2, 3, 4, 6])
def test_a_patch_sees_its_own_square_and_cls(block: int, kv_heads: int) -> None:
    side = PICTURE.side

    def may(pos: int, key: int) -> bool:
        if pos == 0 or key == 0:
            return True
        (row, column), (other_row, other_column) = divmod(pos - 1, side), divmod(key - 1, side)
        return row // block == other_row // block and column // block == other_column // block

    model = picture_model(block=block, kv_heads=kv_heads)
    pixels = tiny.normal(2, 1, 12, 12)
    assert_fused_equals(model, assert_as_by_hand(model, may, pixels), pixels)


def test_nearest_is_dense_attention_with_all_but_the_highest_scores_masked(subtests: pytest.Subtests) -> None:
    for name, nearest, kv_heads in product(["causal", "full", "window to both sides"], [1, 2, 5, 8, 20], KV_HEADS):
        with subtests.test(name=name, nearest=nearest, kv_heads=kv_heads):
            options, may = MASKS[name]
            model = tiny.model(tiny.config(attention={"nearest": nearest, "kv_heads": kv_heads, **options}))
            trace = assert_as_by_hand(model, may)
            allowed = [sum(may(pos, key) for key in range(LENGTH)) for pos in range(LENGTH)]
            counted = trace.stack("attn.mask").sum(-1)
            assert torch.equal(counted, torch.tensor(allowed).clamp(max=nearest).expand(counted.shape))


def test_nearest_never_takes_padding() -> None:
    model = tiny.model(tiny.config(attention={"nearest": 3, "mask": "full"}))
    trace = run(model, [tiny.IDS, tiny.IDS[:5]])
    assert not trace.stack("attn.mask")[:, 1, :, :, 5:].any()
    assert (trace.stack("attn.mask").sum(-1) == 3).all()
    alone = run(model, tiny.IDS[:5])
    torch.testing.assert_close(trace["logits"][1, :5], alone["logits"][0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("kv_heads", KV_HEADS)
@pytest.mark.parametrize(("softcap", "nearest"), [(0.5, None), (3.0, None), (3.0, 3)])
def test_softcap_bends_the_scores_before_the_mask(softcap: float, kv_heads: int, nearest: int | None) -> None:
    model = tiny.model(tiny.config(attention={"softcap": softcap, "kv_heads": kv_heads, "nearest": nearest}))
    trace = assert_as_by_hand(model, MASKS["causal"][1])
    scores, capped = trace["blocks.1.attn.scores"], trace["blocks.1.attn.capped"]
    torch.testing.assert_close(capped, softcap * (scores / softcap).tanh(), atol=1e-6, rtol=0)
    unseen = run(model, tiny.IDS, keep="logits")  # softcap has only one form, whoever looks
    torch.testing.assert_close(unseen["logits"], trace["logits"], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["rms", "layer"])
@pytest.mark.parametrize("kv_heads", KV_HEADS)
@pytest.mark.parametrize("over", ["head", "all"])
def test_queries_and_keys_are_normed_each_head_by_itself_or_all_together(over: str, kv_heads: int, kind: str) -> None:
    model = calm(
        tiny.model(tiny.config("rotary", attention={"qk_norm": over, "kv_heads": kv_heads}, norm=tiny.Norm(kind)))
    )
    trace = assert_as_by_hand(model, MASKS["causal"][1], turned="_rotated")
    assert_fused_equals(model, trace)
    for name, count in (("q", 4), ("k", kv_heads)):
        norm = getattr(model.blocks[1].attn, f"{name}_norm")
        before, after = trace[f"blocks.1.attn.{name}"][0], trace[f"blocks.1.attn.{name}_norm.out"][0]
        for pos in range(LENGTH):
            rows = [before[pos].flatten()] if over == "all" else list(before[pos])
            normed = [normalised(row, kind) * norm.weight + (norm.bias if kind == "layer" else 0) for row in rows]
            torch.testing.assert_close(after[pos].flatten(), torch.cat(normed), atol=1e-5, rtol=0)
        assert trace[f"blocks.1.attn.{name}_rotated"].shape == (1, LENGTH, count, 4)


def normalised(row: Tensor, kind: str) -> Tensor:
    numbers = row.tolist()
    mean = sum(numbers) / len(numbers) if kind == "layer" else 0.0
    scale = (sum((x - mean) ** 2 for x in numbers) / len(numbers) + 1e-5) ** 0.5
    return torch.tensor([(x - mean) / scale for x in numbers])


@pytest.mark.parametrize(
    "attention",
    [
        {"window": 3},
        {"window": 3, "windowed": (1,)},
        {"window": 3, "nearest": 2},
        {"softcap": 2.0, "kv_heads": 2},
        {"qk_norm": "head", "kv_heads": 2},
        {"qk_norm": "all"},
    ],
    ids=str,
)
@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_with_a_cache_each_step_gives_what_the_whole_text_does(positions: str, attention: dict[str, Any]) -> None:
    model = calm(tiny.model(tiny.config(positions, attention=attention, norm=tiny.Norm("rms"))))
    whole = run(model, tiny.IDS, keep="logits")["logits"]
    cache = KVCache(model.config, batch=1, length=LENGTH, like=model.embed.tokens.weight)
    steps = [run(model, tiny.IDS[:3], keep="logits", cache=cache)["logits"]]
    steps += [run(model, [token], keep="logits", cache=cache)["logits"] for token in tiny.IDS[3:]]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-4, rtol=0)


def test_a_scale_of_its_own_replaces_one_over_the_root_of_the_width() -> None:
    plain = tiny.model()
    scaled = Transformer(replace(plain.config, attention=replace(plain.config.attention, scale=0.125)))
    scaled.load_state_dict(plain.state_dict())
    ratio = run(scaled.eval(), tiny.IDS)["blocks.0.attn.scores"] / run(plain, tiny.IDS)["blocks.0.attn.scores"]
    torch.testing.assert_close(ratio, torch.full_like(ratio, 0.25), atol=1e-5, rtol=0)  # 1/8 over 1/sqrt(4)
