"""Every hook of every kind of model: recorded, with the axes it names, and open to edits."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters

from engine.edits import Edit, Replace, Scale
from engine.model.config import (
    MLP,
    Attention,
    Embedding,
    Encoder,
    Experts,
    Infill,
    Latent,
    ModelConfig,
    Norm,
    OtherRotation,
    OutputHead,
    Patches,
    Positions,
    RotaryScaling,
    Sound,
)
from engine.model.hooks import HookPoint
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny

BATCH, LENGTH, WRITTEN = 2, 7, 5
BASE = ModelConfig(vocab_size=13, context=16, d_model=24, layers=2, attention=Attention(4), mlp=MLP(20))
FULL = Attention(4, mask="full")
GATED = MLP(20, "silu", gated=True, bias=False)
BARE = Attention(4, kv_heads=2, d_head=8, bias=False, out_bias=False)
ROTARY, RMS, AFTER = Positions("rotary"), Norm("rms"), Norm(place="after")
PICTURE = Patches(image=8, size=2, channels=3)
HEARD = Sound(bins=5, positions=6)
T5 = {
    "norm": RMS,
    "positions": Positions("relative", buckets=8, farthest=12),
    "attention": Attention(4, d_head=5, bias=False, out_bias=False, scale=1.0),
}
NARROW = Embedding(width=10, mapped="tokens")
VIT = {"vocab_size": 1, "context": PICTURE.count + 1, "embedding": Embedding(patches=PICTURE)}


def encoder(attention: Attention, mlp: MLP = GATED, layers: int = 3) -> Encoder:
    return Encoder(layers, replace(attention, mask="full"), mlp, start=1)


CONFIGS: dict[str, ModelConfig] = {
    "GPT-2": BASE,
    "ModernBERT, texts": replace(
        BASE,
        attention=FULL,
        positions=ROTARY,
        norm=Norm(first=False),
        embedding=Embedding(norm=True),
        head=OutputHead("sequence", 3, "mean", dense=True, norm=True),
    ),
    "ESM-2": replace(BASE, attention=FULL, positions=ROTARY, embedding=Embedding(token_dropout=5)),
    "DeBERTa": replace(
        BASE, attention=FULL, positions=Positions("disentangled", buckets=4, farthest=9, normed=True, own_maps=True)
    ),
    "MPNet": replace(BASE, attention=FULL, positions=Positions(relative_bias=True, buckets=8, farthest=12)),
    "attention only, no norm, no skip": replace(BASE, mlp=None, norm=Norm("none"), residual=False),
    "no blocks": replace(BASE, layers=0),
    "sinusoidal, norm after": replace(BASE, positions=Positions("sinusoidal"), norm=AFTER),
    "batch norm, layers that share a block": replace(BASE, norm=Norm("batch"), distinct=1),
    "ALiBi": replace(BASE, positions=Positions("alibi")),
    "BERT, masked": replace(
        BASE,
        attention=FULL,
        norm=AFTER,
        embedding=Embedding(segments=2, norm=True),
        head=OutputHead("masked", bias=True, pooler=True, next_sentence=True),
    ),
    "BERT, tokens": replace(BASE, attention=FULL, norm=AFTER, head=OutputHead("token", classes=5)),
    "BERT, texts": replace(BASE, attention=FULL, norm=AFTER, head=OutputHead("sequence", classes=3, pooler=True)),
    "BERT, no head": replace(BASE, attention=FULL, norm=AFTER, head=OutputHead("none")),
    "original": replace(
        BASE,
        positions=Positions("sinusoidal"),
        norm=AFTER,
        embedding=Embedding(scale=24**0.5),
        encoder=encoder(FULL, MLP(28, "relu")),
    ),
    "BART": replace(
        BASE,
        norm=AFTER,
        embedding=Embedding(norm=True),
        head=OutputHead(bias=True),
        encoder=encoder(Attention(2), MLP(28)),
    ),
    "T5": replace(BASE, **T5, mlp=GATED, head=OutputHead(scale=24**-0.5), encoder=encoder(T5["attention"])),
    "two stacks, all options": replace(
        BASE,
        positions=ROTARY,
        norm=Norm("rms", "around"),
        attention=replace(BARE, qk_norm="head", softcap=4.0, window=3),
        encoder=encoder(replace(BARE, heads=6, qk_norm="all")),
        residual_scale=0.5,
    ),
    "cross attention, normed whole": replace(
        BASE, attention=replace(BARE, qk_norm="all"), cross=replace(BARE, heads=2, mask="full"), encoder=encoder(BARE)
    ),
    "cross attention, normed whole, of its own": replace(
        BASE, cross=replace(BARE, heads=6, mask="full", qk_norm="all"), encoder=encoder(BARE)
    ),
    "Llama": replace(BASE, attention=BARE, mlp=GATED, norm=RMS, positions=ROTARY, tied=False),
    "Llama, longer": replace(
        BASE, attention=BARE, positions=Positions("rotary", scaling=RotaryScaling("yarn", 4.0, 8)), norm=RMS
    ),
    "Llama, by length": replace(
        BASE, attention=BARE, positions=Positions("rotary", scaling=RotaryScaling("dynamic", 4.0, 4)), norm=RMS
    ),
    "Qwen3": replace(BASE, attention=replace(BARE, qk_norm="each"), mlp=GATED, norm=RMS, positions=ROTARY),
    "OLMo 2": replace(
        BASE, attention=replace(BARE, qk_norm="all"), mlp=GATED, norm=Norm("rms", "output"), positions=ROTARY
    ),
    "Gemma 2": replace(
        BASE,
        attention=replace(BARE, window=3, windowed=(0,), softcap=5.0, scale=0.3),
        mlp=replace(GATED, activation="gelu_tanh"),
        norm=Norm("rms", "around"),
        positions=ROTARY,
        embedding=Embedding(scale=24**0.5),
        head=OutputHead(softcap=3.0),
    ),
    "Gemma 3": replace(BASE, attention=BARE, norm=RMS, positions=replace(ROTARY, other=OtherRotation((0,), 100.0))),
    "SmolLM3": replace(BASE, attention=BARE, norm=RMS, positions=replace(ROTARY, other=OtherRotation((1,)))),
    "OLMo": replace(BASE, attention=BARE, mlp=GATED, norm=Norm(learned="none"), positions=ROTARY),
    "Cohere": replace(BASE, norm=Norm(learned="weight"), sublayers="parallel_one_norm", head=OutputHead(scale=0.1)),
    "Granite": replace(BASE, attention=BARE, norm=RMS, positions=ROTARY, residual_scale=0.2),
    "NanoChat": replace(
        BASE, attention=replace(BARE, qk_norm="head"), mlp=MLP(20, "relu2"), norm=Norm("rms", learned="none")
    ),
    "Mixtral": replace(
        BASE, attention=BARE, mlp=replace(GATED, experts=Experts(5, 2, shared=9)), norm=RMS, positions=ROTARY
    ),
    "experts of groups": replace(
        BASE,
        mlp=MLP(
            20,
            experts=Experts(
                6,
                2,
                "sigmoid",
                scale=2.0,
                groups=3,
                groups_used=2,
                group_best=2,
                correction=True,
                shared=9,
                shared_gate=True,
            ),
        ),
    ),
    "DeepSeek": replace(
        BASE,
        attention=Attention(4, d_head=10, bias=False, out_bias=False, latent=Latent(7, 9, 6)),
        norm=RMS,
        positions=Positions("rotary", turned=4, pairs="neighbours"),
    ),
    "sinks": replace(BASE, attention=replace(BARE, sinks=True, window=3, windowed=(1,)), norm=RMS, positions=ROTARY),
    "GPT-NeoX": replace(BASE, positions=Positions("rotary", turned=2), sublayers="parallel", tied=False),
    "GPT-J": replace(
        BASE,
        attention=Attention(4, bias=False, out_bias=False),
        positions=Positions("rotary", turned=4, pairs="neighbours"),
        sublayers="parallel_one_norm",
        head=OutputHead(bias=True),
    ),
    "parallel attention only": replace(BASE, mlp=None, sublayers="parallel"),
    "GLM, two tables": replace(
        BASE, attention=Attention(4, mask="prefix"), infill=Infill(11, 12), positions=Positions("learned", axes=2)
    ),
    "GLM, two turns": replace(
        BASE,
        attention=Attention(2, mask="prefix"),
        infill=Infill(11, 12),
        positions=Positions("rotary", axes=2),
        norm=RMS,
    ),
    "GLM, ALiBi": replace(
        BASE, attention=Attention(4, mask="prefix"), infill=Infill(11, 12), positions=Positions("alibi")
    ),
    "ViT": replace(BASE, **VIT, attention=FULL, head=OutputHead("sequence", classes=3)),
    "ViT, squares": replace(BASE, **VIT, attention=replace(FULL, block=2), head=OutputHead("none")),
    "ImageGPT": replace(BASE, mlp=MLP(20, "quick_gelu"), norm=RMS, head=OutputHead(outputs=12)),
    "ImageGPT, pictures": replace(BASE, norm=RMS, head=OutputHead("sequence", classes=3, read="mean", bias=False)),
    "OPT-350m": replace(BASE, norm=AFTER, embedding=NARROW),
    "OPT-350m, texts": replace(
        BASE, norm=AFTER, embedding=NARROW, head=OutputHead("sequence", classes=3, read="last", bias=False, narrow=True)
    ),
    "OPT-350m, answers": replace(BASE, norm=AFTER, embedding=NARROW, head=OutputHead("span", narrow=True)),
    "OPT-350m, no head": replace(BASE, norm=AFTER, embedding=NARROW, head=OutputHead("none", narrow=True)),
    "Whisper": replace(
        BASE,
        attention=Attention(4, key_bias=False),
        embedding=Embedding(sound=HEARD),
        encoder=encoder(Attention(2, key_bias=False), MLP(28, "gelu")),
    ),
    "sounds, one stack": replace(
        BASE,
        context=HEARD.positions,
        attention=FULL,
        embedding=Embedding(sound=HEARD),
        head=OutputHead("sequence", classes=3, read="mean"),
    ),
    "nearest keys": replace(BASE, attention=Attention(4, nearest=2)),
}


@dataclass(frozen=True)
class Read:
    """What a model reads, and how long each of its axes then is."""

    ids: Tensor
    target: list[list[int]] | None = None


def read(config: ModelConfig) -> Read:
    if config.embedding.patches is not None:
        return Read(tiny.normal(BATCH, 3, 8, 8))
    if config.embedding.sound is not None:
        two = config.encoder is not None
        return Read(tiny.normal(BATCH, 5, 12), [[1, 2, 3, 4, 5], [1, 6, 7, 8, 9]] if two else None)
    ids = torch.tensor([[3, 1, 4, 11, 5, 12, 2], [6, 11, 12, 7, 8, 9, 10]])
    return Read(ids, None if config.encoder is None else [[1, 2, 3, 4, 5], [1, 6, 7, 8, 9]])


def recorded(config: ModelConfig, keep: Any = "*", **options: Any) -> Trace:
    given = read(config)
    return run(tiny.model(config), given.ids, keep=keep, target=given.target, **options)


def sizes(config: ModelConfig, name: str) -> dict[str, int]:
    """How long each axis of a hook must be: the config's numbers, for the stack and the attention it stands in."""
    patches = config.embedding.patches
    length = LENGTH if patches is None else patches.count + 1
    length = HEARD.positions if config.embedding.sound else length
    first = name.startswith("encoder.")
    stack = config.encoder_stack if first else config
    two = config.encoder is not None
    cross = ".cross_attn." in name
    attention = config.cross_attention if cross else stack.attention
    pos = length if first or not two else WRITTEN
    heads = attention.kv_heads or attention.heads
    part = name.partition("attn.")[2].partition(".")[0]
    count = heads if part in ("k", "v", "k_rotated", "k_norm") else attention.heads
    head = config.head
    experts = stack.mlp.experts if stack.mlp else None
    width = stack.mlp.d_mlp if stack.mlp else 0
    if experts and ".shared." in name:
        width = experts.shared or 0
    return {
        "batch": BATCH,
        "pos": pos,
        "key": length if cross else pos,
        "head": count,
        "d_head": stack.head_width(attention),
        "d_heads": count * stack.head_width(attention),
        "d_model": config.d_model,
        "d_embed": config.d_embed,
        "d_mlp": width,
        "d_value": stack.value_width(attention),
        "d_turned": stack.d_turned,
        "d_latent": latent_width(attention, name),
        "expert": experts.count if experts else 0,
        "slot": experts.used if experts else 0,
        "one": 1,
        "vocab": head.outputs or config.vocab_size,
        "class": 2 if name == "next_sentence" else config.outputs,
        "patch": patches.count if patches else 0,
        "mel": HEARD.bins,
        "frame": HEARD.frames,
        "pixel": patches.channels * patches.size**2 if patches else 0,
    }


