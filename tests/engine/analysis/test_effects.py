import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import kl_div

from engine.analysis.effects import logits_of, pattern_change, shift, shift_at, stream_distance
from engine.edits import DrawMask, PresetMask, Scale, SetPattern, SilenceHeads
from engine.model.config import Encoder, Norm, OutputHead
from engine.runtime.run import run
from tests.engine import tiny

INFINITY = float("inf")


SILENT = (SilenceHeads(1, [0, 2]),)


def pair(config=tiny.CONFIG, edits=SILENT, ids=tiny.IDS, **options):
    model = tiny.model(config)
    return run(model, ids, **options), run(model, ids, edits=edits, **options)


def test_a_shift_is_that_of_the_two_distributions() -> None:
    before, after = tiny.normal(30, seed=1) * 3, tiny.normal(30, seed=2) * 3
    p, q = (one.double().softmax(-1) for one in (before, after))
    found = shift(before, after, count=30)
    assert found.kl == pytest.approx(kl_div(q.log(), p, reduction="sum").item(), rel=1e-9)
    assert found.total_variation == pytest.approx((p - q).abs().sum().item() / 2, rel=1e-9)
    for one in found.candidates:
        assert (one.p_before, one.p_after) == (pytest.approx(p[one.id].item()), pytest.approx(q[one.id].item()))
        assert one.logit_before == before[one.id].item() and one.logit_after == after[one.id].item()


@pytest.mark.parametrize("order", ["change", "before", "after", "either"])
def test_candidates_come_by_change_or_by_probability(order) -> None:
    before, after = tiny.normal(30, seed=1) * 3, tiny.normal(30, seed=2) * 3
    p, q = before.double().softmax(-1), after.double().softmax(-1)
    by = {"change": (p - q).abs(), "before": p, "after": q, "either": torch.maximum(p, q)}[order]
    expected = sorted(range(30), key=lambda i: -by[i].item())[:7]
    assert [one.id for one in shift(before, after, 7, order).candidates] == expected


def test_two_equal_distributions_differ_by_nothing_whatever_is_impossible_in_them() -> None:
    logits = torch.tensor([1.0, -INFINITY, 3.0])
    found = shift(logits, logits)
    assert (found.kl, found.total_variation) == (0, 0)
    assert not any(math.isnan(one.p_after) for one in found.candidates)


def test_what_is_no_longer_possible_is_infinitely_far() -> None:
    before, after = torch.tensor([0.0, 0.0, -INFINITY]), torch.tensor([0.0, -INFINITY, 0.0])
    found = shift(before, after)
    assert found.kl == INFINITY
    assert found.total_variation == pytest.approx(0.5)
    assert shift(torch.tensor([0.0, -INFINITY]), torch.tensor([0.0, 0.0])).kl == pytest.approx(math.log(2))


def test_what_is_no_number_stays_none() -> None:
    assert math.isnan(shift(torch.tensor([1.0, 2.0]), torch.tensor([float("nan"), 2.0])).kl)


def test_a_single_logit_says_whether_its_class_holds() -> None:
    found = shift(torch.tensor([0.0]), torch.tensor([math.log(3)]))
    (one,) = found.candidates
    assert (one.p_before, one.p_after) == (pytest.approx(0.5), pytest.approx(0.75))
    assert found.kl == pytest.approx(0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25))
    assert found.total_variation == pytest.approx(0.25)


def test_the_shift_at_a_position_is_that_of_its_logits_and_none_is_the_last() -> None:
    before, after = pair()
    for pos, index in ((None, 7), (-2, 6), (3, 3)):
        expected = shift(before["logits"][0, index], after["logits"][0, index])
        assert shift_at(before, after, pos) == expected
    assert shift_at(before, after).kl > 0


def test_of_a_padded_batch_the_last_position_is_the_text_s_own() -> None:
    before, after = pair(ids=[tiny.IDS, tiny.IDS[:3]])
    alone = pair(ids=tiny.IDS[:3])
    assert shift_at(before, after, row=1).kl == pytest.approx(shift_at(*alone).kl, abs=1e-5)
    torch.testing.assert_close(pattern_change(before, after, row=1), pattern_change(*alone), atol=1e-5, rtol=0)
    found, expected = stream_distance(before, after, row=1), stream_distance(*alone)
    torch.testing.assert_close(found.relative[:, :3], expected.relative, atol=1e-5, rtol=1e-4)


def test_only_positions_whose_logits_were_computed_can_be_asked_for() -> None:
    before, after = pair(logits_at=slice(-2, None))
    full = pair()
    for pos in (None, 6, -1):
        assert shift_at(before, after, pos).kl == pytest.approx(shift_at(*full, pos).kl, abs=1e-5)
    with pytest.raises(ValueError, match=r"logits of position 5 were not computed; run with logits_at=slice\(None\)"):
        shift_at(before, after, 5)


def test_classes_and_masked_words_shift_too() -> None:
    full = {"attention": {"mask": "full"}}
    before, after = pair(tiny.config(**full, head=OutputHead("sequence", classes=3, pooler=True)))
    assert torch.equal(logits_of(before), before["logits"][0])
    assert shift_at(before, after).kl == shift(before["logits"][0], after["logits"][0]).kl > 0
    before, after = pair(tiny.config(**full, head=OutputHead("token", classes=1)))
    assert len(shift_at(before, after, 2).candidates) == 1
    before, after = pair(tiny.config(**full, head=OutputHead("masked")))
    assert shift_at(before, after, 4, count=11) == shift(before["logits"][0, 4], after["logits"][0, 4], 11)


