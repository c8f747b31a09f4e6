"""How alike heads, streams and predictions of two runs are, against sums written out."""

import math

import pytest
import torch
from torch import Tensor

from engine.analysis.alignment import by_pieces
from engine.analysis.effects import pattern_change, shift
from engine.analysis.effects import stream_distance as distance_of_one_text
from engine.analysis.predictions import predictions
from engine.analysis.recorded_patterns import patterns
from engine.analysis.similarity import PatternPair, head_changes, head_similarity, stream_distance
from engine.edits import SilenceHeads
from engine.runtime.run import run
from tests.engine.tiny import IDS, config, model, normal

FIRST, SECOND = "the red ball is big".split(), "the ball is very big".split()  # red, and very, are alone


def random_patterns(length: int, layers: int, heads: int, seed: int) -> list[Tensor]:
    ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = [normal(heads, length, length, seed=seed + layer) for layer in range(layers)]
    return [one.masked_fill(ahead, -torch.inf).softmax(-1) for one in scores]


def by_hand(first: Tensor, second: Tensor, rows: list[tuple[int, int]], keys: list[tuple[int, int]]) -> float:
    """1 - the mean total variation of two heads, pos key each: keys that have no partner are places of their own."""
    total = 0.0
    for i, j in rows:
        apart = sum(abs(float(first[i, a] - second[j, b])) for a, b in keys)
        apart += sum(float(first[i, a]) for a in range(first.shape[-1]) if a not in [key[0] for key in keys])
        apart += sum(float(second[j, b]) for b in range(second.shape[-1]) if b not in [key[1] for key in keys])
        total += apart / 2
    return 1 - total / len(rows)


def test_every_head_is_compared_with_every_head_of_the_other_model() -> None:
    aligned = by_pieces(FIRST, SECOND)
    pairs = [(0, 0), (2, 1), (3, 2), (4, 4)]
    assert [(a[0], b[0]) for a, b in zip(aligned.first, aligned.second, strict=True)] == pairs
    first, second = random_patterns(5, 2, 3, seed=0), random_patterns(5, 3, 2, seed=9)
    found = head_similarity([PatternPair(first, second, aligned, aligned)])
    assert found.heads.shape == (6, 6) and found.rows == 3
    for i in range(6):
        for j in range(6):
            expected = by_hand(first[i // 3][i % 3], second[j // 2][j % 2], pairs[1:], pairs)
            assert float(found.heads[i, j]) == pytest.approx(expected, abs=1e-6)


def test_over_several_texts_it_is_the_mean_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = by_pieces("abc", "abc"), by_pieces("abcdef", "abcdef")
    texts = [
        PatternPair(random_patterns(3, 1, 2, 0), random_patterns(3, 1, 2, 1), short, short),
        PatternPair(random_patterns(6, 1, 2, 2), random_patterns(6, 1, 2, 3), long, long),
    ]
    alone = [head_similarity([text]) for text in texts]
    monkeypatch.setattr("engine.analysis.similarity.ELEMENTS", 1)  # a row at a time
    found = head_similarity(texts)
    expected = (2 * alone[0].heads + 5 * alone[1].heads) / 7
    assert found.rows == 7
    torch.testing.assert_close(found.heads, expected)


def test_a_run_beside_itself_has_heads_alike_to_themselves_and_nothing_changed() -> None:
    trace = run(model(), IDS)
    aligned = by_pieces(list(map(str, range(8))), list(map(str, range(8))))
    pair = PatternPair(patterns(trace), patterns(trace), aligned, aligned)
    torch.testing.assert_close(head_similarity([pair]).heads.diagonal(), torch.ones(12))
    assert not head_changes(pair).any() and not stream_distance(trace, trace, aligned).relative.any()


def test_the_change_of_a_head_is_that_of_an_edit_without_the_first_row() -> None:
    made = model()
    before = run(made, IDS)
    after = run(made, IDS, edits=[SilenceHeads(0, [1, 2])], base=before)
    aligned = by_pieces(list("abcdefgh"), list("abcdefgh"))
    found = head_changes(PatternPair(patterns(before), patterns(after), aligned, aligned))
    torch.testing.assert_close(found * 7 / 8, pattern_change(before, after))  # the first row cannot change


def test_heads_that_do_not_stand_in_the_same_places_are_a_sentence() -> None:
    aligned = by_pieces("ab", "ab")
    with pytest.raises(ValueError, match="same heads in each layer"):
        head_changes(PatternPair(random_patterns(2, 1, 2, 0), random_patterns(2, 1, 3, 0), aligned, aligned))


def test_one_token_has_no_row_that_counts() -> None:
    aligned = by_pieces("a", "a")
    found = head_similarity([PatternPair(random_patterns(1, 1, 2, 0), random_patterns(1, 1, 2, 1), aligned, aligned)])
    assert found.rows == 0 and found.heads.isnan().all()


def test_streams_are_compared_where_tokens_belong_together() -> None:
    made = model()
    first, second = run(made, IDS), run(made, [3, 4, 1, 5, 9, 9, 2, 6])  # 1 4 1 5 -> 4 1 5, and a 9 more
    aligned = by_pieces(list(map(str, IDS)), ["3", "4", "1", "5", "9", "9", "2", "6"])
    found = stream_distance(first, second, aligned)
    for at, group in enumerate(aligned.groups):
        (i,), (j,) = group.first, group.second
        for layer, hook in enumerate(["blocks.0.resid_pre", *(f"blocks.{n}.resid_post" for n in range(3))]):
            a, b = first[hook][0, i].double(), second[hook][0, j].double()
            assert float(found.relative[layer, at]) == pytest.approx(float((b - a).norm() / a.norm()), rel=1e-9)
            assert float(found.cosine[layer, at]) == pytest.approx(float(torch.cosine_similarity(a, b, 0)), rel=1e-9)
    same = by_pieces(list(map(str, IDS)), list(map(str, IDS)))
    edited = run(made, IDS, edits=[SilenceHeads(0, [1])], base=first)
    expected = distance_of_one_text(first, edited)
    torch.testing.assert_close(stream_distance(first, edited, same).relative, expected.relative)


def test_streams_of_other_widths_are_a_sentence() -> None:
    aligned = by_pieces(list("abcdefgh"), list("abcdefgh"))
    with pytest.raises(ValueError, match="3 layers of 16 and 2 of 16"):
        stream_distance(run(model(), IDS), run(model(config(layers=2)), IDS), aligned)


def test_predictions_are_those_of_each_run_and_their_divergence_is_in_bits() -> None:
    first, second = normal(4, 9, seed=1), normal(5, 9, seed=2)
    found = predictions(first, second, [(0, 1), (3, 4)], 4)
    for place, (i, j) in enumerate([(0, 1), (3, 4)]):
        p, q = first[i].softmax(-1), second[j].softmax(-1)
        assert found.ids[place].tolist() == torch.maximum(p, q).topk(4).indices.tolist()
        torch.testing.assert_close(found.first[place], p[found.ids[place]])
        torch.testing.assert_close(found.second[place], q[found.ids[place]])
        nats = float(torch.nn.functional.kl_div(q.log(), p, reduction="sum"))
        assert float(found.kl[place]) == pytest.approx(nats / math.log(2), rel=1e-5)
        assert float(found.variation[place]) == pytest.approx(shift(first[i], second[j]).total_variation, rel=1e-6)
    yes = predictions(first[:, :1], second[:, :1], [(0, 0)], 4)
    assert float(yes.first[0, 0]) == pytest.approx(float(first[0, 0].sigmoid()), rel=1e-6)
    assert predictions(first, second, [], 4).ids.shape == (0, 4)