def latent_width(attention: Attention, name: str) -> int:
    latent = attention.latent
    return 0 if latent is None else (latent.queries or 0) if "queries" in name else latent.keys


@pytest.mark.parametrize("name", CONFIGS)
def test_every_hook_is_recorded_with_the_axes_it_names(name: str) -> None:
    config = CONFIGS[name]
    trace = recorded(config)
    hooks = trace.hooks
    on_request = {hook for hook in hooks if hooks[hook].on_request}
    assert set(trace) == hooks.keys() - on_request
    trace = recorded(config, keep=["*", *on_request])
    assert set(trace) == hooks.keys()
    for hook, value in trace.items():
        expected = sizes(config, hook)
        assert dict(zip(trace.dims(hook), value.shape, strict=True)) == {a: expected[a] for a in trace.dims(hook)}, hook
        assert value.dtype == torch.bool or not value.isnan().any(), hook


def change(hook: HookPoint, value: Tensor) -> Edit:
    """Of one component where there are several, so that no norm takes it back."""
    if value.dtype == torch.bool:
        return Replace(hook.name, torch.eye(*value.shape[-2:]).bool().tolist())
    if hook.axes[-1] == "slot" and value.dtype == torch.int64:
        return Replace(hook.name, ((value + 1) % 5).tolist())
    if hook.axes[-1] in ("d_model", "d_embed", "d_head", "d_heads"):
        return Scale(hook.name, -0.5, {hook.axes[-1]: 0})
    return Scale(hook.name, 0.5)


