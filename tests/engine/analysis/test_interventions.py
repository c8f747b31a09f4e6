"""Sweeps: a batch of patches is the same as a run for each, and slopes are the limits of small patches."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import load, run
from engine.analysis.attribution import Hold
from engine.analysis.interventions.circuit import keep_parts, list_nodes, measure_circuits, trace_curve
from engine.analysis.interventions.edges import Node, check_edges, patch_paths
from engine.analysis.interventions.metric import Metric, log_distribution, read_row
from engine.analysis.interventions.pairs import (
    mean_values,
    nearest_token,
    partner_row,
    resample_values,
    salient_position,
    sum_values,
    take_from,
)
from engine.analysis.interventions.patching import Constant, FromRun, Origin, patch_block
from engine.analysis.interventions.sites import SITES, Site
from engine.analysis.interventions.sweep import Sweep
from engine.edits import ChangeToken, KeepParts, Patch, Replace, Scale, SilenceHeads, Source
from engine.model.config import OutputHead
from engine.model.hooks import HookPoint
from engine.model.transformer import Transformer
from tests.engine import tiny
from tests.engine.analysis.test_attribution import KINDS
from tests.engine.tiny import IDS

OTHER = [3, 1, 7, 1, 5, 9, 2, 6]


def sites_of(model: Transformer, side: str) -> list[Site]:
    """All but the MLP, where a stack has none."""
    prefix = f"{side}." if side else ""
    return [site for name, site in SITES.items() if name != "MLP" or f"{prefix}blocks.1.mlp.out" in model.hooks]


def pair_of(model: Transformer, **options: Any) -> tuple[Any, Any]:
    return run(model, IDS, **options), run(model, OTHER, **options)


@pytest.mark.parametrize("name", KINDS)
def test_a_batch_of_patches_is_a_run_for_each(name: str) -> None:
    model = tiny.model(KINDS[name])
    clean, other = pair_of(model, edits=() if model.config.encoder else (SilenceHeads(1, [2]),))
    row = 0 if model.config.head.kind in ("sequence", "span") else -1
    side, source = "encoder" if model.config.encoder else "", Source(IDS, edits=[one.to_dict() for one in clean.edits])
    sweep = Sweep(model, clean, other, "logit", row, 2)
    for site in sites_of(model, side):
        by: Any = ("head", "pos") if site.by_head else ("pos",)
        found = sweep.patch(site.name, by, side)
        hook = site.hook(model, 1, side).name
        for place in ((1, 2), (0, 7)) if site.by_head else ((2,), (7,)):
            edit = Patch(hook, source, dict(zip(by, place, strict=True)))
            alone = run(model, OTHER, ["logits"], [*other.edits, edit])
            expected = float(sweep.measure(read_row(model, alone, sweep.first_row))[0])
            assert float(found.measured[1, *place]) == pytest.approx(expected, abs=2e-4, rel=1e-4)
            assert float(found.effect[1, *place]) == pytest.approx(
                (expected - sweep.nothing) / sweep.span, abs=1e-3, rel=1e-3
            )
        same = found.moved == 0
        assert torch.equal(found.measured[same], torch.full_like(found.measured[same], sweep.nothing))


@dataclass(frozen=True)
class Share:
    """A small part of the way to where another origin leads."""

    origin: Origin
    share: float
    base: Any  # the run that the way begins at

    def values(self, hook: HookPoint, value: Tensor) -> tuple[Tensor, Tensor | None]:
        new, known = self.origin.values(hook, value)
        return value + self.share * (new - self.base[hook.name][:1]), known


@pytest.mark.parametrize("name", KINDS)
def test_slopes_are_the_limits_of_small_patches_and_of_small_paths(name: str) -> None:
    if KINDS[name].attention.latent or (KINDS[name].mlp and KINDS[name].mlp.experts):
        pytest.skip("a router chooses, and what is chosen has no slope")
    model = tiny.model(KINDS[name]).double()
    clean, other = pair_of(model)
    row = 0 if model.config.head.kind in ("sequence", "span") else -1
    sweep, side = Sweep(model, clean, other, "logit", row, 2), "encoder" if model.config.encoder else ""
    small = Share(sweep.origin, 1e-5, other)
    for site in sites_of(model, side):
        by: Any = ("head",) if site.by_head else ("pos",)
        exact = patch_block(model, other, small, site, 1, sweep.measure, sweep.rows[0], by, side).measured
        slopes = sweep.estimate(site.name, by, side)[1] * sweep.span
        torch.testing.assert_close((exact - sweep.nothing) / 1e-5, slopes, atol=1e-3, rtol=1e-3)
    try:
        check_edges(model.config)
    except ValueError:
        return
    for steps in (0, 2):
        edges = sweep.estimate_edges(steps)
        for reader in (Node("q", 1, 0), Node("k", 2, 0), Node("v", 1, 0), Node("output"), Node("MLP", 2)):
            if reader.part == "MLP" and model.config.mlp is None:
                continue
            limits = []
            for step in range(1, steps + 1) or [0]:
                first = "blocks.0.resid_pre"
                mixed = torch.lerp(other[first], clean[first], step / steps if steps else 0.0)
                between = run(model, OTHER, edits=[Hold({first: mixed})])
                nothing = sweep.measure(read_row(model, between, sweep.rows[0]))
                paths = patch_paths(
                    model, between, Share(FromRun(clean), 1e-5, other), reader, sweep.measure, sweep.rows[0]
                )
                limits.append((paths.values - nothing) / 1e-5)
            rows = [edges.writers.index(one) for one in paths.writers]
            columns = [edges.readers.index(one) for one in paths.readers]
            found = edges.values[rows][:, columns] * sweep.span
            torch.testing.assert_close(found, torch.stack(limits).mean(0), atol=1e-3, rtol=1e-3)


def test_nothing_is_0_and_everything_is_1_in_both_directions_by_every_metric() -> None:
    checkpoint = load("stories")
    encode, model = checkpoint.tokenizer.encode, checkpoint.model
    clean = run(model, encode("Max gave the red ball to Anna. Anna gave the ball to"))
    other = run(model, clean.encoding, edits=[ChangeToken(7, encode(" Tom", special=False).ids[0])])
    first, second = (encode(one, special=False).ids[0] for one in (" Anna", " Tom"))
    for metric in ("logit", "probability", "KL"):
        for direction in ("restore", "break"):
            sweep = Sweep(model, clean, other, metric, -1, first, second, direction)  # type: ignore[arg-type]
            effects = sweep.patch("stream", ("pos",)).effect
            assert float(effects[0, 7]) == pytest.approx(1, abs=1e-4) and effects[0].count_nonzero() == 1
    sweep = Sweep(model, clean, other, "logit", -1, first, second)
    heads = sweep.patch("z", ("head",)).effect
    assert int(heads.argmax()) == 15 and float(heads[3, 3]) > 0.9, "the head that copies the name"
    zero = Sweep(model, clean, Constant(), "logit", -1, first, second).patch("z", ("head",))
    silent = run(model, clean.encoding, edits=[SilenceHeads(3, [3])])["logits"][0, -1]
    assert float(zero.measured[3, 3]) == pytest.approx(float(silent[first] - silent[second]), abs=1e-4)
    means = mean_values(checkpoint, 2)
    assert sum_values(checkpoint, 1) is sum_values(checkpoint, 1) and means.means is not None and len(means.texts) == 2
    averaged = Sweep(model, clean, means, "logit", -1, first, second).patch("MLP", ("pos",))
    assert (averaged.moved > 0).all()
    assert checkpoint.tokenizer.decode([nearest_token(model, checkpoint.tokenizer, second)]).strip() != "Tom"
    assert salient_position(model, clean, 13, first, [13]) in range(13)


def test_values_of_drawn_texts_do_in_the_mean_what_each_does_alone() -> None:
    checkpoint = load("stories")
    model, text = checkpoint.model, checkpoint.tokenizer.encode("Max gave the red ball to Anna. Anna gave the ball to")
    clean = run(model, text)
    drawn = resample_values(checkpoint, clean, 3)
    sweep = Sweep(model, clean, drawn, "logit", -1, 300)
    found, hook = sweep.patch_layer("z", ("head",), 1), "blocks.1.attn.z"
    paths = sweep.patch_paths(Node("output"))
    each = [
        Replace(hook, one.values(model.hooks[hook], clean[hook])[0][:, :, 2].tolist(), {"head": 2})
        for one in drawn.runs
    ]
    alone = torch.stack([run(model, text, edits=[edit])["logits"][0, -1, 300] for edit in each])
    assert float(found.measured[2]) == pytest.approx(float(alone.mean()), abs=1e-4)
    assert float(found.effect[2]) == pytest.approx(float(alone.mean()) - sweep.nothing, abs=1e-4)
    assert paths.values.shape == (21, 1) and float(paths.values.abs().max()) > 0.1
    curve = trace_curve(sweep)
    assert curve.faithful[[0, -1]].tolist() == pytest.approx([0, 1], abs=1e-4)
    assert keep_parts(sweep, curve.nodes[:2]) is None
    with pytest.raises(ValueError, match="the other texts keep no pattern"):
        sweep.patch_layer("pattern", ("head",), 0)


def test_texts_of_unequal_length_are_aligned_or_refused_in_a_sentence() -> None:
    model = tiny.model()
    clean, longer = run(model, IDS), run(model, [3, 1, 4, 8, 1, 5, 9, 2, 6])
    sweep = Sweep(model, clean, longer, "logit", -1, 2)
    assert sweep.rows == (8, 7) and take_from(longer, clean).partners == {
        "": pytest.approx([0, 1, 2, -1, 3, 4, 5, 6, 7])
    }
    effects = sweep.patch("stream", ("pos",))
    assert effects.moved[0, 3] == 0 and effects.moved[:, 4].all()
    with pytest.raises(ValueError, match="as many tokens for their pattern, got 9 and 8"):
        sweep.check_site("pattern")
    with pytest.raises(ValueError, match="position 4 has none in the other text"):
        partner_row(longer, clean, 3, 9)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"other": "same"}, "Both runs read the same"),
        ({"against": 2}, "got the same twice"),
        ({"candidate": 2, "other": "idle"}, "Both runs have the same logit"),
        ({"metric": "rank", "call": "estimate"}, "has no gradient"),
        ({"call": "places"}, "not counted by head"),
        ({"call": "block"}, "no place of this model"),
    ],
)
def test_what_cannot_be_swept_is_told_in_a_sentence(given: dict[str, Any], says: str) -> None:
    model = tiny.model()
    clean, other = pair_of(model)
    if given.get("other") == "same":
        other = clean
    if given.get("other") == "idle":
        other = run(model, IDS, edits=[Scale("blocks.1.resid_pre", 1.0)])
    with pytest.raises(ValueError, match=says):
        sweep = Sweep(model, clean, other, given.get("metric", "logit"), -1, 2, given.get("against"))
        assert sweep.measure
        call = given["call"]
        if call == "estimate":
            sweep.estimate("z", ("head",))
        elif call == "places":
            sweep.patch("stream", ("head",))
        else:
            sweep.patch_layer("z", ("head",), 9)


def test_edges_are_of_models_whose_parts_read_sums() -> None:
    for name in ("encoder-decoder", "layer norm around", "rms norm after"):
        with pytest.raises(ValueError, match="Edges are"):
            check_edges(KINDS[name])
    half = tiny.model(replace(KINDS["rotary"])).bfloat16()
    clean, other = pair_of(half)
    edges = Sweep(half, clean, other, "logit", -1, 5).estimate_edges()
    assert edges.values.dtype == torch.float32 and edges.values[0].isfinite().all()
    assert edges.values[edges.writers.index(Node("MLP", 2)), edges.readers.index(Node("q", 0, 0))].isnan()
    assert Metric("logit", 2)(torch.eye(3)).tolist() == [0, 0, 1]


def test_a_class_that_holds_or_does_not_is_as_probable_as_its_own_logit_says() -> None:
    logits = torch.tensor([[1.0, -2.0]])
    assert Metric("probability", 1, link="logistic")(logits).tolist() == pytest.approx(logits[0, 1:].sigmoid().tolist())
    aim = log_distribution(torch.tensor([0.5, 0.0]), "logistic")
    p, q = torch.tensor([0.5, 0.0]).sigmoid(), logits[0].sigmoid()
    kl = (p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()).sum()
    assert float(Metric("KL", 0, None, aim, "logistic")(logits)) == pytest.approx(float(kl), abs=1e-6)


def test_a_circuit_alone_is_the_run_with_every_other_part_replaced() -> None:
    model = tiny.model()
    clean, other = pair_of(model)
    for direction in ("restore", "break"):
        sweep = Sweep(model, clean, other, "logit", -1, 2, None, direction)  # type: ignore[arg-type]
        nodes = list_nodes(model.config)
        kept = torch.rand(3, len(nodes), generator=torch.Generator().manual_seed(1)) > 0.5
        edits = []
        for layer in range(3):
            heads = [node.head for node, keep in zip(nodes, kept[1].tolist(), strict=True)
                     if (node.part, node.layer) == ("head", layer) and not keep]  # fmt: skip
            edits += [Patch(f"blocks.{layer}.attn.z", Source(OTHER), {"head": heads})] if heads else []
            if not kept[1, nodes.index(Node("MLP", layer))]:
                edits.append(Patch(f"blocks.{layer}.mlp.out", Source(OTHER)))
        alone = float(run(model, IDS, ["logits"], edits)["logits"][0, -1, 2])
        assert float(measure_circuits(sweep, kept)[1]) == pytest.approx(alone, abs=1e-4)
        curve = trace_curve(sweep)
        assert curve.sizes == tuple(range(len(nodes) + 1)) and curve.random.shape == (len(nodes) + 1, 8)
        assert curve.faithful[[0, -1]].tolist() == pytest.approx([0, 1], abs=1e-4) == curve.left[[-1, 0]].tolist()
    pooled = OutputHead("masked", bias=True, pooler=True, next_sentence=True)
    bert = tiny.model(replace(tiny.CONFIG, attention=replace(tiny.CONFIG.attention, mask="full"), head=pooled))
    for kind in (model, bert, tiny.model(KINDS["encoder-decoder"])):
        clean, other = pair_of(kind)
        texts = Source(OTHER), Source(IDS[:5], segments=[0, 0, 1, 1, 1])
        hooks = [name for name in kind.hooks if name.endswith((".z", "mlp.out"))]
        runs = [run(kind, one.read, hooks) for one in texts]
        means = {name: torch.cat([one[name][0] for one in runs]).mean(0) for name in hooks}
        row = clean["logits"].shape[1] // 2
        for source in (other, Constant(), Constant(means, texts)):
            sweep = Sweep(kind, clean, source, "logit", row, 2, None, "break")
            nodes = list_nodes(kind.config)
            kept = torch.rand(1, len(nodes), generator=torch.Generator().manual_seed(1)) > 0.5
            for alone in (True, False):
                edit = keep_parts(
                    sweep, [node for node, keep in zip(nodes, kept[0].tolist(), strict=True) if keep], alone
                )
                assert edit is not None
                expected = float(measure_circuits(sweep, kept == alone)[0])
                assert float(run(kind, IDS, ["logits"], [edit])["logits"][0, row, 2]) == pytest.approx(
                    expected, abs=1e-4
                )
    with pytest.raises(ValueError, match="holds no value at each position"):
        run(model, IDS, edits=[KeepParts({"blocks.0.attn.pattern": [0]})])
    with pytest.raises(ValueError, match="has no heads"):
        run(model, IDS, edits=[KeepParts({"blocks.0.mlp.out": [0]}, "zero")])
    with pytest.raises(ValueError, match="as many tokens, got 5 for 8"):
        run(model, IDS, edits=[KeepParts({"blocks.0.mlp.out": []}, "patch", Source(IDS[:5]))])
    model = tiny.model()
    clean, other = pair_of(model)
    with pytest.raises(ValueError, match="The logit is the same, .*, with every head and MLP replaced"):
        trace_curve(Sweep(model, clean, run(model, IDS, edits=[Scale("final_norm.out", 2.0)]), "logit", -1, 2))
