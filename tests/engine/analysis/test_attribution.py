"""Attribution: the terms add up for every kind of model, and each is what its definition says, computed another way."""

import math
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch

from engine import load, run
from engine.analysis.attribution import ablate, attribute, list_later, read_hooks, split_sources
from engine.analysis.score_split import split_score
from engine.analysis.weights.circuit import writing_rows
from engine.analysis.writers import Writer
from engine.edits import AttentionTemperature, Scale, SilenceHeads
from engine.inputs.samples import samples
from engine.model.config import (
    Embedding,
    Encoder,
    Experts,
    Latent,
    ModelConfig,
    NormPlace,
    OtherRotation,
    OutputHead,
    Positions,
    Sublayers,
    TextVector,
)
from engine.model.transformer import Transformer
from tests.engine import tiny
from tests.engine.tiny import IDS, MLP, Attention, Norm, config

SHIPPED = "stories", "tales-bert", "digits-vit", "translate-en-fr", "everyday", "t5-tasks", "infill"
FULL = {"mask": "full"}
KINDS: dict[str, ModelConfig] = {
    **{positions: config(positions) for positions in (*tiny.POSITIONS, "relative")},
    **{
        f"{kind} norm {place}": config(norm=Norm(kind=kind, place=place))  # type: ignore[arg-type]
        for kind in ("layer", "rms", "batch")
        for place in get_args(NormPlace)
    },
    "no norm": config(norm=Norm(kind="none")),
    "norms without bias": config(norm=Norm(learned="weight"), residual_scale=0.3, sublayers="parallel"),
    "norms that learn nothing": config("rotary", {"qk_norm": "head"}, norm=Norm(learned="none"), residual_scale=2.0),
    "RMS norms that learn nothing": config(norm=Norm("rms", "around", learned="none"), residual_scale=0.3),
    "norm after, what is added scaled": config(norm=Norm(place="after", learned="none"), residual_scale=0.3),
    "norm after, no MLP": config(norm=Norm(place="after"), mlp=None),
    "parallel": config("rotary", sublayers="parallel"),
    "parallel, one norm": config("rotary", sublayers="parallel_one_norm", mlp=MLP(d_mlp=20, gated=True)),
    "no residual connections": config(residual=False),
    "groups, biases, norms of q and k": config("rotary", {"kv_heads": 2, "bias": True, "qk_norm": "each"}),
    "rotated otherwise in some layers": config(Positions("rotary", other=OtherRotation((1,), 9.0))),
    "rotated in some layers": config(Positions("rotary", other=OtherRotation((0, 2)))),
    "norms of all heads": config("rotary", {"qk_norm": "all"}),
    "experts": config(mlp=MLP(12, experts=Experts(5, 2, shared=7))),
    "keys of a compressed vector": config(
        Positions("rotary", turned=4),
        {"d_head": 10, "bias": False, "latent": Latent(7, 9, 6, bias=True)},
        norm=Norm("rms"),
    ),
    "soft caps": config(attention={"softcap": 2.0}, head=OutputHead(softcap=3.0)),
    **{
        f"disentangled, {terms}": config(
            Positions("disentangled", buckets=4, farthest=8, terms=terms, normed=True, added=terms == "p2c"),  # type: ignore[arg-type]
            FULL,
            norm=Norm(place="after"),
        )
        for terms in ("both", "c2p", "p2c")
    },
    "masked": config(attention=FULL, head=OutputHead(kind="masked", bias=True), norm=Norm(place="after")),
    "narrow tokens": config(embedding=Embedding(width=8, norm=True, segments=2), attention=FULL),
    "narrow tokens alone": config(embedding=Embedding(width=8, mapped="tokens"), tied=True),
    "token": config(attention=FULL, head=OutputHead(kind="token", classes=3, dense=True)),
    "span": config(attention=FULL, head=OutputHead(kind="span", classes=2)),
    "pooled": config(attention=FULL, head=OutputHead(kind="sequence", classes=3, pooler=True)),
    **{
        f"dense and norm before the classes, {kind} {read}": config(
            Positions("learned", relative_bias=True, buckets=6, farthest=8),
            FULL,
            norm=Norm(learned="weight", first=False),
            embedding=Embedding(norm=True),
            head=OutputHead(kind, 0 if kind == "span" else 3, read, dense=True, dense_bias=kind == "span", norm=True),  # type: ignore[arg-type]
        )
        for kind, read in (("sequence", "first"), ("sequence", "mean"), ("token", "first"), ("span", "first"))
    },
    "masked, its dense layer without a bias": config(attention=FULL, head=OutputHead("masked", dense_bias=False)),
    "last": config(head=OutputHead(kind="sequence", classes=3, read="last")),
    "mean": config(attention=FULL, head=OutputHead(kind="sequence", classes=3, read="mean")),
    **{
        f"layers that scale, {' and '.join(vector.pooled)} as the vector{' and a norm' if vector.norm else ''}": config(
            attention=FULL,
            layer_scale=True,
            vector=vector,
            head=OutputHead(kind="sequence", classes=3, read="vector", dense=True),
        )
        for vector in (TextVector(norm=True), TextVector(("first",)), TextVector(("max",), norm=True))
    },
    "encoder-decoder": config("relative", encoder=Encoder(layers=2, attention=Attention(heads=4, mask="full"))),
    "encoder-decoder, norm after": config(
        "sinusoidal", norm=Norm(place="after"), encoder=Encoder(layers=2, attention=Attention(heads=4, mask="full"))
    ),
}


