"""Tokens that stand elsewhere, for every kind of positions, against texts, models and formulas that say the same."""

import math
from dataclasses import replace

import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from engine.edits import DropPositions, Edit, ShiftPositions, SwapPositions
from engine.model.config import Encoder, Infill, OtherRotation, Positions, RotaryScaling
from engine.model.transformer import Transformer
from engine.runtime.run import run
from tests.engine import tiny

KINDS = ("learned", "sinusoidal", "rotary", "alibi", "relative")
PLACED = {
    **{kind: Positions(kind) for kind in KINDS},  # type: ignore[arg-type]
    "disentangled": Positions("disentangled", buckets=8, farthest=12),
    "disentangled, and learned": Positions("disentangled", buckets=0, farthest=5, terms="p2c", added=True),
    "learned, and a bias": Positions(relative_bias=True, buckets=8, farthest=12),
    "rotary, part, neighbours": Positions("rotary", turned=2, pairs="neighbours"),
    "rotary, yarn": Positions("rotary", scaling=RotaryScaling("yarn", 4.0, 8)),
    "rotary, by length": Positions("rotary", scaling=RotaryScaling("dynamic", 4.0, 4)),
    "rotary, two kinds": Positions("rotary", other=OtherRotation((1,), 9.0, RotaryScaling("dynamic", 4.0, 4))),
    "rotary, some layers": Positions("rotary", other=OtherRotation((1,))),
}


def model(kind: str, mask: str = "full") -> Transformer:
    attention = replace(tiny.CONFIG.attention, mask=mask)  # type: ignore[arg-type]
    positions = replace(PLACED[kind], buckets=8, farthest=12) if kind == "relative" else PLACED[kind]
    return tiny.model(replace(tiny.CONFIG, positions=positions, attention=attention))


@pytest.mark.parametrize("kind", PLACED)
def test_two_tokens_that_see_everything_and_swap_positions_read_as_the_text_with_the_two_exchanged(kind: str) -> None:
    made = model(kind)
    order = [0, 5, 2, 3, 4, 1, 6, 7]
    other = run(made, [tiny.IDS[i] for i in order])
    edited, plain = run(made, tiny.IDS, edits=[SwapPositions(1, 5)]), run(made, tiny.IDS)
    torch.testing.assert_close(edited["logits"], other["logits"][:, order], atol=1e-5, rtol=1e-5)
    pattern = other["blocks.2.attn.pattern"][:, :, order][..., order]
    torch.testing.assert_close(edited["blocks.2.attn.pattern"], pattern, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(edited["logits"], plain["logits"], atol=1e-3)


@pytest.mark.parametrize("kind", PLACED)
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_without_positions_a_model_is_the_one_that_never_had_any(kind: str, mask: str) -> None:
    made = model(kind, mask)
    attention = replace(made.config.attention, scale=made.config.score_scale(made.config.attention))
    config = replace(made.config, positions=Positions("none"), attention=attention)
    bare = Transformer(config).eval()
    own = bare.state_dict().keys()
    bare.load_state_dict({name: tensor for name, tensor in made.state_dict().items() if name in own})
    edited = run(made, tiny.IDS, edits=[DropPositions()])
    stretch = 1.0
    if kind == "rotary, yarn":  # which also multiplies what it turns
        stretch = (0.1 * math.log(4.0) + 1) ** 2
    if stretch == 1:
        torch.testing.assert_close(edited["logits"], run(bare, tiny.IDS)["logits"], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        edited["blocks.0.attn.scores"], run(bare, tiny.IDS)["blocks.0.attn.scores"] * stretch, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("kind", ["rotary", "rotary, part, neighbours", "alibi", "relative", "disentangled"])
def test_where_only_distances_count_a_shift_of_all_changes_nothing(kind: str) -> None:
    made = model(kind)
    plain, edited = run(made, tiny.IDS), run(made, tiny.IDS, edits=[ShiftPositions(5)])
    torch.testing.assert_close(edited["logits"], plain["logits"], atol=1e-4, rtol=1e-4)


def test_a_learned_position_is_that_of_the_table_where_the_token_now_stands() -> None:
    made = model("learned")
    edited = run(made, tiny.IDS, edits=[ShiftPositions(9, [2, 7]), DropPositions([4])])
    expected = made.embed.positions.weight[:8].clone()
    expected[2], expected[7], expected[4] = made.embed.positions.weight[11], made.embed.positions.weight[16], 0
    assert torch.equal(edited["embed.positions"][0], expected)
    resid = edited["embed.tokens"][0] + expected
    torch.testing.assert_close(edited["blocks.0.resid_pre"][0], resid)


def test_a_sinusoid_goes_on_for_ever() -> None:
    edited = run(model("sinusoidal"), tiny.IDS, edits=[ShiftPositions(1000, [3]), DropPositions([0])])
    angles = [1003 / 10_000 ** (2 * i / 16) for i in range(8)]
    wave = torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])
    torch.testing.assert_close(edited["embed.positions"][0, 3], wave, atol=1e-4, rtol=0)
    assert not edited["embed.positions"][0, 0].any()


