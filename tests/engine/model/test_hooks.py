import re

import pytest
import torch

from engine.edits import Scale
from engine.model.config import Norm, NormKind
from engine.model.hooks import canonical, match_hooks
from engine.runtime.run import run
from tests.engine import tiny

BLOCK = [
    "resid_pre",
    "norm1.scale",
    "norm1.out",
    "attn.q",
    "attn.k",
    "attn.v",
    "attn.scores",
    "attn.mask",
    "attn.masked_scores",
    "attn.temperature",
    "attn.pattern",
    "attn.z",
    "attn.out",
    "resid_mid",
    "norm2.scale",
    "norm2.out",
    "mlp.pre",
    "mlp.post",
    "mlp.out",
    "resid_post",
]


def in_order(config=tiny.CONFIG, block: list[str] = BLOCK, embed: tuple[str, ...] = ("tokens", "positions")):
    names = [f"embed.{name}" for name in embed]
    names += [f"blocks.{layer}.{name}" for layer in range(config.layers) for name in block]
    return [*names, "final_norm.scale", "final_norm.out", "logits"]


def test_a_trace_holds_every_hook_of_the_design_in_the_order_of_computation() -> None:
    assert list(run(tiny.model(), tiny.IDS)) == in_order()


def after(block: list[str], name: str, *new: str) -> list[str]:
    at = block.index(name) + 1
    return [*block[:at], *new, *block[at:]]


@pytest.mark.parametrize(
    ("config", "block", "embed"),
    [
        (tiny.config("rotary"), after(BLOCK, "attn.v", "attn.q_rotated", "attn.k_rotated"), ("tokens",)),
        (tiny.config("alibi"), after(BLOCK, "attn.scores", "attn.bias"), ("tokens",)),
        (tiny.config("sinusoidal"), BLOCK, ("tokens", "positions")),
        (tiny.config(mlp=tiny.MLP(8, gated=True)), after(BLOCK, "mlp.pre", "mlp.up"), ("tokens", "positions")),
        (tiny.config("none", mlp=None), [*BLOCK[:14], "resid_post"], ("tokens",)),
    ],
    ids=["rotary", "alibi", "sinusoidal", "gated", "attention only"],
)
def test_optional_parts_bring_their_hooks_where_they_are_computed(config, block, embed) -> None:
    assert list(run(tiny.model(config), tiny.IDS)) == in_order(config, block, embed)


@pytest.mark.parametrize(
    "config", [tiny.CONFIG, tiny.config("rotary", attention={"kv_heads": 2}), tiny.config("alibi")]
)
def test_the_axes_of_every_value_are_those_it_declares(config) -> None:
    sizes = {"batch": 2, "pos": 8, "key": 8, "d_model": 16, "d_head": 4, "d_mlp": 20, "vocab": 11}
    trace = run(tiny.model(config), [tiny.IDS, tiny.IDS[:4]], keep=["*", "*.head_out"])
    for name, value in trace.items():
        heads = config.kv_heads if re.search(r"\.(k|v|k_rotated)$", name) else 4
        assert value.shape == tuple((sizes | {"head": heads})[axis] for axis in trace.dims(name)), name


