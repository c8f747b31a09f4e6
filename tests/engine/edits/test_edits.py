import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.edits import (
    AddDirection,
    AddNoise,
    ApplyAdapter,
    AttentionTemperature,
    ChangeToken,
    DrawMask,
    DrawPattern,
    DropPositions,
    Edit,
    KeepParts,
    PaintMask,
    PaintPattern,
    Patch,
    PresetMask,
    ProjectOut,
    QuantiseMaps,
    Replace,
    Scale,
    SendTokens,
    SetPattern,
    ShiftPositions,
    SilenceExperts,
    SilenceHeads,
    Source,
    Steer,
    SwapPositions,
    UseExperts,
    edit_from_dict,
)
from engine.model.config import Encoder
from engine.model.hooks import HookPoint
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny

CAUSAL = torch.ones(8, 8, dtype=torch.bool).tril()


def both(*edits: Edit) -> tuple[Trace, Trace]:
    """The run without and with the edits."""
    model = tiny.model()
    return run(model, tiny.IDS), run(model, tiny.IDS, edits=edits)


def test_zero_silences_exactly_the_named_heads() -> None:
    plain, edited = both(SilenceHeads(1, [0, 3]))
    z = plain["blocks.1.attn.z"].clone()
    z[:, :, [0, 3]] = 0
    assert torch.equal(edited["blocks.1.attn.z"], z)
    assert torch.equal(edited["blocks.0.attn.z"], plain["blocks.0.attn.z"])
    out = z.flatten(2) @ tiny.model().blocks[1].attn.out.weight.T + tiny.model().blocks[1].attn.out.bias
    torch.testing.assert_close(edited["blocks.1.attn.out"], out, atol=1e-5, rtol=0)
    assert not torch.equal(edited["logits"], plain["logits"])


def test_a_direction_is_projected_out_and_added_at_the_named_positions() -> None:
    hook, direction = "blocks.1.resid_pre", [3.0, 4.0, *[0.0] * 14]
    unit = torch.tensor(direction) / 5
    plain, edited = both(ProjectOut(hook, direction))
    torch.testing.assert_close(edited[hook] @ unit, torch.zeros(1, 8), atol=1e-5, rtol=0)
    torch.testing.assert_close(edited[hook][..., 2:], plain[hook][..., 2:])
    _, edited = both(ProjectOut(hook, direction, {"pos": [2]}, 7.0), AddDirection(hook, direction, {"pos": [4]}, 0.5))
    expected = plain[hook] @ unit
    expected[0, 2], expected[0, 4] = 7, expected[0, 4] + 0.5
    torch.testing.assert_close(edited[hook] @ unit, expected, atol=1e-5, rtol=0)
    point = tiny.model().hooks[hook]
    assert ProjectOut(hook, direction).reach(point) == "each"
    assert AddDirection(hook, direction, {"pos": -1}).is_anchored(point)
    for edit, why in [
        (AddDirection(hook, [1.0]), "must be 16 numbers"),
        (ProjectOut("*.pattern", [1.0]), "no vectors"),
    ]:
        with pytest.raises(ValueError, match=why):
            both(edit)


def test_noise_is_the_same_for_the_same_seed_and_as_large_as_it_says() -> None:
    hook = "blocks.1.resid_pre"
    plain, once = both(AddNoise(hook, 3.0, 1, {"pos": [2, 5]}))
    _, again = both(AddNoise(hook, 3.0, 1, {"pos": [2, 5]}))
    _, other = both(AddNoise(hook, 3.0, 2))
    added = once[hook] - plain[hook]
    assert torch.equal(once[hook], again[hook]) and added[0].any(-1).nonzero().flatten().tolist() == [2, 5]
    assert 2 < float((other[hook] - plain[hook]).std()) < 4 and not torch.equal(other[hook][0, 2], once[hook][0, 2])
    with pytest.raises(ValueError, match="no vectors to add noise to"):
        both(AddNoise("*.pattern", 1.0))


