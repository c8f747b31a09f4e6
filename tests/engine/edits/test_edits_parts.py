"""Sublayers, residual connections and norms that are weighed or taken out, against the sums they are part of."""

from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor

from engine.edits import Scale, parts
from engine.model.config import Embedding, Encoder, Norm, NormPlace
from engine.runtime.run import run
from tests.engine import tiny

CONFIGS = {
    "before": tiny.CONFIG,
    "rms": tiny.config("rotary", norm=Norm("rms")),
    "batch": tiny.config("rotary", norm=Norm("batch")),
    "after": tiny.config(norm=Norm(place="after")),
    "around": tiny.config(norm=Norm(place="around")),
    "output": tiny.config(norm=Norm("rms", place="output")),
    "scaled": tiny.config(norm=Norm("layer", learned="none"), residual_scale=0.3),
    "parallel": tiny.config(sublayers="parallel"),
    "parallel, one norm": tiny.config(sublayers="parallel_one_norm"),
    "attention only": tiny.config(mlp=None),
    "no residual": tiny.config(residual=False),
    "no norm": tiny.config(norm=Norm("none")),
}


ADDS = {"around": ("norm1_after.out", "norm2_after.out"), "scaled": ("added1", "added2")}
ADDS |= {"output": ADDS["around"]}


def edited(name: str, hook: str, factor: float):
    return run(tiny.model(CONFIGS[name]), tiny.IDS, edits=[Scale(hook, factor)])


def same(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("name", ["before", "rms", "batch", "after", "around", "output", "scaled"])
def test_the_residual_past_a_sublayer_is_weighed_and_the_sublayer_reads_all_of_it(name: str, factor: float) -> None:
    trace = edited(name, "blocks.1.skip1", factor)
    plain = run(tiny.model(CONFIGS[name]), tiny.IDS)
    added = trace[f"blocks.1.{ADDS.get(name, ('attn.out', ''))[0]}"]
    same(trace["blocks.1.resid_mid"], factor * plain["blocks.1.resid_pre"] + added)
    assert torch.equal(trace["blocks.1.attn.out"], plain["blocks.1.attn.out"])
    trace = edited(name, "blocks.1.skip2", factor)
    carried = plain["blocks.1.norm1.out" if name == "after" else "blocks.1.resid_mid"]
    added = plain[f"blocks.1.{ADDS.get(name, ('', 'mlp.out'))[1]}"]
    same(trace["blocks.1.resid_post"], factor * carried + added)


@pytest.mark.parametrize("name", ["parallel", "parallel, one norm"])
def test_side_by_side_sublayers_have_one_residual(name: str) -> None:
    trace = edited(name, "blocks.1.skip1", -0.5)
    plain = run(tiny.model(CONFIGS[name]), tiny.IDS)
    total = plain["blocks.1.attn.out"] + plain["blocks.1.mlp.out"] - 0.5 * plain["blocks.1.resid_pre"]
    same(trace["blocks.1.resid_post"], total)


@pytest.mark.parametrize("name", ["before", "rms", "batch", "around", "scaled"])
def test_a_norm_taken_out_passes_on_what_it_reads_and_half_of_one_half_of_it(name: str) -> None:
    plain = run(tiny.model(CONFIGS[name]), tiny.IDS)
    x, normed = plain["blocks.1.resid_pre"], plain["blocks.1.norm1.out"]
    assert torch.equal(edited(name, "blocks.1.norm1.strength", 0.0)["blocks.1.norm1.out"], x)
    same(edited(name, "blocks.1.norm1.strength", 0.5)["blocks.1.norm1.out"], (x + normed) / 2)
    one = run(tiny.model(CONFIGS[name]), tiny.IDS, edits=[Scale("blocks.1.norm1.strength", 0.0, {"pos": 2})])
    expected = normed.clone()
    expected[:, 2] = x[:, 2]
    assert torch.equal(one["blocks.1.norm1.out"], expected)


def test_with_every_norm_taken_out_a_model_is_the_one_that_has_none() -> None:
    for place in get_args(NormPlace):
        for kind in ("layer", "rms", "batch"):
            embedding = Embedding(norm=True)
            model = tiny.model(tiny.config(norm=Norm(kind, place), embedding=embedding))  # type: ignore[arg-type]
            bare = tiny.model(replace(model.config, norm=Norm("none", place)))  # type: ignore[arg-type]
            bare.load_state_dict({name: model.state_dict()[name] for name in bare.state_dict()})
            with_all = run(model, tiny.IDS, keep="logits", edits=[Scale("*.strength", 0.0)])["logits"]
            same(with_all, run(bare, tiny.IDS, keep="logits")["logits"])


def test_norms_of_queries_and_keys_have_a_strength_too() -> None:
    for kind in ("head", "all"):
        model = tiny.model(tiny.config("rotary", {"qk_norm": kind}, norm=Norm("rms")))
        trace = run(model, tiny.IDS, edits=[Scale("blocks.0.attn.q_norm.strength", 0.0)])
        same(trace["blocks.0.attn.q_norm.out"].flatten(2), trace["blocks.0.attn.q"].flatten(2))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("before", "attention MLP residual-past-attention residual-past-the-MLP norm-1 norm-2"),
        (
            "around",
            "attention MLP residual-past-attention residual-past-the-MLP norm-1 norm-2 norm-1-after norm-2-after",
        ),
        ("parallel, one norm", "attention MLP residual-past-attention norm-1"),
        ("attention only", "attention residual-past-attention norm-1"),
        ("no residual", "attention MLP norm-1 norm-2"),
        ("no norm", "attention MLP residual-past-attention residual-past-the-MLP"),
    ],
)
def test_the_parts_of_a_block_are_those_it_has(name: str, expected: str) -> None:
    found = parts(tiny.model(CONFIGS[name]).hook_names, 1)
    assert [part.replace(" ", "-") for part in found] == expected.split()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_sublayer_taken_out_adds_nothing_whatever_norm_stands_behind_it(name: str) -> None:
    model = tiny.model(CONFIGS[name])
    found = parts(model.hook_names, 1)
    plain = run(model, tiny.IDS)
    trace = run(model, tiny.IDS, edits=[Scale(found["attention"], 0.0)])
    if "parallel" in name:
        same(trace["blocks.1.resid_post"], plain["blocks.1.resid_pre"] + plain["blocks.1.mlp.out"])
    else:
        expected = plain["blocks.1.resid_pre"] * (name != "no residual")
        same(trace["blocks.1.resid_mid"], expected)