def test_hooks_know_the_whole_path_to_themselves() -> None:
    model = tiny.model()
    assert all(hook.name == name for name, hook in model.hooks.items())
    assert repr(model.hooks["blocks.1.attn.pattern"]) == "HookPoint(blocks.1.attn.pattern: batch head pos key)"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("hook_embed", "embed.tokens"),
        ("hook_pos_embed", "embed.positions"),
        ("blocks.1.hook_resid_pre", "blocks.1.resid_pre"),
        ("blocks.1.hook_resid_mid", "blocks.1.resid_mid"),
        ("blocks.1.hook_resid_post", "blocks.1.resid_post"),
        ("blocks.1.ln1.hook_scale", "blocks.1.norm1.scale"),
        ("blocks.1.ln1.hook_normalized", "blocks.1.norm1.normalized"),
        ("blocks.1.ln2.hook_normalized", "blocks.1.norm2.normalized"),
        ("blocks.1.attn.hook_q", "blocks.1.attn.q"),
        ("blocks.1.attn.hook_k", "blocks.1.attn.k"),
        ("blocks.1.attn.hook_v", "blocks.1.attn.v"),
        ("blocks.1.attn.hook_attn_scores", "blocks.1.attn.masked_scores"),
        ("blocks.1.attn.hook_pattern", "blocks.1.attn.pattern"),
        ("blocks.1.attn.hook_z", "blocks.1.attn.z"),
        ("blocks.1.attn.hook_result", "blocks.1.attn.head_out"),
        ("blocks.1.hook_attn_out", "blocks.1.attn.out"),
        ("blocks.1.mlp.hook_pre", "blocks.1.mlp.pre"),
        ("blocks.1.mlp.hook_post", "blocks.1.mlp.post"),
        ("blocks.1.hook_mlp_out", "blocks.1.mlp.out"),
        ("ln_final.hook_normalized", "final_norm.normalized"),
    ],
)
def test_transformer_lens_names_stand_for_ours(theirs: str, ours: str) -> None:
    trace = run(tiny.model(), tiny.IDS, keep=[theirs])
    assert list(trace) == [ours]
    assert trace[theirs] is trace[ours]
    assert theirs in trace
    assert trace.dims(theirs) == trace.dims(ours)


@pytest.mark.parametrize(
    ("pattern", "ours"),
    [
        ("*hook_k", "*.attn.k"),  # not attn.mask, which also ends in k
        ("*hook_pre", "*.mlp.pre"),  # not resid_pre
        ("*hook_post", "*.mlp.post"),
        ("*hook_embed", "embed.tokens"),
        ("blocks.*.attn.hook_pattern", "blocks.*.attn.pattern"),
        ("blocks.[02].attn.hook_z", "blocks.[02].attn.z"),
        ("*.hook_resid_post", "*.resid_post"),
    ],
)
def test_transformer_lens_patterns_stand_for_whole_words(pattern: str, ours: str) -> None:
    names = tiny.model().hook_names
    assert match_hooks(pattern, names) == match_hooks(ours, names) != ()


def test_our_own_names_are_nobodys_alias() -> None:
    for name in tiny.model(tiny.config("rotary", mlp=tiny.MLP(8, gated=True))).hook_names:
        assert canonical(name, ()) == name


def test_what_a_sublayer_adds_is_behind_the_norm_that_stands_behind_it() -> None:
    model = tiny.model(tiny.config("rotary", norm=Norm("rms", "around")))
    trace = run(model, tiny.IDS, ["*", "*hook_attn_out", "*hook_mlp_out"])
    for alias, before, after in (("attn", "pre", "mid"), ("mlp", "mid", "post")):
        added = trace[f"blocks.1.resid_{after}"] - trace[f"blocks.1.resid_{before}"]
        torch.testing.assert_close(trace[f"blocks.1.hook_{alias}_out"], added)
        torch.testing.assert_close(trace.stack(f"hook_{alias}_out")[1], added)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_normalized_stream_is_divided_by_its_scale_and_an_edit_of_it_reaches_the_result(kind: NormKind) -> None:
    model = tiny.model(tiny.config(norm=Norm(kind)))
    norm = model.blocks[1].norm1
    norm.weight.data.normal_(generator=torch.Generator().manual_seed(0))
    at = "blocks.1.norm1."
    trace = run(model, tiny.IDS, ["*", f"{at}normalized"])
    x, bias = trace["blocks.1.resid_pre"], getattr(norm, "bias", 0.0)
    centred = x - x.mean(-1, keepdim=True) if kind == "layer" else x
    torch.testing.assert_close(trace[f"{at}normalized"], centred / trace[f"{at}scale"][..., None])
    torch.testing.assert_close(trace[f"{at}out"], trace[f"{at}normalized"] * norm.weight + bias)
    edited = run(model, tiny.IDS, edits=[Scale(f"{at}normalized", 2.0)])
    torch.testing.assert_close(edited[f"{at}out"], trace[f"{at}normalized"] * 2 * norm.weight + bias)


def test_an_unknown_hook_is_answered_with_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"no hook is called 'blocks.7.attn.q'.*blocks\.\{0-2\}\.attn\.q"):
        run(tiny.model(), tiny.IDS, keep="blocks.7.attn.q")