def test_mean_gives_a_head_its_average_at_every_position() -> None:
    plain, edited = both(SilenceHeads(2, [1], how="mean"))
    z = plain["blocks.2.attn.z"].clone()
    z[:, :, 1] = z[:, :, 1].mean(1, keepdim=True)
    torch.testing.assert_close(edited["blocks.2.attn.z"], z)


def test_uniform_lets_a_head_attend_equally_to_what_it_may_see() -> None:
    plain, edited = both(SilenceHeads(0, [2], how="uniform"))
    pattern = plain["blocks.0.attn.pattern"].clone()
    pattern[:, 2] = CAUSAL / torch.arange(1, 9)[:, None]
    torch.testing.assert_close(edited["blocks.0.attn.pattern"], pattern)


@pytest.mark.parametrize(("layer", "heads"), [(None, None), (1, None), (1, [0, 2]), (None, [3])])
def test_attention_temperature_divides_the_scores_of_its_layers_and_heads(
    layer: int | None, heads: list[int] | None
) -> None:
    plain, edited = both(AttentionTemperature(2.5, layer, heads))
    hot_layers = [0, 1, 2] if layer is None else [layer]
    for number in range(3):
        name = f"blocks.{number}.attn."
        divisor = torch.ones(4)
        if number in hot_layers:
            divisor[[0, 1, 2, 3] if heads is None else heads] = 2.5
        assert torch.equal(edited[name + "temperature"], divisor)
        pattern = (edited[name + "masked_scores"] / divisor[:, None, None]).softmax(-1)
        torch.testing.assert_close(edited[name + "pattern"], pattern, atol=1e-6, rtol=0)
    first = min(hot_layers)
    assert torch.equal(edited[f"blocks.{first}.attn.scores"], plain[f"blocks.{first}.attn.scores"])


@pytest.mark.parametrize("heads", [None, [1]])
def test_a_drawn_mask_replaces_that_of_its_heads(heads: list[int] | None) -> None:
    drawn = torch.eye(8, dtype=torch.bool)
    drawn[:, 0] = True
    plain, edited = both(DrawMask(1, drawn.tolist(), heads))
    mask = CAUSAL.expand(1, 4, 8, 8).clone()
    mask[:, heads if heads else slice(None)] = drawn
    assert torch.equal(edited["blocks.1.attn.mask"], mask)
    scores = plain["blocks.1.attn.scores"].masked_fill(~mask, float("-inf"))
    torch.testing.assert_close(edited["blocks.1.attn.pattern"], scores.softmax(-1), atol=1e-6, rtol=0)
    assert torch.equal(edited["blocks.2.attn.mask"], plain["blocks.2.attn.mask"])


@pytest.mark.parametrize(
    ("at", "index"),
    [
        ({}, (slice(None),)),
        ({"pos": 3}, (slice(None), 3)),
        ({"pos": [1, 2], "head": 0}, (slice(None), [1, 2], 0)),
        ({"head": [0, 2], "d_head": [3, 1]}, (slice(None), slice(None), [[0], [2]], [[3, 1]])),
        ({"batch": 0, "pos": [7], "head": [1]}, (0, [[7]], [[1]])),
        ({"pos": -1}, (slice(None), -1)),
    ],
    ids=repr,
)
def test_scale_and_replace_change_what_at_picks_and_nothing_else(at: dict[str, Any], index: Any) -> None:
    plain, scaled = both(Scale("blocks.1.attn.q", -2.0, at))
    expected = plain["blocks.1.attn.q"].clone()
    expected[index] *= -2.0
    assert torch.equal(scaled["blocks.1.attn.q"], expected)
    _, replaced = both(Replace("blocks.1.attn.q", 0.25, at))
    expected[index] = 0.25
    changed = replaced["blocks.1.attn.q"] != plain["blocks.1.attn.q"]
    assert torch.equal(replaced["blocks.1.attn.q"], torch.where(changed, expected, plain["blocks.1.attn.q"]))
    assert torch.equal(replaced["blocks.1.attn.q"][index], expected[index])