def test_the_decoder_has_a_residual_past_the_attention_to_the_encoder() -> None:
    encoder = Encoder(2, replace(tiny.CONFIG.attention, mask="full"), tiny.MLP(12))
    model = tiny.model(tiny.config(encoder=encoder))
    found = parts(model.hook_names, 1, "decoder")
    assert found["residual past attention to the encoder"] == "decoder.blocks.1.skip_cross"
    assert "residual past attention to the encoder" not in parts(model.hook_names, 1, "encoder")
    plain = run(model, tiny.IDS, target=[1, 2, 3])
    trace = run(model, tiny.IDS, target=[1, 2, 3], edits=[Scale("decoder.blocks.1.skip_cross", 0.0)])
    assert torch.equal(trace["decoder.blocks.1.resid_cross"], plain["decoder.blocks.1.cross_attn.out"])
    trace = run(model, tiny.IDS, target=[1, 2, 3], edits=[Scale("encoder.blocks.1.skip2", 0.0)])
    assert torch.equal(trace["encoder.blocks.1.resid_post"], plain["encoder.blocks.1.mlp.out"])


def test_a_wildcard_means_no_hook_that_is_made_on_request() -> None:
    model = tiny.model()
    scaled = run(model, tiny.IDS, edits=[Scale("blocks.1.norm1.*", 2.0)], keep=["*", "blocks.1.norm1.strength"])
    assert (scaled["blocks.1.norm1.strength"] == 1).all()
    named = run(model, tiny.IDS, edits=[Scale("blocks.1.norm1.strength", 2.0)], keep="*.strength")
    assert (named["blocks.1.norm1.strength"] == 2).all() and (named["blocks.1.norm2.strength"] == 1).all()


def test_positions_have_no_scale() -> None:
    with pytest.raises(ValueError, match="holds whole numbers and has no scale; use ShiftPositions"):
        run(tiny.model(), tiny.IDS, edits=[Scale("embed.position_ids", 0.0)])