def run_of(model: Transformer, **options: Any) -> Any:
    return run(model, IDS, **options)


def logit_of(trace: Any, row: int, id: int, kind: str) -> float:
    logits = trace["logits"][0]
    return float(logits[id] if logits.dim() == 1 else logits[id, row] if kind == "span" else logits[row, id])


@pytest.mark.parametrize("name", KINDS)
def test_terms_add_up_to_the_logit_and_to_the_score_in_every_kind_of_model(name: str) -> None:
    made = tiny.model(KINDS[name])
    kind, cap = made.config.head.kind, made.config.head.softcap
    for edits in ((), (AttentionTemperature(2.0), SilenceHeads(1, [2]), Scale("blocks.1.resid_pre", 1.5))):
        if edits and made.config.encoder:
            edits = (AttentionTemperature(2.0),)
        trace = run_of(made, edits=edits)
        row = 0 if kind in ("sequence", "span") else trace["logits"].shape[1] - 1
        found = attribute(made, trace, row, 2)
        assert found.logit == pytest.approx(sum(found.values.values()))
        lean = run_of(made, edits=edits, keep=read_hooks(made))
        assert not any(name.endswith("pattern") for name in lean)
        assert attribute(made, lean, row, 2).logit == pytest.approx(found.logit, rel=1e-5, abs=1e-4)
        logit = logit_of(trace, row, 2, kind)
        capped = found.logit if cap is None else cap * math.tanh(found.logit / cap)
        assert capped == pytest.approx(logit, rel=5e-6, abs=1e-4)
        both = attribute(made, trace, row, 2, against=1)
        other = attribute(made, trace, row, 1)
        assert both.logit == pytest.approx(found.logit - other.logit, abs=1e-6)
        head = next(iter(found.heads))
        sources = split_sources(made, trace, found, head)
        if not edits:
            assert float(sources.sum()) == pytest.approx(found.values[head], abs=1e-5)
            assert Writer("edit") not in found.values
        across = [("encoder", False), ("decoder", False), ("decoder", True)]
        sides = [("", False)] if made.config.encoder is None else across
        for side, crosses in sides:
            score = split_score(made, trace, 1, 3, 0, 0, side, crosses)
            size = max(1.0, float(score.values.abs().sum()))
            assert float(score.values.sum()) == pytest.approx(score.score, abs=1e-5 * size)
            assert score.terms.keys() - {"scores"} == {*made.config.positions.named_terms}
            for term, there in {
                "scores": score.values[:-1, :-1],
                "c2p": score.values[:-1, -1:],
                "p2c": score.values[-1:],
            }.items():
                assert term not in score.terms or float(there.sum()) == pytest.approx(
                    score.terms[term], abs=1e-5 * size
                )