def test_replace_takes_nested_lists_that_broadcast() -> None:
    plain, edited = both(Replace("blocks.0.attn.z", [[1.0, 2.0, 3.0, 4.0]], {"pos": 2, "head": [0, 1]}))
    expected = plain["blocks.0.attn.z"].clone()
    expected[:, 2, [0, 1]] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert torch.equal(edited["blocks.0.attn.z"], expected)


def test_edits_of_one_hook_apply_in_their_order() -> None:
    plain, edited = both(Scale("*.mlp.out", 2.0), Replace("*.hook_mlp_out", 1.0, {"pos": 0}))
    value = plain["blocks.0.mlp.out"] * 2
    value[:, 0] = 1.0
    assert torch.equal(edited["blocks.0.mlp.out"], value)


def test_an_edited_value_is_a_new_one() -> None:
    hook = HookPoint("z", "batch pos head d_head")
    value = tiny.normal(1, 8, 4, 4)
    before = value.clone()
    for how in ("zero", "mean"):
        SilenceHeads(0, [1], how=how).apply(hook, value)  # type: ignore[arg-type]
    Scale("z", 3.0, {"pos": 1}).apply(hook, value)
    Replace("z", 3.0).apply(hook, value)
    assert torch.equal(value, before)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (SilenceHeads(1, [4]), "head of blocks.1.attn.z must be in 0..3, got 4"),
        (Scale("blocks.1.attn.q", 1.0, {"pos": 8}), "pos of blocks.1.attn.q must be in 0..7, got 8"),
        (Scale("blocks.1.attn.q", 1.0, {"key": 0}), "axes batch, pos, head, d_head; there is no key"),
        (Replace("logits", [1.0, 2.0]), r"must broadcast to \(1, 8, 11\), got \(2,\)"),
        (DrawMask(0, [[True]]), r"shape \(pos, key\)=\(8, 8\), got \(1, 1\)"),
        (Scale("blocks.0.attn.mask", 2.0), "blocks.0.attn.mask is true or false and has no scale; use Replace"),
    ],
)
def test_an_edit_that_does_not_fit_the_value_says_so(edit: Edit, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        both(edit)


def test_an_edit_of_a_layer_there_is_not_names_the_layers_there_are() -> None:
    with pytest.raises(KeyError, match=r"no hook is called 'blocks.3.attn.z'.*blocks.\{0-2\}"):
        both(SilenceHeads(3, [0]))


TWO_STACKS = tiny.config(
    norm=tiny.Norm(place="after"), encoder=Encoder(2, tiny.Attention(2, mask="full"), tiny.MLP(12), start=1)
)
SOURCES, TARGETS = [[3, 1, 4, 1, 5, 9], [2, 6, 5]], [[1, 8, 2, 7], [1, 4, 3]]
TARGET_REAL = torch.tensor([[True] * 4, [True, True, True, False]])
PLACES: dict[str, dict[str, Any]] = {
    "encoder.blocks.1.attn": {"stack": "encoder"},
    "decoder.blocks.1.attn": {"stack": "decoder"},
    "decoder.blocks.1.cross_attn": {"stack": "decoder", "cross": True},
}


def translated(*edits: Edit) -> tuple[Trace, Trace]:
    """Of an encoder-decoder, the run without and with the edits."""
    model = tiny.model(TWO_STACKS)
    return run(model, SOURCES, target=TARGETS), run(model, SOURCES, target=TARGETS, edits=edits)


def changed(plain: Trace, edited: Trace, part: str) -> set[str]:
    return {name for name in plain if name.endswith(part) and not torch.equal(plain[name], edited[name])}


@pytest.mark.parametrize("how", ["zero", "mean", "uniform"])
@pytest.mark.parametrize("place", PLACES)
def test_heads_are_silenced_in_the_stack_and_the_attention_named(place: str, how: str) -> None:
    plain, edited = translated(SilenceHeads(1, [1], how=how, **PLACES[place]))
    z, real = plain[f"{place}.z"].clone(), plain.padding if place.startswith("encoder") else TARGET_REAL
    if how == "zero":
        z[:, :, 1] = 0
    elif how == "mean":
        for row in range(2):
            z[row, :, 1] = z[row, real[row], 1].mean(0)
    else:
        pattern = plain[f"{place}.mask"][:, 1].float()
        z[:, :, 1] = (pattern / pattern.sum(-1, keepdim=True)) @ plain[f"{place}.v"][:, :, 1]
    torch.testing.assert_close(edited[f"{place}.z"], z, atol=1e-5, rtol=0)
    first = [name for name in plain if name.endswith(".z")].index(f"{place}.z")
    before = [name for name in plain if name.endswith(".z")][:first]
    assert all(torch.equal(plain[name], edited[name]) for name in before)


@pytest.mark.parametrize(
    ("place", "touched"),
    [
        ({}, "encoder.blocks.{0,1}.attn decoder.blocks.{0,1,2}.attn decoder.blocks.{0,1,2}.cross_attn"),
        ({"stack": "encoder"}, "encoder.blocks.{0,1}.attn"),
        ({"stack": "decoder"}, "decoder.blocks.{0,1,2}.attn"),
        ({"cross": True}, "decoder.blocks.{0,1,2}.cross_attn"),
        ({"stack": "decoder", "cross": True}, "decoder.blocks.{0,1,2}.cross_attn"),
        ({"layer": 1, "stack": "encoder"}, "encoder.blocks.{1}.attn"),
        ({"layer": 2, "stack": "decoder"}, "decoder.blocks.{2}.attn"),
        ({"layer": 2, "cross": True}, "decoder.blocks.{2}.cross_attn"),
    ],
    ids=str,
)
def test_a_temperature_is_that_of_the_attentions_named_or_of_every_one(place: dict[str, Any], touched: str) -> None:
    expected = set()
    for group in touched.split():
        before, _, rest = group.partition("{")
        layers, _, after = rest.partition("}")
        expected |= {f"{before}{layer}{after}.temperature" for layer in layers.split(",")}
    plain, edited = translated(AttentionTemperature(3.0, **place))
    assert changed(plain, edited, ".temperature") == expected


@pytest.mark.parametrize("place", PLACES)
def test_a_mask_is_drawn_in_the_stack_and_the_attention_named(place: str) -> None:
    plain = translated()[0]
    drawn = torch.rand(plain[f"{place}.mask"].shape[-2:], generator=torch.Generator().manual_seed(0)) > 0.4
    plain, edited = translated(DrawMask(1, drawn.tolist(), [0], **PLACES[place]))
    mask = plain[f"{place}.mask"].clone()
    mask[:, 0] = drawn & plain[f"{place}.mask"].any(-2)[:, 0, None]  # but no padding
    assert torch.equal(edited[f"{place}.mask"], mask)
    assert changed(plain, edited, ".mask") == {f"{place}.mask"}


@pytest.mark.parametrize(
    "edit",
    [SilenceHeads(0, [0]), SilenceHeads(0, [0], stack="encoder", cross=True), DrawMask(2, [[True]], stack="encoder")],
)
def test_of_two_stacks_an_edit_must_name_one_that_has_it(edit: Edit) -> None:
    with pytest.raises(KeyError, match=r"no hook is called .*; this model has .*encoder.blocks"):
        translated(edit)


def test_of_one_stack_there_is_no_encoder() -> None:
    with pytest.raises(KeyError, match="no hook is called 'encoder.blocks.0.attn.z'"):
        both(SilenceHeads(0, [0], stack="encoder"))


whole = st.integers(0, 3)
sides, yes = st.sampled_from([None, "encoder", "decoder"]), st.booleans()
heads = st.lists(whole, min_size=1, max_size=4)
real = st.floats(-1e6, 1e6)
where = st.dictionaries(st.sampled_from(["batch", "pos", "head"]), whole | heads, max_size=2)
layers = st.none() | whole
changes = st.builds(Scale, st.just("*.z"), real).map(lambda edit: edit.to_dict())
sources = st.builds(Source, heads, st.none() | heads, st.lists(changes, max_size=2))
values = st.recursive(real, lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=6)
EDITS = {
    SilenceHeads: st.builds(SilenceHeads, whole, heads, st.sampled_from(["zero", "mean", "uniform"]), sides, yes),
    AttentionTemperature: st.builds(
        AttentionTemperature, st.floats(1e-3, 1e3), st.none() | whole, st.none() | heads, sides, yes
    ),
    SilenceExperts: st.builds(SilenceExperts, whole, heads),
    SendTokens: st.builds(SendTokens, whole, whole, st.none() | heads, whole),
    UseExperts: st.builds(UseExperts, st.integers(1, 64), st.none() | whole),
    DrawMask: st.builds(
        DrawMask, whole, st.lists(st.lists(yes, min_size=2, max_size=2), max_size=3), st.none() | heads, sides, yes
    ),
    Scale: st.builds(Scale, st.sampled_from(["logits", "*.z"]), real, where),
    ProjectOut: st.builds(ProjectOut, st.just("*.z"), st.lists(st.floats(1, 9), min_size=1), where, real),
    QuantiseMaps: st.builds(QuantiseMaps, st.sampled_from(["Q4_0", "Q8_0"]), st.lists(st.just("attn.q"), min_size=1)),
    AddNoise: st.builds(AddNoise, st.just("*.z"), st.floats(0, 9), whole, where),
    AddDirection: st.builds(AddDirection, st.just("*.z"), st.lists(st.floats(1, 9), min_size=1), where, real),
    Replace: st.builds(Replace, st.sampled_from(["logits", "*.z"]), values, where),
    PresetMask: st.one_of(
        st.builds(PresetMask, st.sampled_from(["causal", "full"]), st.none(), layers, st.none() | heads, sides, yes),
        st.builds(PresetMask, st.sampled_from(["window", "prefix"]), st.integers(1, 9), layers, st.none() | heads),
    ),
    PaintMask: st.builds(
        PaintMask,
        st.lists(st.lists(whole, min_size=2, max_size=2), min_size=1, max_size=3),
        st.lists(whole),
        st.lists(whole),
        st.sampled_from(["flip", "allow", "forbid"]),
        layers,
        st.none() | heads,
        sides,
        yes,
    ),
    SetPattern: st.builds(SetPattern, layers, st.sampled_from(["uniform", "first"]), st.none() | heads, sides, yes),
    PaintPattern: st.builds(
        PaintPattern,
        layers,
        st.just([[3, 1], [2, 2]]),
        st.lists(real, min_size=2, max_size=2),
        st.none() | heads,
        st.just(True),
    ),
    DrawPattern: st.builds(
        DrawPattern,
        layers,
        st.lists(st.lists(real, min_size=2, max_size=2), min_size=1),
        st.none() | heads,
        st.just(True),
    ),
    SwapPositions: st.builds(SwapPositions, whole, whole, layers, sides),
    DropPositions: st.builds(DropPositions, st.none() | heads, layers, sides),
    ShiftPositions: st.builds(ShiftPositions, st.integers(-9, 9), st.none() | heads, layers, sides),
    ApplyAdapter: st.builds(ApplyAdapter, st.text(), st.floats(0, 2)),
    ChangeToken: st.builds(ChangeToken, whole, whole, st.floats(-1, 2), sides),
    Patch: st.builds(
        Patch,
        st.sampled_from(["logits", "*.z"]),
        st.none() | sources,
        where,
        st.none() | st.just("logits"),
        st.none() | where,
    ),
    KeepParts: st.builds(
        KeepParts,
        st.dictionaries(st.just("blocks.0.attn.z"), heads, min_size=1),
        st.just("mean"),
        sources,
        st.lists(sources, max_size=2),
    ),
    Steer: st.builds(
        Steer, st.sampled_from(["logits", "*.z"]), sources, sources, real, st.sampled_from(["last", "mean"]), where
    ),
}


def test_every_edit_of_the_engine_is_tried_here() -> None:
    ours = {kind for kind in Edit.kinds.values() if kind.__module__.startswith("engine.edits.")}
    assert ours == set(EDITS)


@settings(max_examples=150, deadline=None)
@given(st.one_of(*EDITS.values()))
def test_every_edit_survives_json(edit: Edit) -> None:
    assert edit_from_dict(json.loads(json.dumps(edit.to_dict()))) == edit


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"edit": "Delete"}, "edit must be one of .*SilenceHeads, .*, got 'Delete'"),
        ({}, "edit must be one of .*, got None"),
        ({"edit": "Scale", "hook": "logits"}, "Scale lacks factor"),
        ({"edit": "Scale", "hook": "logits", "factor": 1, "speed": 2}, "speed is not a known key"),
        ({"edit": "Scale", "hook": "logits", "factor": "2"}, "factor must be a number, got '2'"),
        ({"edit": "Scale", "hook": "logits", "factor": 1, "at": {"pos": 1.5}}, "at.pos must be a whole number"),
        ({"edit": "Scale", "hook": 3, "factor": 1}, "hook must be a text, got 3"),
        ({"edit": "SilenceHeads", "layer": "*", "heads": [0]}, "layer must be a whole number"),
        ({"edit": "SilenceHeads", "layer": 0, "heads": [0, "1"]}, r"heads\[1\] must be a whole number, got '1'"),
        ({"edit": "SilenceHeads", "layer": 0, "heads": [0], "how": "loud"}, "how must be one of zero, mean"),
        ({"edit": "SilenceHeads", "layer": 0, "heads": [0], "stack": "both"}, "stack must be one of encoder, decoder"),
        ({"edit": "DrawMask", "layer": 0, "allowed": [], "cross": 1}, "cross must be true or false, got 1"),
        ({"edit": "UseExperts", "used": 0}, "used must be at least 1 expert, got 0"),
        ({"edit": "AttentionTemperature", "value": 0}, "must be above 0, got 0"),
        ({"edit": "AttentionTemperature", "value": float("nan")}, "must be above 0, got nan"),
        ({"edit": ["Scale"]}, r"edit must be one of .*, got \['Scale'\]"),
        ({"edit": "PaintMask", "rows": [0.5]}, r"rows\[0\] must be a whole number, got 0.5"),
        ({"edit": "PresetMask", "kind": "round"}, "kind must be one of causal, full, window, causal window, prefix"),
        ({"edit": "SetPattern", "layer": None, "to": "last"}, "to must be one of uniform, previous, first, itself"),
        ({"edit": "SetPattern", "layer": 0, "to": "first", "position": 1}, "first must have no position, got 1"),
        ({"edit": "ShiftPositions", "by": 1.5}, "by must be a whole number, got 1.5"),
        ({"edit": "Patch", "hook": "logits", "source": [1]}, r"source must be a table, got \[1\]"),
        ({"edit": "Patch", "hook": "logits", "source": {"ids": ["a"]}}, r"source.ids\[0\] must be a whole number"),
        ({"edit": "Patch", "hook": "logits", "source": {"ids": [1], "edits": [{}]}}, "edit must be one of"),
        ({"edit": "Steer", "hook": "logits", "toward": {"ids": [1]}}, "Steer lacks away"),
        ({"edit": "ProjectOut", "hook": "logits", "direction": [0, 0]}, "not all 0, got one of length 0"),
        ({"edit": "AddDirection", "hook": "logits", "direction": "x"}, "direction must be a list, got 'x'"),
        ({"edit": "AddNoise", "hook": "a", "scale": -1}, "must be a finite number of at least 0"),
        ({"edit": "KeepParts", "kept": {}}, "must name the hooks whose parts are replaced"),
        ({"edit": "KeepParts", "kept": {"a": [0.5]}}, r"kept.a\[0\] must be a whole number"),
        ({"edit": "KeepParts", "kept": {"a": []}, "further": [{"ids": [1]}]}, "name the first of them"),
        ({"edit": "Patch", "hook": "a", "source": {"ids": [1], "segments": [2]}}, "segments must be 0 or 1"),
        ({"edit": "DrawMask", "layer": 0, "allowed": [[1]]}, r"allowed\[0\]\[0\] must be true or false, got 1"),
    ],
)
def test_an_edit_from_a_link_is_checked(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        edit_from_dict(data)
