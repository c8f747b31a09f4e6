"""Summaries made during a run are those of what the run would have kept, and the run keeps no more than it says."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

import engine.model.layers.attention
from engine.analysis.effects import layer_pattern_change, pattern_change
from engine.analysis.heads import scores
from engine.analysis.summarised_run import glance, head_pattern, rerun_reduced, run_reduced, streams
from engine.analysis.tiles import overview, top_keys
from engine.attention_variants.measure import PeakBytes
from engine.edits import AttentionTemperature, DrawMask, Replace, Scale, SilenceHeads
from engine.model.transformer import Transformer
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.twins import twins

SOURCE, TARGET = [5, 6, 7, 8, 9], [3, 4, 5]
MODELS: dict[str, tuple[Callable[[], Transformer], list[int], dict]] = {
    "learned": (tiny.model, tiny.IDS, {}),
    "rotary": (lambda: tiny.model(tiny.config("rotary")), tiny.IDS, {}),
    "alibi": (lambda: tiny.model(tiny.config("alibi")), tiny.IDS, {}),
    "norm after": (lambda: tiny.model(tiny.config(norm=tiny.Norm(place="after"))), tiny.IDS, {}),
    "two stacks": (lambda: twins("t5")[0].model, SOURCE, {"target": TARGET}),
    "two stacks, norm after": (lambda: twins("bart")[0].model, SOURCE, {"target": TARGET}),
}


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[Transformer, list[int], dict]:
    make, ids, options = MODELS[request.param]
    return make(), ids, options


def patterns(model: Transformer) -> list[str]:
    return [name for name in model.hook_names if name.endswith("attn.pattern")]


def test_a_glance_is_what_the_whole_run_kept(case) -> None:
    model, ids, options = case
    whole = run(model, ids, ["logits", "*attn.pattern"], **options)
    hook = patterns(model)[-1]
    seen = glance(model, ids, hook, 1, cells=3, **options)
    assert torch.equal(seen.pattern, whole[hook][0, 1])
    assert sorted(seen.overviews) == sorted(patterns(model))
    for name, drawn in seen.overviews.items():
        assert torch.equal(drawn, overview(whole[name][0], 3))
    assert torch.allclose(seen.trace["logits"], whole["logits"], atol=1e-6)


def test_the_trace_of_a_glance_holds_what_it_names_and_no_pattern(case) -> None:
    model, ids, options = case
    trace = glance(model, ids, patterns(model)[0], 0, **options).trace
    assert set(trace) == {"logits", *streams(model)}
    with pytest.raises(KeyError, match="was not recorded"):
        trace[patterns(model)[0]]


def test_another_head_is_had_from_a_glance(case) -> None:
    model, ids, options = case
    whole = run(model, ids, **options)
    seen = glance(model, ids, patterns(model)[0], 0, **options)
    for name in patterns(model):
        for head in (0, 3):
            found = head_pattern(model, ids, name, head, seen.trace, **options)
            assert torch.allclose(found, whole[name][0, head], atol=1e-6)


@pytest.mark.parametrize(
    "edit",
    [
        AttentionTemperature(0.3),
        SilenceHeads(1, [0, 2]),
        Scale("blocks.0.resid_pre", 3.0),
        DrawMask(2, [[i == j for j in range(8)] for i in range(8)]),
    ],
    ids=lambda edit: type(edit).__name__,
)
def test_edits_reach_what_is_summarised_and_what_is_had_later(edit) -> None:
    model = tiny.model()
    whole = run(model, tiny.IDS, ["logits", "*.pattern"], [edit])
    assert not torch.equal(whole["logits"], run(model, tiny.IDS)["logits"])
    seen = glance(model, tiny.IDS, "blocks.2.attn.pattern", 3, edits=[edit])
    assert torch.equal(seen.pattern, whole["blocks.2.attn.pattern"][0, 3])
    for layer in range(3):
        name = f"blocks.{layer}.attn.pattern"
        later = head_pattern(model, tiny.IDS, name, 1, seen.trace, [edit])
        assert torch.allclose(later, whole[name][0, 1], atol=1e-6)


def test_any_function_of_any_hook_can_be_kept() -> None:
    model = tiny.model()
    ids = torch.tensor(tiny.IDS)
    whole = run(model, tiny.IDS)
    wanted: dict[str, Callable[[Tensor], object]] = {
        "*.pattern": lambda pattern: (scores(pattern[0], ids), top_keys(pattern[0], 3)),
        "blocks.1.mlp.post": partial(torch.sum),
    }
    trace, found = run_reduced(model, tiny.IDS, wanted, keep=["blocks.0.attn.q", "blocks.1.mlp.post"])
    assert set(trace) == {"blocks.0.attn.q", "blocks.1.mlp.post"}
    assert torch.equal(found.pop("blocks.1.mlp.post"), whole["blocks.1.mlp.post"].sum())
    for name, (measured, top) in found.items():
        pattern = whole[name][0]
        assert torch.allclose(measured.first, pattern[:, 1:, 0].mean(-1))
        assert torch.equal(top.weight, pattern.sort(descending=True).values[..., :3])


def test_only_the_layers_that_are_looked_at_are_computed_explicitly(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    fused = engine.model.layers.attention.scaled_dot_product_attention

    def counted(*given, **options) -> Tensor:
        calls.append(None)
        return fused(*given, **options)

    monkeypatch.setattr(engine.model.layers.attention, "scaled_dot_product_attention", counted)
    run_reduced(tiny.model(), tiny.IDS, {"blocks.1.attn.pattern": torch.sum})
    assert len(calls) == 2


def test_what_is_had_later_computes_its_own_layer_and_stops() -> None:
    model = tiny.model()
    seen = glance(model, tiny.IDS, "blocks.0.attn.pattern", 0)
    ran: list[int] = []
    for layer, block in enumerate(model.blocks):
        block.attn.q.register_forward_hook(lambda *_, layer=layer: ran.append(layer))
        block.mlp.register_forward_hook(lambda *_, layer=layer: ran.append(-layer))
    head_pattern(model, tiny.IDS, "blocks.1.attn.pattern", 0, seen.trace)
    assert ran == [1]


def test_what_the_base_holds_is_not_computed_again() -> None:
    model = tiny.model()
    base = run(model, tiny.IDS)
    model.blocks[0].attn.q.register_forward_hook(lambda *_: pytest.fail("layer 0 was computed again"))
    found = rerun_reduced(model, tiny.IDS, {"*.pattern": torch.sum}, base)
    assert found == {f"blocks.{layer}.attn.pattern": base[f"blocks.{layer}.attn.pattern"].sum() for layer in range(3)}


def test_a_base_that_kept_too_little_or_read_something_else_is_refused() -> None:
    model = tiny.model()
    little = run(model, tiny.IDS, keep="logits")
    with pytest.raises(ValueError, match=r"must have recorded blocks\.1\.resid_post"):
        head_pattern(model, tiny.IDS, "blocks.2.attn.pattern", 0, little)
    with pytest.raises(ValueError, match="same tokens"):
        head_pattern(model, tiny.IDS[:4], "blocks.0.attn.pattern", 0, little)


@pytest.mark.parametrize(
    ("hook", "head", "message"),
    [
        ("blocks.1.attn.pattern", 4, r"must be in 0\.\.3, got 4"),
        ("blocks.1.attn.pattern", -1, r"must be in 0\.\.3, got -1"),
        ("*.attn.pattern", 0, "one layer's pattern"),
        ("blocks.1.attn.scores", 0, "one layer's pattern"),
    ],
)
def test_a_head_that_is_not_there_is_refused_before_the_run(hook: str, head: int, message: str) -> None:
    model = tiny.model()
    model.embed.register_forward_hook(lambda *_: pytest.fail("it ran"))
    with pytest.raises(ValueError, match=message):
        glance(model, tiny.IDS, hook, head)


def test_a_glance_holds_the_scores_of_one_layer_at_a_time() -> None:
    config = tiny.config(context=256, layers=8)
    model = tiny.model(config)
    ids = torch.randint(11, (1, 256), generator=torch.Generator().manual_seed(0))
    layer = 4 * 256 * 256 * 4  # bytes of one tensor of scores
    with PeakBytes() as seen:
        kept = glance(model, ids, "blocks.3.attn.pattern", 1)
    assert seen.peak < 5 * layer  # scores, masked scores, pattern, and what is small
    assert kept.pattern.untyped_storage().nbytes() == layer / 4
    with PeakBytes() as whole:
        run(model, ids, keep=["logits", "*.pattern"])
    assert whole.peak > 8 * layer


def test_a_glance_from_another_makes_again_only_what_the_edits_change(case) -> None:
    model, ids, options = case
    hooks = patterns(model)
    plain = glance(model, ids, hooks[0], 1, **options)
    stack = "decoder" if "target" in options else None
    layers = [name for name in hooks if name.startswith(f"{stack}." if stack else "blocks")]
    last = int(layers[-1].split("blocks.")[1].split(".")[0])
    edits = [SilenceHeads(last, [0], "uniform", stack=stack)]
    for hook in (hooks[0], hooks[-1]):
        found, whole = (glance(model, ids, hook, 1, 64, (), edits, base, **options) for base in (plain, None))
        assert found.trace.start == len({name.rsplit(".", 2)[0] for name in hooks}) - 1 and whole.trace.start == 0
        assert torch.allclose(found.pattern, whole.pattern, atol=1e-6)
        assert found.overviews.keys() == whole.overviews.keys()
        for name, drawn in whole.overviews.items():
            assert int((found.overviews[name].int() - drawn.int()).abs().max()) <= 1
        for name in streams(model):
            assert torch.allclose(found.trace[name], whole.trace[name], atol=1e-5)


def test_what_edits_did_to_the_patterns_of_a_long_text_is_what_they_did_to_the_whole_runs(case) -> None:
    model, ids, options = case
    attentions = ("encoder.attn", "decoder.attn", "decoder.cross_attn") if "target" in options else ("attn",)
    edits = [Replace(f"{'decoder.' if 'target' in options else ''}blocks.1.resid_pre", [1.0, -1.0] * 8, {"pos": 1})]
    whole = [run(model, ids, edits=made, **options) for made in ((), edits)]
    hook = patterns(model)[0]
    before, after = (glance(model, ids, hook, 0, 64, (), made, **options).trace for made in ((), edits))
    for name in attentions:
        side, _, focus = name.rpartition(".")
        mine = [one for one in patterns(model) if one.startswith(side) and one.endswith(f".{focus}.pattern")]
        found = torch.stack([layer_pattern_change(model, ids, one, before, after, **options) for one in mine])
        expected = pattern_change(*whole, f"{name}.pattern")
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
        assert side == "encoder" or bool(found[1:].any())