@pytest.mark.parametrize("name", SHIPPED)
def test_terms_add_up_in_shipped_models(name: str) -> None:
    checkpoint = load(name)
    reading = next(samples(checkpoint, 1, 24))
    trace = run(checkpoint.model, reading.read, target=reading.target)
    logits = trace["logits"][0]
    row, id = (0, int(logits.argmax())) if logits.dim() == 1 else (len(logits) - 1, int(logits[-1].argmax()))
    found = attribute(checkpoint.model, trace, row, id)
    assert found.logit == pytest.approx(float(logits[row, id] if logits.dim() == 2 else logits[id]), abs=1e-4)
    side = "decoder" if checkpoint.model.config.encoder else ""
    score = split_score(checkpoint.model, trace, 2, 1, row, 0, side)
    assert float(score.values.sum()) == pytest.approx(score.score, abs=1e-4)


def test_in_a_model_that_is_linear_a_term_is_what_silencing_the_head_takes_away() -> None:
    made = tiny.model(config("none", norm=Norm(kind="none"), mlp=None, layers=1))
    trace = run_of(made)
    found = attribute(made, trace, 7, 4)
    for head in range(4):
        without = run_of(made, edits=[SilenceHeads(0, [head])])
        drop = float(trace["logits"][0, 7, 4] - without["logits"][0, 7, 4])
        assert found.values[Writer("head", 0, head)] == pytest.approx(drop, abs=1e-5)


@pytest.mark.parametrize(
    ("place", "sublayers"),
    [("before", "sequential"), ("around", "sequential"), ("output", "sequential"), ("before", "parallel")],
)
def test_what_a_head_gives_is_direct_by_norms_and_by_later_parts(place: NormPlace, sublayers: Sublayers) -> None:
    model = tiny.model(config("rotary", norm=Norm("rms", place), sublayers=sublayers))
    trace = run(model, [IDS])
    for layer in range(3):
        head = Writer("head", layer, 1)
        removed = ablate(model, trace, head)
        torch.testing.assert_close(removed.whole, trace["logits"])
        expected = run(model, [IDS], "logits", [SilenceHeads(layer, [1])])["logits"]
        assert torch.equal(removed.without, expected)
        # By hand: the last stream less what the head wrote there, through the last norm anew.
        written = torch.einsum("pd,dm->pm", trace[f"blocks.{layer}.attn.z"][0, :, 1], writing_rows(model, layer)[1])
        if place == "before":
            read = model.final_norm(trace["blocks.2.resid_post"][0] - written)
            torch.testing.assert_close(removed.held[0], model.head(read[None], model.table)[0], atol=1e-5, rtol=1e-5)
    last = ablate(model, trace, Writer("head", 2, 1))
    assert list_later(model, Writer("head", 2, 1)) and not torch.equal(last.held, last.whole)


def test_in_a_model_of_one_layer_without_mlps_no_later_part_makes_up_for_a_head() -> None:
    model = tiny.model(config("rotary", layers=1, mlp=None))
    removed = ablate(model, run(model, [IDS]), Writer("head", 0, 1))
    assert torch.equal(removed.held, removed.without) and not torch.equal(removed.held, removed.whole)


