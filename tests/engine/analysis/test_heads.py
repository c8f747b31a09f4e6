"""Head scores against patterns whose scores are known by construction, and against loops over each definition."""

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine import load
from engine.analysis.heads import (
    CROSS_SCORES,
    SCORES,
    CrossScores,
    HeadScores,
    bits,
    cross_scores,
    duplicate_rows,
    head_scores,
    induction,
    most_telling_head,
)
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, OutputHead, Patches
from engine.model.hooks import HookPoint
from engine.model.layers.cache import KVCache
from engine.model.layers.mask import PaintedMask
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny

IDS = [3, 1, 4, 1, 5, 9, 3, 1]
WIDE = Attention(4, mask="full")
PAIR = tiny.config(encoder=Encoder(2, WIDE, MLP(12)))
PICTURE = ModelConfig(
    1, 10, 16, 2, WIDE, MLP(20), embedding=Embedding(patches=Patches(12, 4, 1)), head=OutputHead("sequence", classes=3)
)


def trace_of(pattern: torch.Tensor) -> Trace:
    """A trace that holds one layer's pattern, batch head pos key."""
    hook = HookPoint("blocks.0.attn.pattern", "batch head pos key")
    return Trace({hook.name: pattern}, {hook.name: hook}, torch.zeros(1, pattern.shape[-1], dtype=torch.long))


def test_a_head_that_looks_back_one_token_scores_one_on_previous_and_zero_on_itself() -> None:
    pattern = torch.zeros(1, 1, 4, 4)
    pattern[0, 0, 0, 0] = 1
    for pos in range(1, 4):
        pattern[0, 0, pos, pos - 1] = 1
    scores = head_scores(trace_of(pattern))
    assert scores.previous.item() == 1
    assert scores.own.item() == 0
    assert scores.first.item() == pytest.approx(1 / 3)  # only position 1 looks at position 0
    assert scores.entropy.item() == 0


def test_even_attention_has_the_entropy_of_its_row_length() -> None:
    pattern = torch.tril(torch.ones(4, 4))
    pattern = (pattern / pattern.sum(-1, keepdim=True))[None, None]
    expected = sum(math.log2(n) for n in range(2, 5)) / 3
    assert head_scores(trace_of(pattern)).entropy.item() == pytest.approx(expected)


def test_one_token_leaves_every_score_undefined() -> None:
    scores = head_scores(trace_of(torch.ones(1, 1, 1, 1)))
    assert all(value.isnan().all() for value in vars(scores).values())


def test_induction_reads_the_tokens_after_every_earlier_occurrence() -> None:
    ids = torch.tensor([5, 7, 5, 9, 5])  # position 2 repeats 0, so key 1; position 4 repeats 0 and 2, so keys 1 and 3
    pattern = torch.zeros(2, 5, 5)
    pattern[0, 2, 1], pattern[0, 4, 1], pattern[0, 4, 3] = 1.0, 0.25, 0.5
    pattern[1, 2, 0] = pattern[1, 4, 4] = 1.0
    assert induction(pattern, ids).tolist() == [0.875, 0.0]


def test_without_a_repeat_there_is_no_induction_score() -> None:
    assert induction(torch.ones(1, 2, 2), torch.tensor([1, 2])).isnan().all()


def by_hand(pattern: Tensor, ids: list[int], seen: Tensor) -> dict[str, float]:
    """Every score of one head in loops; `pattern` and `seen` are pos key."""
    later = range(1, len(ids))
    rows = pattern.tolist()
    same = {
        pos: [key for key in range(len(ids)) if key != pos and ids[key] == ids[pos] and seen[pos, key]]
        for pos in range(len(ids))
    }
    copies = {pos: [key for key in range(pos) if ids[key] == ids[pos]] for pos in range(len(ids))}
    return {
        "previous": np.mean([rows[pos][pos - 1] for pos in later]),
        "first": np.mean([rows[pos][0] for pos in later]),
        "own": np.mean([rows[pos][pos] for pos in later]),
        "induction": np.mean([sum(rows[pos][key + 1] for key in keys) for pos, keys in copies.items() if keys]),
        "entropy": np.mean([-sum(p * math.log2(p) for p in rows[pos] if p) for pos in later]),
        "duplicate": np.mean([sum(rows[pos][key] for key in keys) for pos, keys in same.items() if keys]),
        "distance": np.mean([sum(p * abs(pos - key) for key, p in enumerate(rows[pos])) for pos in later]),
    }