def points(trace: Trace) -> list[str]:
    """The hooks of the first block and those outside of blocks."""
    return [name for name in trace if "blocks." not in name or "blocks.0." in name]


@pytest.mark.parametrize("name", CONFIGS)
def test_an_edit_of_any_hook_is_seen_there_and_in_what_the_model_gives(name: str) -> None:
    config = CONFIGS[name]
    model, given = tiny.model(config), read(config)
    plain = run(model, given.ids, target=given.target)
    *_, last = plain
    ends = [end for end in ("logits", last) if end in plain]
    for hook in points(plain):
        edit = change(model.hooks[hook], plain[hook])
        edited = run(model, given.ids, target=given.target, edits=[edit], keep=[hook, *ends])
        expected = edit.apply(model.hooks[hook], plain[hook])
        torch.testing.assert_close(
            edited[hook], expected, atol=1e-4, rtol=1e-4, msg=lambda m, hook=hook: f"{hook}: {m}"
        )
        assert any(not torch.equal(edited[end], plain[end]) for end in ends), hook
        resumed = run(model, given.ids, target=given.target, edits=[edit], keep=ends, base=plain)
        for end in ends:
            torch.testing.assert_close(resumed[end], edited[end], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", CONFIGS)
def test_on_the_meta_device_a_model_takes_no_memory_and_has_the_same_tensors_and_hooks(name: str) -> None:
    with torch.device("meta"):
        empty = Transformer(CONFIGS[name])
    full = Transformer(CONFIGS[name])
    assert empty.hooks.keys() == full.hooks.keys()
    assert all(parameter.is_meta for parameter in empty.parameters())
    assert {n: t.shape for n, t in empty.state_dict().items()} == {n: t.shape for n, t in full.state_dict().items()}
    empty.load_state_dict(tiny.model(CONFIGS[name]).state_dict(), assign=True)
    given = read(CONFIGS[name])
    logits = run(empty.eval(), given.ids, target=given.target)  # its buffers were never on the meta device
    for hook, value in recorded(CONFIGS[name]).items():
        torch.testing.assert_close(logits[hook], value)


def documented() -> dict[str, tuple[set[str], bool]]:
    """Hooks of docs/hooks.md without their stack: axes they may have, and whether they are made on request."""
    rows: dict[str, tuple[set[str], bool]] = {}
    for line in Path("docs/hooks.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or not cells[0].startswith("`"):
            continue
        assert all(cells), line
        first, *others = re.findall(r"`(.*?)`", cells[0])
        for other in ["", *others]:
            parts = other.removeprefix(".").split(".")
            full = other if other and not other.startswith(".") else ".".join(first.split(".")[: -len(parts)] + parts)
            rows[full if other else first] = (set(cells[1].split(" or ")), "on request" in cells[2])
    return rows


def test_every_hook_is_documented_with_its_axes() -> None:
    rows, seen = documented(), set()
    for config in CONFIGS.values():
        for name, hook in tiny.model(config).hooks.items():
            plain = re.sub(r"^(en|de)coder\.", "", re.sub(r"blocks\.\d+", "blocks.l", name))
            axes = " ".join(hook.axes)
            if "cross_attn" in plain:
                plain, axes = plain.replace("cross_attn", "attn"), axes.replace("batch key", "batch pos")
            assert plain in rows, name
            assert axes in rows[plain][0] and hook.on_request == rows[plain][1], (name, axes)
            seen.add(plain)
    distilled = {"head.cls", "head.distilled"}  # of a picture's two classifiers, which the configs above do without
    assert rows.keys() - seen <= distilled


@pytest.mark.parametrize("name", CONFIGS)
def test_probabilities_are_those_of_the_logits_and_sum_to_one(name: str) -> None:
    config = CONFIGS[name]
    trace = recorded(config, keep=["*", *(hook for hook in ("probs",) if hook in tiny.model(config).hooks)])
    if config.head.kind == "none":
        assert "probs" not in trace.hooks
        return
    over = 1 if config.head.kind == "span" else -1
    assert torch.equal(trace["probs"], trace["logits"].softmax(over))
    assert torch.allclose(trace["probs"].sum(over), torch.ones(()))


def test_padding_has_no_share_of_where_an_answer_stands() -> None:
    model = tiny.model(replace(BASE, attention=FULL, head=OutputHead("span")))
    both, alone = (run(model, texts, keep="probs")["probs"] for texts in ([[3, 1, 4], [5, 9, 2, 6, 5]], [[3, 1, 4]]))
    assert torch.allclose(both[0, :3], alone[0], atol=1e-6) and not both[0, 3:].any()


def test_one_class_holds_or_does_not_and_a_score_has_no_probability() -> None:
    ids = torch.tensor([[3, 1, 4]])
    trace = run(tiny.model(replace(BASE, attention=FULL, head=OutputHead("token", 1))), ids, keep=["logits", "probs"])
    assert torch.equal(trace["probs"], trace["logits"].sigmoid())
    assert "probs" not in tiny.model(replace(BASE, attention=FULL, head=OutputHead("sequence", 1))).hooks


@pytest.mark.parametrize("name", ["GPT-2", "BART", "GLM, two tables"])
def test_tokens_are_the_ids_that_were_read_and_an_edit_puts_others_in_their_place(name: str) -> None:
    config = CONFIGS[name]
    model, given = tiny.model(config), read(config)
    side = "encoder." if config.encoder else ""
    plain = run(model, given.ids, ["*", f"{side}tokens"], target=given.target)
    assert torch.equal(plain[f"{side}tokens"], given.ids)
    other = given.ids.clone()
    other[:, 2] = 8
    edit = Replace(f"{side}tokens", 8, {"pos": 2})
    edited = run(model, given.ids, edits=[edit], target=given.target)
    assert torch.equal(edited["logits"], run(model, other, target=given.target)["logits"])
    assert torch.equal(run(model, given.ids, edits=[edit], target=given.target, base=plain)["logits"], edited["logits"])
    if config.encoder:
        assert recorded(config, "decoder.tokens")["decoder.tokens"].tolist() == given.target


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Scale("tokens", 0.5), "tokens holds whole numbers and has no scale; use Replace"),
        (Replace("tokens", 99), "an edit of tokens must leave ids in 0..12, got 99"),
        (Replace("tokens", -1), "an edit of tokens must leave ids in 0..12, got -1"),
    ],
)
def test_an_edit_of_tokens_must_leave_ids_of_the_vocabulary(edit: Edit, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        recorded(BASE, edits=[edit])


COMPILED = ("BERT, masked", "T5", "Llama, by length", "Gemma 2", "GLM, two turns", "ViT, squares")


@pytest.mark.parametrize("name", COMPILED)
def test_hooks_are_invisible_to_the_compiler(name: str) -> None:
    torch._dynamo.reset()
    counters.clear()
    model, given = tiny.model(CONFIGS[name]), read(CONFIGS[name])
    options = {} if given.target is None else {"target": torch.tensor(given.target)}
    expected = model(given.ids, **options)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(given.ids, **options), expected, atol=1e-5, rtol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1