def test_terms_are_those_of_the_published_definition() -> None:
    """TransformerLens, `ActivationCache.logit_attrs` on `apply_ln_to_stack`: each part centred, divided by the scale of
    the last norm, times the weights that lead to the token."""
    made = tiny.model(config(norm=Norm()))
    trace, row, id = run_of(made, keep=["*", "*.head_out"]), 5, 3
    weights = made.state_dict()
    scale = trace["final_norm.scale"][0, row]
    direction = weights["final_norm.weight"] * weights["embed.tokens.weight"][id]
    parts = {
        Writer("token"): trace["embed.tokens"], Writer("position"): trace["embed.positions"],
        **{Writer("head", layer, head): trace[f"blocks.{layer}.attn.head_out"][:, :, head]
           for layer in range(3) for head in range(4)},
        **{Writer("MLP", layer): trace[f"blocks.{layer}.mlp.out"] - weights[f"blocks.{layer}.mlp.out.bias"]
           for layer in range(3)},
    }  # fmt: skip
    found = attribute(made, trace, row, id).values
    for writer, part in parts.items():
        vector = part[0, row]
        assert found[writer] == pytest.approx(float((vector - vector.mean()) / scale @ direction), abs=1e-4)
    assert found.keys() - parts.keys() == {Writer("bias"), *(Writer("bias", layer) for layer in range(3))}


def test_a_score_is_split_as_the_matrices_say() -> None:
    """Without norms and biases the pair (token, token) is W_E[q] W_Q W_K^T W_E[k] / sqrt(d_head), and a head of the
    layer before writes its mixture times W_O."""
    made = tiny.model(config("learned", {"bias": False, "out_bias": False}, norm=Norm(kind="none"), mlp=None))
    trace = run_of(made, keep=["*", "*.head_out"])
    layer, head, pos, key, width = 1, 2, 6, 3, 4
    weights = made.state_dict()
    rows = slice(head * width, (head + 1) * width)
    q, k = weights["blocks.1.attn.q.weight"][rows], weights["blocks.1.attn.k.weight"][rows]
    found = split_score(made, trace, layer, head, pos, key)
    written = {Writer("token"): trace["embed.tokens"], Writer("position"): trace["embed.positions"]}
    written |= {Writer("head", 0, one): trace["blocks.0.attn.head_out"][:, :, one] for one in range(4)}
    for i, left in enumerate(found.queries):
        for j, right in enumerate(found.keys):
            if left in written and right in written:
                wanted = (q @ written[left][0, pos]) @ (k @ written[right][0, key]) / width**0.5
                assert float(found.values[i, j]) == pytest.approx(float(wanted), abs=1e-5)
    assert found.seen and not split_score(made, trace, layer, head, 3, 6).seen


def test_what_there_is_not_is_refused_in_a_sentence() -> None:
    made = tiny.model(config())
    trace = run_of(made)
    for row, id, against, why in [
        (9, 0, None, "a row must be 0 to 7, got 9"),
        (0, 11, None, "a candidate must be 0 to 10, got 11"),
        (0, 2, 2, "must differ, got the same twice"),
    ]:
        with pytest.raises(ValueError, match=why):
            attribute(made, trace, row, id, against)
    with pytest.raises(ValueError, match="has no head"):
        headless = tiny.model(replace(tiny.CONFIG, head=OutputHead(kind="none")))
        attribute(headless, run_of(headless), 0, 0)
    with pytest.raises(ValueError, match="only a head has sources, got MLP"):
        split_sources(made, trace, attribute(made, trace, 0, 0), Writer("MLP", 0))
    with pytest.raises(ValueError, match="head must be 0 to 3, got 4"):
        split_score(made, trace, 0, 4, 0, 0)
    with pytest.raises(ValueError, match="edits of this run change queries, keys"):
        split_score(made, run_of(made, edits=[Scale("blocks.1.attn.q", 2.0)]), 1, 0, 3, 0)
    with pytest.raises(ValueError, match="a position must be 0 to 7, got 8"):
        split_score(made, trace, 0, 0, 8, 0)
