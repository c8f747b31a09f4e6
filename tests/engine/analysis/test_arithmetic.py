"""Every hook of every family explains itself: what the named operands give is what the run stored."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest
import torch

from engine import load, run
from engine.analysis.answers import logistic
from engine.analysis.arithmetic import Explanation, explain, explain_candidate
from engine.edits import Scale, SilenceHeads
from engine.generation.sampling import Sampling, distribution
from engine.model.config import (
    Attention,
    Embedding,
    Encoder,
    Experts,
    Latent,
    Norm,
    OtherRotation,
    OutputHead,
    Patches,
    Positions,
    Probe,
    RotaryScaling,
    Sound,
    TextVector,
    VectorMap,
)
from engine.model.layers.mask import PaintedMask
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace
from tests.browser import zoo
from tests.engine import tiny
from tests.engine.tiny import IDS, config, model

TOLERANCE = 2e-5  # between a value recomputed in double precision and the one stored in single

ANGLES = Positions("rotary", other=OtherRotation((1,), 9.0, RotaryScaling("linear", 2.0, 8)))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    zoo.fill(folder)
    return folder


def elements(trace: Trace, hook: str, heads: int) -> set[tuple[int, int, int | None]]:
    """Some elements of a hook, the corners among them: position, component or key, head."""
    dims, value = trace.dims(hook), trace[hook]
    sizes = dict(zip(dims, value.shape, strict=True))
    rows = sizes.get("pos", sizes.get("patch", sizes.get("key", 1)) if dims[-1] != "key" else 1)
    last = 1 if dims[-1] in ("head", "pos") else value.shape[-1]
    chosen = [0, 1 % heads, heads - 1] if "head" in dims else [None]
    chosen = [0, sizes["slot"] - 1] if dims[-2:-1] == ("slot",) else chosen
    units = [0, 1 % last, last - 1]
    return {(pos, unit, head) for pos in (0, 2 % rows, rows - 1) for unit in units for head in chosen}


def assert_explained(model: Transformer, trace: Trace, hooks: list[str] | None = None) -> None:
    for hook in hooks or list(trace):
        attention = model.config.attention
        if hook.startswith("encoder.") and model.config.encoder is not None:
            attention = model.config.encoder.attention
        for pos, unit, head in elements(trace, hook, attention.heads):
            found = explain(model, trace, hook, pos, unit, head)
            agrees(found)


def agrees(found: Explanation) -> None:
    where = (found.hook, found.index, found.operation)
    assert found.lines, where
    if found.recomputed != found.stored:
        assert found.recomputed == pytest.approx(found.stored, rel=TOLERANCE, abs=TOLERANCE), where


@pytest.mark.parametrize("name", zoo.GIVEN)
def test_every_hook_of_every_family_explains_itself(name: str, models: Path) -> None:
    trace = zoo.traced(models, name)
    assert_explained(load(models / name).model, trace)


VARIANTS = {
    **{kind: {"positions": kind} for kind in ("learned", "sinusoidal", "rotary", "alibi", "relative", "none")},
    "grouped keys": {"positions": "rotary", "attention": {"kv_heads": 2, "qk_norm": "each"}},
    "norms over all heads": {"attention": {"kv_heads": 2, "qk_norm": "all"}},
    "norms over all heads, rotated": {"positions": "rotary", "attention": {"kv_heads": 2, "qk_norm": "all"}},
    "latent": {
        "attention": {"d_head": 10, "bias": False, "latent": Latent(7, 9, 6, bias=True)},
        "norm": Norm("rms"),
        "positions": Positions("rotary", turned=4),
    },
    "latent, queries of the stream": {
        "attention": {"bias": False, "latent": Latent(7)},
        "positions": Positions("rotary", turned=2),
    },
    "sinks": {"positions": "rotary", "attention": {"kv_heads": 2, "sinks": True, "window": 3}},
    "nearest keys": {"attention": {"nearest": 2}},
    "rotated otherwise in some layers": {"positions": ANGLES},
    "rotated in some layers": {"positions": Positions("rotary", other=OtherRotation((0, 2)))},
    "a window in some layers": {"attention": {"window": 3, "windowed": (1,)}},
    "no norm": {"norm": Norm("none")},
    "batch norm": {"norm": Norm("batch")},
    "norms around": {"norm": Norm("rms", place="around")},
    "norms around, parallel": {"norm": Norm("rms", place="around"), "sublayers": "parallel"},
    "norms of outputs": {"norm": Norm("rms", place="output")},
    "norms of outputs, parallel": {"norm": Norm("layer", place="output"), "sublayers": "parallel"},
    "norms without bias": {"norm": Norm(learned="weight")},
    "norms that learn nothing": {"norm": Norm(learned="none"), "attention": {"qk_norm": "head"}},
    "RMS norms that learn nothing, squared ReLU": {
        "norm": Norm("rms", "around", learned="none"),
        "mlp": tiny.MLP(12, "relu2"),
    },
    "what is added scaled": {"residual_scale": 0.3, "norm": Norm("rms", "around")},
    "what is added scaled, parallel": {"residual_scale": 0.3, "sublayers": "parallel"},
    "only what is added, scaled": {"residual_scale": 0.3, "residual": False},
    "experts": {"mlp": tiny.MLP(12, "silu", True, experts=Experts(5, 2, shared=7, shared_gate=True, dense=(1,)))},
    "experts of groups, limited": {
        "mlp": tiny.MLP(
            12,
            "silu",
            True,
            slope=1.7,
            limit=0.5,
            shift=1.0,
            experts=Experts(6, 3, "sigmoid", False, 2.5, True, 3, 2, 2, correction=True, shared=7),
        )
    },
    "no MLP": {"mlp": None},
    "no MLP, parallel": {"mlp": None, "sublayers": "parallel"},
    "no residual connections": {"residual": False},
    "layers that share a block": {"distinct": 1},
    "narrow vectors": {"embedding": Embedding(width=6)},
    "odd width of sinusoids": {"positions": "sinusoidal", "embedding": Embedding(width=7)},
    "one class at each position": {"attention": {"mask": "full"}, "head": OutputHead("token", 1, dense=True)},
    "learned positions, and a bias for each distance": {
        "positions": Positions("learned", relative_bias=True, buckets=6, farthest=8),
        "attention": {"mask": "full"},
    },
    "disentangled positions": {
        "positions": Positions("disentangled", buckets=4, farthest=8, normed=True),
        "attention": {"mask": "full", "nearest": 3},
    },
    "disentangled positions, keys of the distances alone": {
        "positions": Positions("disentangled", buckets=0, farthest=3, terms="c2p", own_maps=True, added=True),
        "attention": {"mask": "full"},
    },
    "no norm in layer 0, and a dense layer with a norm before the classes": {
        "norm": Norm(first=False, learned="weight"),
        "embedding": Embedding(norm=True),
        "attention": {"mask": "full", "window": 3, "windowed": (1,)},
        "head": OutputHead("sequence", 3, read="mean", dense=True, dense_bias=False, norm=True),
    },
    "sounds": {
        "attention": {"key_bias": False},
        "embedding": Embedding(sound=Sound(5, 6)),
        "encoder": Encoder(2, Attention(4, key_bias=False, mask="full"), tiny.MLP(12)),
    },
    "masks left out": {"attention": {"mask": "full"}, "embedding": Embedding(token_dropout=4, norm=True, scale=2.0)},
    "both directions, ALiBi": {"positions": "alibi", "attention": {"mask": "full"}},
    "a vector of the text": {
        "attention": {"mask": "full"},
        "norm": Norm(place="after"),
        "head": OutputHead("none"),
        "vector": TextVector(("mean", "max", "first"), (VectorMap(6, activation="tanh"), VectorMap(5, False)), True),
    },
    "vectors of tokens": {"head": OutputHead("none"), "vector": TextVector((), (VectorMap(4, False),), True)},
    "a vector that is asked for": {
        "head": OutputHead("none"),
        "vector": TextVector(("mean",), (VectorMap(3),), norm=True, probe=Probe(2, 9)),
    },
    "a vector of a mark": {"vector": TextVector(("first",), mark=IDS[2], norm=True)},
    "layers that scale what they add": {"layer_scale": True, "attention": {"mask": "full"}},
    "patches with registers, of another size": {
        "context": 3 + 16,
        "attention": {"mask": "full"},
        "head": OutputHead("none"),
        "embedding": Embedding(patches=Patches(8, 2, 1, registers=2, bias=False, mask=True, trained=6)),
    },
    "patches that turn by row and column": {
        "context": 2 + 9,
        "attention": {"mask": "full", "key_bias": False},
        "positions": Positions("rotary", grid=True),
        "d_model": 16,
        "head": OutputHead("none"),
        "embedding": Embedding(patches=Patches(6, 2, 1, registers=1)),
    },
    "one bias for the distances of patches, and patches pooled": {
        "context": 1 + 9,
        "attention": {"mask": "full", "key_bias": False},
        "positions": Positions("none", picture_bias="shared"),
        "norm": Norm(final=False),
        "head": OutputHead("sequence", 3, read="vector"),
        "vector": TextVector(("mean",), norm=True, patches=True),
        "embedding": Embedding(patches=Patches(6, 2, 1)),
    },
    "classes of the first position and the mean of the patches": {
        "context": 2 + 9,
        "attention": {"mask": "full"},
        "head": OutputHead("sequence", 3, read="vector"),
        "vector": TextVector(("first", "mean"), patches=True),
        "embedding": Embedding(patches=Patches(6, 2, 1, registers=1)),
    },
    "a bias of each layer for the distances of patches": {
        "context": 1 + 9,
        "attention": {"mask": "full", "key_bias": False},
        "positions": Positions("learned", picture_bias="each"),
        "head": OutputHead("none"),
        "embedding": Embedding(patches=Patches(6, 2, 1)),
    },
    "a vector beside a head": {"vector": TextVector(("weighted_mean", "last", "scaled_sum"))},
}


@cache
def variant(name: str) -> tuple[Transformer, Trace]:
    made = model(config(**VARIANTS[name]))
    if (patches := made.config.embedding.patches) is not None:
        return made, run(made, tiny.normal(1, patches.channels, patches.image, patches.image))
    if made.config.embedding.sound is not None:
        return made, run(made, tiny.normal(1, 5, 12), target=IDS)
    return made, run(made, IDS)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_hook_explains_itself(name: str) -> None:
    assert_explained(*variant(name))


@pytest.mark.parametrize("kind", ["rotary", "alibi", "learned"])
def test_hooks_that_are_made_on_request_explain_themselves(kind: str) -> None:
    made = model(config(head=OutputHead("language", softcap=9.0, scale=0.5), positions=kind))
    trace = run(made, IDS, keep=list(made.hook_names))
    assert {"head_out", "skip1", "skip2", "strength", "position_ids"} <= {hook.rpartition(".")[2] for hook in trace}
    assert_explained(made, trace)


def test_a_sinusoid_is_no_row_of_a_table() -> None:
    made, trace = variant("sinusoidal")
    found = explain(made, trace, "embed.positions", 3, 4)
    text = "".join(piece for line in found.lines for piece in line if isinstance(piece, str))
    assert found.operation == "sinusoid"
    assert "sin(pos / 10000^(2i/d)), pos = 3, i = 2, d = 16" in text and "W_P" not in text
    assert explain(*variant("learned"), "embed.positions", 3, 4).operands[0].place == "embed.positions.weight[3, 4]"


def test_operands_are_elements_of_what_they_name() -> None:
    """A hook's rows out of the trace, a parameter's out of the model."""
    for name in VARIANTS:
        made, trace = variant(name)
        parameters = dict(made.named_parameters(remove_duplicate=False))
        for hook in trace:
            pos, unit, head = max(elements(trace, hook, 4), key=str)
            for one in explain(made, trace, hook, pos, unit, head).operands:
                if not one.index:
                    continue
                held = parameters.get(one.source)
                if held is None:
                    held = trace[one.source][0] if "batch" in trace.dims(one.source) else trace[one.source]
                if one.label.startswith("e^"):
                    continue  # exponentials of the row that it names
                torch.testing.assert_close(held[one.index].double().reshape(-1), one.values, msg=f"{hook} {one.place}")


def test_heads_joined_are_the_elements_of_their_heads() -> None:
    made, trace = variant("rotary")
    joined = explain(made, trace, "blocks.1.attn.z", 3, 9)
    assert joined.index == explain(made, trace, "blocks.1.attn.z", 3, 1, head=2).index == (3, 2, 1)
    agrees(joined)


@pytest.mark.parametrize(
    ("hook", "pos", "unit", "head"),
    [("blocks.0.attn.q", 0, 4, 0), ("blocks.0.attn.q", 8, 0, 0), ("blocks.0.attn.q", 0, 0, 4), ("logits", 0, 11, None),
     ("logits", 0, -1, None), ("embed.tokens", -1, 0, None), ("head", 0, 0, None), ("blocks.9.attn.q", 0, 0, 0),
     ("__class__", 0, 0, None), ("blocks.0.attn.pattern", 0, 8, 1), ("blocks.0.attn.head_out", 0, 0, 0)],
)  # fmt: skip
def test_an_element_that_is_not_there_is_one_sentence(hook: str, pos: int, unit: int, head: int | None) -> None:
    with pytest.raises(ValueError, match=r"must be in|no hook|was not recorded"):
        explain(*variant("learned"), hook, pos, unit, head)


def test_an_edit_is_said_where_it_changes_the_element_itself() -> None:
    made = model(config("rotary"))
    trace = run(made, IDS, edits=[SilenceHeads(layer=1, heads=[2]), Scale("blocks.0.norm1.scale", 2.0)])
    silenced = explain(made, trace, "blocks.1.attn.z", 3, 1, head=2)
    assert silenced.edited and silenced.stored == 0 and silenced.recomputed != 0
    assert explain(made, trace, "blocks.0.norm1.out", 3, 1).edited
    assert not explain(made, trace, "blocks.1.norm1.out", 3, 1).edited
    agrees(explain(made, trace, "blocks.2.attn.out", 3, 1))


SAMPLINGS = [
    Sampling(), Sampling(0.7), Sampling(0), Sampling(2.0, 3), Sampling(0.7, 0, 0.6), Sampling(0.7, 5, 0.8),
    Sampling(1.0, 0, 1.0, 0.2), Sampling(1.0, 0, 1.0, 0.0, 0.7),
]  # fmt: skip


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_a_candidate_comes_to_its_probability(sampling: Sampling) -> None:
    made, trace = variant("learned")
    following = distribution(trace["logits"][0], sampling)
    for id in following.logits[-1].topk(6).indices.tolist():
        logit = explain(made, trace, "logits", len(IDS) - 1, id)
        found = explain_candidate(logit, following, len(IDS) - 1, id, sampling, "softmax")
        assert found.stored == float(following.probabilities[-1, id])
        assert found.recomputed == pytest.approx(found.stored, abs=TOLERANCE)


@pytest.mark.parametrize("temperature", [1.0, 0.4, 0.0])
def test_one_class_holds_or_does_not(temperature: float) -> None:
    made, trace = variant("one class at each position")
    following = logistic(trace["logits"][0], temperature)
    logit = explain(made, trace, "logits", 2, 0)
    found = explain_candidate(logit, following, 2, 0, Sampling(temperature), "logistic")
    assert found.recomputed == pytest.approx(float(following.probabilities[2, 0]), abs=TOLERANCE)
    assert explain_candidate(logit, following, 2, 0, Sampling(), "identity").recomputed == logit.recomputed


def test_a_row_in_which_nothing_is_allowed_is_zero() -> None:
    made = model(config(attention={"mask": "full"}))
    mask = torch.ones(8, 8, dtype=torch.bool)
    mask[2] = False
    trace = run(made, IDS, mask=PaintedMask(mask))
    found = explain(made, trace, "blocks.0.attn.pattern", 2, 1, head=0)
    assert found.recomputed == found.stored == 0
    assert explain(made, trace, "blocks.0.attn.masked_scores", 2, 1, head=0).recomputed == -math.inf
    assert_explained(made, trace)


def test_positions_that_are_cut_off_keep_their_own_rows() -> None:
    made = model(config())
    trace = run(made, IDS, logits_at=slice(-2, None))
    agrees(explain(made, trace, "logits", 1, 5))
    agrees(explain(made, trace, "final_norm.out", 0, 5))
