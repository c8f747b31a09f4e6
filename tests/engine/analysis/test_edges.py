"""Attention weights as edges: which are kept, in which order, and of whom."""

import pytest
from torch import tensor

from engine.analysis.edges import edges, join_edges
from engine.runtime.run import run
from tests.engine import tiny

PATTERN = tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.1, 0.2, 0.7]])


def test_a_weight_is_kept_from_the_least_on_and_a_zero_never() -> None:
    found = join_edges([(0, 1, PATTERN)], 0.0)
    assert found.weight.tolist() == PATTERN[PATTERN > 0].tolist()
    ends = list(zip(found.query.tolist(), found.key.tolist(), strict=True))
    assert ends == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    kept = join_edges([(0, 1, PATTERN), (3, 2, PATTERN.flip(0))], 0.25)
    assert kept.layer.tolist() == [0, 0, 0, 0, 3, 3, 3, 3] and set(kept.head[4:].tolist()) == {2}
    assert kept.weight.tolist()[4:] == [float(PATTERN[2, 2]), 0.25, 0.75, 1.0]


def test_the_least_is_compared_as_it_is_said() -> None:
    """0.7 lies above the float32 that is nearest to it."""
    assert float(PATTERN[2, 2]) < 0.7
    assert join_edges([(0, 0, PATTERN)], 0.7).weight.tolist() == [1.0, 0.75]


@pytest.mark.parametrize(("query", "key", "count"), [(2, None, 3), (None, 0, 3), (2, 1, 1), (0, 2, 0)])
def test_one_token_keeps_its_own(query: int | None, key: int | None, count: int) -> None:
    found = join_edges([(0, 0, PATTERN)], 0.0, query, key)
    assert len(found.weight) == count
    assert all(query in (None, one) for one in found.query) and all(key in (None, one) for one in found.key)


def test_the_edges_of_a_run_are_the_weights_of_its_patterns() -> None:
    trace = run(tiny.model(), [tiny.IDS])
    found = edges(trace, [(2, 1), (0, 3)], 0.2)
    by_hand = [
        (layer, head, query, key, weight.item())
        for layer, head in ((2, 1), (0, 3))
        for query, row in enumerate(trace[f"blocks.{layer}.attn.pattern"][0, head])
        for key, weight in enumerate(row)
        if weight >= 0.2
    ]
    made = zip(*(getattr(found, part).tolist() for part in ("layer", "head", "query", "key", "weight")), strict=True)
    assert list(made) == by_hand and len(by_hand) > 5