def test_rotary_turns_a_token_by_where_it_now_stands_in_one_layer_if_told() -> None:
    made = model("rotary")
    plain = run(made, tiny.IDS)
    edited = run(made, tiny.IDS, edits=[ShiftPositions(-2, [6], layer=1), DropPositions([3], layer=1)])
    assert torch.equal(edited["blocks.0.attn.q_rotated"], plain["blocks.0.attn.q_rotated"])
    for name in ("q", "k"):
        value, turned = plain[f"blocks.1.attn.{name}"][0], edited[f"blocks.1.attn.{name}_rotated"][0]
        places = torch.tensor([0, 1, 2, 0, 4, 5, 4, 7])
        pairs = torch.complex(*value.unflatten(-1, (2, 2)).unbind(-2))  # halves: component 0 goes with 2
        angle = places[:, None] * torch.tensor([1.0, 10_000**-0.5])
        by_hand = pairs * torch.polar(torch.ones(8, 2), angle)[:, None]
        torch.testing.assert_close(turned, torch.cat([by_hand.real, by_hand.imag], -1), atol=1e-5, rtol=1e-5)
    assert torch.equal(edited["blocks.1.attn.v"], plain["blocks.1.attn.v"])


def test_alibi_counts_the_distance_from_where_tokens_now_stand_and_none_from_nowhere() -> None:
    edited = run(model("alibi"), tiny.IDS, edits=[ShiftPositions(20, [1]), DropPositions([5])])
    places = torch.tensor([0.0, 21, 2, 3, 4, 5, 6, 7])
    bias = -torch.tensor([2**-2, 2**-4, 2**-6, 2**-8])[:, None, None] * (places[:, None] - places).abs()
    bias[:, 5], bias[:, :, 5] = 0, 0
    torch.testing.assert_close(edited["blocks.2.attn.bias"], bias)


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_relative_positions_fall_into_the_bucket_of_their_new_distance(mask: str) -> None:
    made = model("relative", mask)
    edited = run(made, tiny.IDS, edits=[ShiftPositions(3, [1, 2])])
    places = torch.tensor([0, 4, 5, 3, 4, 5, 6, 7])
    buckets = T5Attention._relative_position_bucket(places[None, :] - places[:, None], mask == "full", 8, 12)
    expected = made.relative.weight[buckets].permute(2, 0, 1)
    torch.testing.assert_close(edited["blocks.0.attn.bias"], expected)


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("by", [7, 12, 13, 10_000])
def test_the_last_relative_bucket_takes_every_distance_that_no_text_of_this_length_has(mask: str, by: int) -> None:
    made = model("relative", mask)
    edited = run(made, tiny.IDS[:3], edits=[ShiftPositions(by, [1])])
    places = torch.tensor([0, 1 + by, 2])
    buckets = T5Attention._relative_position_bucket(places[None, :] - places[:, None], mask == "full", 8, 12)
    torch.testing.assert_close(edited["blocks.2.attn.bias"], made.relative.weight[buckets].permute(2, 0, 1))