def test_a_head_s_change_is_the_mean_total_variation_of_its_rows() -> None:
    before, after = pair(edits=[SetPattern(1, "previous", [3])])
    found = pattern_change(before, after)
    assert found.shape == (3, 4)
    assert not found[0].any() and not found[1, :3].any()
    old, new = (trace["blocks.1.attn.pattern"][0, 3] for trace in (before, after))
    by_hand = sum(0.5 * (old[i] - new[i]).abs().sum().item() for i in range(8)) / 8
    assert found[1, 3].item() == pytest.approx(by_hand, rel=1e-5)
    assert found[2].min() > 0


def test_a_row_that_sees_nothing_is_half_a_row_away() -> None:
    allowed = torch.ones(8, 8, dtype=torch.bool).tril()
    allowed[3] = False
    before, after = pair(edits=[DrawMask(2, allowed.tolist())])
    torch.testing.assert_close(pattern_change(before, after)[2], torch.full((4,), 0.5 / 8))
    assert stream_distance(before, after).relative.isfinite().all()


@pytest.mark.parametrize("norm", [Norm(), Norm(place="after")])
def test_the_stream_s_distance_is_that_of_its_vectors_layer_by_layer(norm: Norm) -> None:
    before, after = pair(tiny.config(norm=norm), edits=[Scale("blocks.1.mlp.out", -1.0, {"pos": 5})])
    found = stream_distance(before, after)
    assert found.hooks == ("blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(3)))
    assert not found.relative[:2].any() and not found.relative[2, :5].any()
    assert (found.relative[2, 5] > 0) and (found.relative[3, 5:] > 0).all()
    old, new = (trace["blocks.1.resid_post"][0, 5].double() for trace in (before, after))
    assert found.relative[2, 5].item() == pytest.approx(((new - old).norm() / old.norm()).item(), rel=1e-9)
    cosine = torch.cosine_similarity(old, new, dim=0)
    assert found.cosine[2, 5].item() == pytest.approx(cosine.item(), rel=1e-9)
    torch.testing.assert_close(found.cosine[:2], torch.ones(2, 8).double())


def test_a_stream_of_zeros_has_no_direction() -> None:
    before, after = pair(edits=[Scale("blocks.2.resid_post", 0.0, {"pos": 4})])
    found = stream_distance(before, after)
    assert (found.relative[3, 4], found.cosine[3, 4]) == (1, 0)
    back = stream_distance(after, before)
    assert (back.relative[3, 4], back.cosine[3, 4]) == (INFINITY, 0)
    zeros = stream_distance(after, after)
    assert not zeros.relative.any() and zeros.cosine[3, 4] == 1


def test_of_two_stacks_either_is_compared() -> None:
    encoder = Encoder(2, replace(tiny.CONFIG.attention, mask="full"), tiny.MLP(12))
    ids, target = [tiny.IDS, tiny.IDS[:5]], [[1, 2, 3, 4], [1, 2]]
    edits = [PresetMask("causal", layer=1, stack="encoder")]
    before, after = pair(tiny.config(encoder=encoder), edits, ids, target=target)
    one, other = pair(tiny.config(encoder=encoder), edits, ids[1], target=target[1])
    for part in ("encoder.attn.pattern", "decoder.attn.pattern", "cross_attn.pattern"):
        side = "encoder" if part.startswith("encoder") else "decoder"
        found = stream_distance(before, after, 1, side).relative
        expected = stream_distance(one, other, 0, side).relative
        torch.testing.assert_close(found[:, : expected.shape[1]], expected, atol=1e-5, rtol=1e-4)
        changed = pattern_change(before, after, part, 1)
        torch.testing.assert_close(changed, pattern_change(one, other, part), atol=1e-5, rtol=1e-4)
    assert shift_at(before, after, row=1).kl == pytest.approx(shift_at(one, other).kl, abs=1e-5)


def test_runs_of_two_texts_or_models_are_not_compared() -> None:
    before, after = pair()[0], run(tiny.model(), tiny.IDS)
    with pytest.raises(ValueError, match="runs of one model on the same tokens"):
        shift_at(before, after)
    model = tiny.model()
    with pytest.raises(ValueError, match="runs of one model on the same tokens"):
        stream_distance(run(model, tiny.IDS), run(model, tiny.IDS[:4]))


def test_a_shift_of_what_is_no_list_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one list in both runs, got \(2,\) and \(3,\)"):
        shift(torch.zeros(2), torch.zeros(3))
    with pytest.raises(ValueError, match="order must be one of change, before, after, either, got 'name'"):
        shift(torch.zeros(2), torch.zeros(2), order="name")  # type: ignore[arg-type]


def test_labels_that_do_not_exclude_each_other_change_each_by_itself() -> None:
    before, after = torch.tensor([2.0, 1.0, -3.0]), torch.tensor([2.0, -1.0, -3.0])
    found = shift(before, after, link="logistic")
    assert [one.id for one in found.candidates] == [1, 0, 2]
    assert found.candidates[0].p_before == pytest.approx(float(torch.tensor(1.0).sigmoid()))
    alone = shift(before[1:2], after[1:2])
    assert found.kl == pytest.approx(alone.kl) and found.total_variation == pytest.approx(alone.total_variation / 3)