@pytest.mark.parametrize(
    ("kind", "attention"),
    [("learned", {}), ("rotary", {"kv_heads": 2}), ("alibi", {"mask": "full"}), ("none", {"window": 3})],
)
def test_every_score_is_that_of_its_definition(kind: str, attention: dict[str, Any]) -> None:
    trace = run(tiny.model(tiny.config(kind, attention)), torch.tensor([IDS]))
    scores = head_scores(trace)
    for layer in range(3):
        seen = trace[f"blocks.{layer}.attn.mask"][0]
        for head in range(4):
            expected = by_hand(trace[f"blocks.{layer}.attn.pattern"][0, head], IDS, seen[head])
            for key, value in expected.items():
                assert getattr(scores, key)[layer, head].item() == pytest.approx(value, abs=1e-5), key


def duplicate(*given: Tensor) -> Tensor:
    return duplicate_rows(*given).nanmean(-1)


def test_a_token_counts_as_a_duplicate_only_where_the_other_may_be_seen() -> None:
    pattern = torch.tensor([[[1.0, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]])  # causal, head pos key
    assert duplicate(pattern, torch.tensor([7, 8, 7])).tolist() == [0.25]  # of position 2; 0 never sees its copy
    ahead = torch.full((1, 3, 3), 1 / 3)
    assert duplicate(ahead, torch.tensor([7, 8, 7])).item() == pytest.approx(1 / 3)
    unused = torch.tensor([[[1.0, 0, 0], [0.5, 0.5, 0], [0.0, 0.5, 0.5]]])  # seen, but not looked at
    assert duplicate(unused, torch.tensor([7, 8, 7]), torch.ones(1, 3, 3, dtype=torch.bool)).tolist() == [0.0]
    assert duplicate(unused, torch.tensor([7, 8, 7])).isnan().all()


def test_without_masks_the_scores_are_the_same() -> None:
    model = tiny.model()
    whole, bare = run(model, [IDS]), run(model, [IDS], keep="*.attn.pattern")
    for mine, theirs in zip(vars(head_scores(whole)).values(), vars(head_scores(bare)).values(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_row_that_sees_nothing_counts_in_no_average() -> None:
    model = tiny.model()
    allowed = torch.ones(8, 8, dtype=torch.bool).tril()
    allowed[5] = False
    trace = run(model, [IDS], mask=PaintedMask(allowed))
    pattern = trace["blocks.0.attn.pattern"][0]
    rows = [pos for pos in range(1, 8) if pos != 5]
    scores = head_scores(trace)
    torch.testing.assert_close(scores.first[0], pattern[:, rows, 0].mean(-1))
    torch.testing.assert_close(scores.entropy[0], bits(pattern)[:, rows].mean(-1))


def test_padding_changes_no_score() -> None:
    model = tiny.model(tiny.config(attention={"mask": "full"}))
    padded, alone = run(model, [IDS[:5], IDS]), run(model, [IDS[:5]])
    for mine, theirs in zip(vars(head_scores(padded)).values(), vars(head_scores(alone)).values(), strict=True):
        torch.testing.assert_close(mine, theirs, equal_nan=True)


def test_each_side_is_scored_by_what_it_reads() -> None:
    model = tiny.model(PAIR)
    target = [0, 3, 3, 3]
    trace = run(model, [IDS], target=[target])
    pattern, seen = trace["decoder.blocks.1.attn.pattern"][0], trace["decoder.blocks.1.attn.mask"][0]
    for side in ("decoder", ""):
        assert head_scores(trace, side).duplicate[1, 2].item() == pytest.approx(
            by_hand(pattern[2], target, seen[2])["duplicate"], abs=1e-6
        )
    assert head_scores(trace, "encoder").own.shape == (2, 4)
    with pytest.raises(ValueError, match="side must be '' for this run"):
        head_scores(run(tiny.model(), [IDS]), "decoder")


def test_cross_scores_are_those_of_their_definitions() -> None:
    trace = run(tiny.model(PAIR), [IDS], target=[[0, 9, 7, 1]])
    pattern = trace["decoder.blocks.2.cross_attn.pattern"][0, 3]  # pos key
    found = {key: value[2, 3].item() for key, value in vars(cross_scores(trace)).items()}
    ones = [key for key, id in enumerate(IDS) if id == 1]
    assert found["duplicate"] == pytest.approx(((pattern[1, IDS.index(9)] + pattern[3, ones].sum()) / 2).item())
    assert found["first"] == pytest.approx(pattern[:, 0].mean().item())
    assert found["last"] == pytest.approx(pattern[:, -1].mean().item())
    assert found["strongest"] == pytest.approx(pattern.max(-1).values.mean().item())
    assert found["entropy"] == pytest.approx(-(pattern * pattern.log2()).sum(-1).mean().item(), abs=1e-5)


def test_the_most_telling_head_looks_at_one_key_and_not_where_heads_look_that_find_nothing() -> None:
    trace = run(tiny.model(), [IDS])
    special = [False, False, False, True, *[False] * (len(IDS) - 4)]
    means = torch.zeros(3, 4)
    for layer in range(3):
        for head in range(4):
            rows = trace[f"blocks.{layer}.attn.pattern"][0, head].tolist()
            best = [max(w for key, w in enumerate(row) if key not in (0, 3, at)) for at, row in enumerate(rows)]
            means[layer, head] = sum(best) / len(best)
    layer, head = most_telling_head(trace, special)
    assert means[layer, head] == means.max()
    pair = run(tiny.model(PAIR), [IDS], target=[[2, 7, 5]])
    strongest = cross_scores(pair).strongest
    assert strongest[most_telling_head(pair, side="decoder", crosses=True)] == strongest.max()


def test_a_picture_has_no_tokens_to_repeat() -> None:
    trace = run(tiny.model(PICTURE), tiny.normal(1, 1, 12, 12))
    scores = head_scores(trace)
    assert scores.duplicate.isnan().all() and scores.induction.isnan().all()
    assert scores.distance.isfinite().all() and scores.previous.isfinite().all()


def test_a_run_that_continued_a_cache_is_refused() -> None:
    model = tiny.model()
    cache = KVCache(model.config, 1, 8, like=tiny.normal(1))
    run(model, [IDS[:4]], cache=cache)
    with pytest.raises(ValueError, match="continued a cache"):
        head_scores(run(model, [IDS[4:]], cache=cache))


def test_what_was_not_recorded_is_asked_for() -> None:
    with pytest.raises(KeyError, match="attn.pattern"):
        head_scores(run(tiny.model(), [IDS], keep="logits"))


def test_every_number_has_a_definition_and_every_definition_a_number() -> None:
    assert {score.key for score in SCORES} == {field.name for field in fields(HeadScores)} | {"copying", "positional"}
    assert {score.key for score in CROSS_SCORES} == {field.name for field in fields(CrossScores)}
    for score in (*SCORES, *CROSS_SCORES):
        assert score.definition.endswith(".") and score.source and score.title


def test_the_shipped_induction_model_has_a_previous_token_head_and_induction_heads() -> None:
    checkpoint = load("induction")
    assert checkpoint.tokenizer is not None
    pieces = {piece: i for i, piece in enumerate(checkpoint.tokenizer.pieces)}
    scores = head_scores(run(checkpoint.model, [pieces[letter] for letter in "ABxQ7pLABxQ7pLABx"]))
    assert scores.previous[0].max() > 0.9 and scores.previous[1].max() < 0.3
    assert scores.induction[1].min() > 0.8 and scores.induction[0].max() < 0.2