def test_a_swap_in_one_stack_leaves_the_other_as_it_is() -> None:
    encoder = Encoder(2, replace(tiny.CONFIG.attention, mask="full"), tiny.MLP(12))
    for kind in KINDS:
        made = tiny.model(tiny.config(kind, encoder=encoder))
        plain = run(made, tiny.IDS, target=[0, 1, 2, 3])
        later = run(made, tiny.IDS, target=[0, 1, 2, 3], edits=[SwapPositions(1, 2, stack="decoder")])
        assert torch.equal(later["encoder.blocks.1.resid_post"], plain["encoder.blocks.1.resid_post"])
        assert not torch.equal(later["decoder.blocks.0.attn.out"], plain["decoder.blocks.0.attn.out"])
        first = run(made, tiny.IDS, target=[0, 1, 2, 3], edits=[SwapPositions(1, 2, stack="encoder")])
        exchanged = [tiny.IDS[i] for i in (0, 2, 1, 3, 4, 5, 6, 7)]
        expected = run(made, exchanged, target=[0, 1, 2, 3])["logits"]  # to whom it is all the same
        torch.testing.assert_close(first["logits"], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["learned", "rotary"])
def test_of_two_positions_a_token_takes_both_of_another(kind: str) -> None:
    config = replace(tiny.config(attention={"mask": "prefix", "heads": 2}), infill=Infill(8, 9))
    made = tiny.model(replace(config, positions=Positions(kind, axes=2)))  # type: ignore[arg-type]
    ids = [3, 8, 4, 9, 5, 6]
    plain, edited = run(made, ids), run(made, ids, edits=[SwapPositions(2, 4), DropPositions([5])])
    if kind == "learned":
        for part in ("positions", "within"):
            expected = plain[f"embed.{part}"][0][[0, 1, 4, 3, 2, 5]]
            expected[5] = 0
            assert torch.equal(edited[f"embed.{part}"][0], expected)
    else:
        a, b = plain["blocks.0.attn.q"], edited["blocks.0.attn.q_rotated"]
        # positions 2 and 0 in the text; 1 and 2 in the gap and its span
        assert torch.equal(a[0, 5], b[0, 5])
        turned = [torch.complex(*half.unflatten(-1, (2, 2)).unbind(-2)) for half in a[0, 2].chunk(2, -1)]
        for half, place, got in zip(turned, (1, 2), b[0, 2].chunk(2, -1), strict=True):
            hand = half * torch.polar(torch.ones(2), place * torch.tensor([1.0, 10_000**-0.5]))
            torch.testing.assert_close(got, torch.cat([hand.real, hand.imag], -1), atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match=r"must lie in 0\.\.5 here, got 6"):
        run(made, ids, edits=[ShiftPositions(1)])


@pytest.mark.parametrize("kind", KINDS)
def test_moved_tokens_of_a_padded_batch_are_those_of_each_text_alone(kind: str) -> None:
    made = model(kind, "causal")
    for edit in (SwapPositions(0, 2), DropPositions([1]), DropPositions(), ShiftPositions(1, [1])):
        together = run(made, [tiny.IDS, tiny.IDS[:4]], edits=[edit])["logits"]
        alone = run(made, tiny.IDS[:4], edits=[edit])["logits"]
        torch.testing.assert_close(together[1, :4], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "edit", "message"),
    [
        ("learned", ShiftPositions(17), r"must lie in 0\.\.23 here, got 24"),
        ("learned", ShiftPositions(-1, [3, 0]), "would leave a token at -1, before the first"),
        ("rotary", ShiftPositions(-3, [1]), "would leave a token at -2"),
        ("alibi", SwapPositions(1, 8), "pos of blocks.0.attn.position_ids must be in 0..7, got 8"),
        ("sinusoidal", DropPositions([9]), "pos of embed.position_ids must be in 0..7, got 9"),
    ],
)
def test_a_position_there_is_not_is_said(kind: str, edit: Edit, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(model(kind), tiny.IDS, edits=[edit])


def test_positions_count_from_0_and_must_be_there() -> None:
    for make in (lambda: SwapPositions(-1, 2), lambda: DropPositions([]), lambda: ShiftPositions(1, [-2])):
        with pytest.raises(ValueError, match="positions must be one or more, counted from 0"):
            make()
    with pytest.raises(KeyError, match="no hook is called"):
        run(tiny.model(tiny.config("none")), tiny.IDS, edits=[SwapPositions(0, 1)])
